"""Words about requests."""

from dataclasses import replace

from reports.sections import access
from tests.reports.profiles_by_hand import record_of


def memory(profile, label="tiled"):
    record = record_of(profile, label)
    return record.simulated.memory


def test_an_access_is_named_by_its_line(in_trace):
    load, store, _ = memory(in_trace)
    tiled = record_of(in_trace, "tiled")
    lines = access.source_lines(in_trace, tiled)
    assert access.name(load, load.first, lines) == "line 3: load from A, 4 B per lane"
    assert access.name(store, store.first, lines) == "line 3: store to shared memory, 4 B per lane"
    assert access.name(load, load.first, {}) == "load from A, 4 B per lane"


def test_a_lane_is_told_by_row_and_column_or_by_bank(in_trace):
    load, _, read = memory(in_trace)
    assert access.where(load, load.first, 5) == "A[5][0], byte 1,280"  # rows of 256 B
    assert access.where(read, read.first, 17) == "byte 136: word 34, bank 2"
    off = replace(load.first, lanes=(None,) * 32)
    assert access.where(load, off, 5) == "takes no part"


def test_a_request_is_told_in_a_sentence(in_trace):
    load, store, read = memory(in_trace)
    assert access.sentence(load, load.first) == (
        "32 lanes × 4 B, 128 different bytes, in 32 sectors of 32 B; 4 could hold them. "
        "Neighbouring lanes are 1 row of A apart."
    )
    assert access.sentence(store, store.first) == (
        "32 lanes × 4 B: no bank conflict; 1 wavefronts per request. "
        "Neighbouring lanes are 4 B apart."
    )
    assert "a conflict of 2 words in one bank; 2 wavefronts" in access.sentence(read, read.first)


def test_a_broadcast_is_called_one(in_trace):
    load, *_ = memory(in_trace)
    same = replace(load.first, lanes=(0,) * 32)
    assert access.sentence(load, same).endswith("All lanes access the same place: a broadcast.")


def test_only_waste_has_a_reason(in_trace):
    load, store, read = memory(in_trace)
    assert access.reason(load, load.first).startswith(
        "Global loads take 32 sectors each instead of 4 (uncoalesced)."
    )
    assert access.reason(read, read.first).startswith("Shared loads take 2 wavefronts")
    assert access.reason(store, store.first) == ""
    assert access.reason(replace(load, sectors=40), load.first) == ""
