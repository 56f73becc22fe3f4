"""Records that are shown, trusted and compared."""

from dataclasses import replace

import pytest

from reports import ladder
from tests.reports.profiles_by_hand import SHAPE, SMALL, change, passed, profile, record_of, view


def labels(records):
    return [record.label for record in records]


def test_shapes_keep_their_order():
    assert ladder.shapes(profile(SHAPE, SMALL)) == (SHAPE, SMALL)


def test_rungs_come_in_order_and_references_last(on_gpu):
    shuffled = replace(on_gpu, records=tuple(reversed(on_gpu.records)))
    found = view(shuffled).records
    assert labels(found)[:2] == ["one-block", "naive-uncoalesced"]
    assert {record.label for record in found[-2:]} == {"cpu", "cublas"}
    assert len(view(shuffled).rungs) == 7


def test_a_time_of_a_wrong_result_is_no_measurement(on_gpu):
    wrong = replace(passed(), passed=False)
    changed = change(on_gpu, "vectorized", check=wrong)
    best = view(changed).fastest
    assert best.label == "coarsened-2d"
    record = record_of(changed, "vectorized")
    assert ladder.measurement(record) is None
    assert ladder.why_not_measured(record) == "failed the check"


def test_the_previous_rung_is_the_nearest_one_among_those_measured(on_gpu):
    changed = change(on_gpu, "tiled", status="failed", measured=None)
    records = view(changed).records
    after = next(r for r in records if r.label == "coarsened-1d")
    previous = ladder.previous_rung(after, filter(ladder.measurement, records))
    assert previous.label == "naive-coalesced"


def test_the_first_rung_and_references_have_no_previous_one(on_gpu):
    records = view(on_gpu).records
    assert ladder.previous_rung(records[0], records) is None
    assert ladder.previous_rung(records[-1], records) is None


def test_speed_against_cublas_prefers_paired_samples(on_gpu):
    best = ladder.measurement(view(on_gpu).fastest)
    share, bounds = ladder.of_cublas(best, None)
    assert share == pytest.approx(0.00518697 / 0.0075122)  # 69.0 %
    assert bounds is not None
    alone = replace(best, relative_to_cublas=None)
    cublas = view(on_gpu).cublas
    assert ladder.of_cublas(alone, cublas) == (pytest.approx(0.00518697 / 0.0075122), None)
    assert ladder.of_cublas(alone, None) == (None, None)


def test_a_twin_has_the_same_label_and_shape(in_theory, on_gpu):
    record = view(in_theory).rungs[-1]
    beside = view(in_theory, on_gpu)
    twin = beside.twin(record)
    assert twin.measured is not None
    assert beside.twin(replace(record, label="vectorized:bk=8")) is None
    assert view(in_theory).twin(record) is None


def test_many_rungs_in_a_row_are_named_by_the_first_and_the_last(on_gpu):
    records = on_gpu.records
    labels = [record.label for record in records]
    assert ladder.named(labels[:4], records) == (
        "one-block, naive-uncoalesced, naive-coalesced and tiled"
    )
    assert ladder.named(labels[1:7], records) == "naive-uncoalesced to vectorized (6 rungs)"
    # a reference is not a rung, and a gap ends a row
    assert ladder.named([*labels[:5], "vectorized", "cublas"], records) == (
        "one-block to coarsened-1d (5 rungs), vectorized and cublas"
    )
