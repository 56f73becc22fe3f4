"""Remarks on the accesses of a line."""

from analysis.records.source_lines import accesses
from reports.sections.access import cost
from tests.reports.profiles_by_hand import record_of


def test_waste_is_told_with_its_ideal(in_trace):
    load, store, read = (
        cost(one) for one in accesses(record_of(in_trace, "tiled").simulated.memory)
    )
    assert load == "global loads take 32 sectors each instead of 4 (uncoalesced)"
    assert store == "shared stores take 1 wavefronts each, which is ideal"
    assert read == "shared loads take 2 wavefronts each instead of 1 (bank conflicts)"
