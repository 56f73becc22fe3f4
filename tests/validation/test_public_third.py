"""The third part of public launches: its measurements, and its predictions."""

import re

import pytest

from validation import ROOT, recordings
from validation.public_launches import predict
from validation.public_launches.listed import (
    FOLDER,
    HALVES,
    PARTS,
    gap_of,
    listed,
    measurements,
    record_of,
)

PREDICTED = {
    name: recordings.read(FOLDER / f"third_predicted{end}.json")["third"]
    for name, end in (("now", ""), ("before", "_before"))
}
VALIDATION = ROOT.joinpath("docs", "validation.md").read_text("utf-8")


def test_the_gap_comes_from_the_first_half_alone():
    document = measurements("third")
    beside = document["beside"]
    assert {row["name"] for row in beside} <= {one.name for one in listed("first")}
    assert document["gap"] == gap_of(beside)
    assert f"{document['gap']['time_s'] * 1e6:.3f} µs" in VALIDATION
    recorded = {row["name"]: row for row in measurements("first")["times"]}
    longer_us = sorted(
        (row[key] - recorded[row["name"]][key]) * 1e6
        for row in beside
        for key in ("clean_s", "dirty_s", "warm_s")
        if recorded[row["name"]][key] < 1e-4
    )
    assert len(longer_us) == 18
    assert 0.64 <= round(longer_us[0], 2) < round(longer_us[2], 2) <= 0.70
    assert 1.50 <= round(longer_us[3], 2) < round(longer_us[-1], 2) <= 1.73


def test_the_halves_have_the_gap_of_short_holds():
    rows = [row for part in HALVES for row in measurements(part)["times"] if "gap_s" in row]
    assert {row["gap_s"] for row in rows} == {1.63e-6}
    assert f"The times of {len(rows)}\nlaunches" in VALIDATION
    measured = [part for part in PARTS if record_of(part).exists()]
    assert {part for part in measured if "gap" in measurements(part)} == set(measured)


@pytest.mark.parametrize("model", PREDICTED)
def test_predictions_are_beside_what_was_measured(model):
    assert predict.with_measured("third", PREDICTED[model]) == PREDICTED[model]


@pytest.mark.parametrize("model", PREDICTED)
@pytest.mark.parametrize("times", ["less 1.616 µs", "as timed"])
def test_the_table_has_the_errors_of_the_record(model, times):
    assert f"| {' | '.join([times, model, *figures(model, times)])} |" in VALIDATION


def figures(model, times):
    """Launches, mean, median, 90th percentile, how many are off; share in intervals, half width."""
    cells = PREDICTED[model]
    lines = predict.tables(list(map(predict.as_timed, cells)) if times == "as timed" else cells)
    errors, intervals = next(lines), next(lines)
    found = re.findall(r"[\d.]+%|\d+(?= off)", errors.partition("): ")[2])
    return [errors.split()[0], *found, *re.findall(r"[\d.]+%", intervals.partition(": ")[2])]


def test_the_limiters_of_the_page_are_those_of_the_record():
    busy, waits = list(predict.limiters("third", PREDICTED["now"]))[:2]
    assert busy.endswith("23 of 25")
    assert waits.endswith("72 of 84")
    assert "| 23 of 25 (92%) |" in VALIDATION
    assert "| 72 of 84 (86%) |" in VALIDATION
    assert predict.limited_by_dram("third").endswith("of 6 of 114")
    assert "of 6 of 114 counted launches" in VALIDATION


def test_limiters_are_what_the_record_gives():
    lines = list(predict.tables(PREDICTED["now"]))
    table = lines[lines.index(next(line for line in lines if line.startswith("limiter"))) + 1 :]
    for line in table[:9]:
        name, launches, error, ratio = re.split(r" {2,}", line)
        assert f"| {name} | {launches} | {error} | {ratio} |" in VALIDATION


def test_a_second_look_is_of_launches_that_had_been_seen():
    again = recordings.read(FOLDER / "third_predicted_again.json")["third"]
    assert predict.with_measured("third", again) == again
    for cells in (again, list(map(predict.as_timed, again))):
        errors = next(predict.tables(cells))
        launches, found = errors.split()[0], re.findall(r"[\d.]+%|\d+(?= off)", errors)
        times = "as timed" if cells is not again else "less 1.616 µs"
        assert f"| {times} | {launches} | {' | '.join(found)} |" in VALIDATION
    busy, waits = list(predict.limiters("third", again))[:2]
    assert f"({busy.rpartition(': ')[2]}, and {waits.rpartition(': ')[2]})" in VALIDATION
    left_out = {
        one["label"].split()[0] for one in again if "takes more than" in one.get("left_out", "")
    }
    assert left_out == {"aidw", "threadfence"}
