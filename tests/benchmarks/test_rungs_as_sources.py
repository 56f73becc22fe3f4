"""Rungs by name and as sources: which launches are predicted, and when they count as equal."""

from benchmarks.rungs_as_sources import ALL, FEW, NAME, asked, is_equal, summary
from tests.one_path import LAUNCHES

WAY = {"time_s": 1e-5, "limiter": "L1", "basis": "", "seconds": 1.0}


def row(by_name=WAY, few=WAY, **changes):
    ways = {NAME: by_name, ALL: WAY, FEW: few}
    times = [way["time_s"] for way in ways.values()]
    found = {"name": "tiled 512", "ways": ways, "counters": []}
    return found | {"apart": max(times) / min(times) - 1} | changes


def test_every_launch_of_one_path_is_among_those_predicted():
    rungs = {launch.name for launch in LAUNCHES if hasattr(launch, "rung")}
    kernels = {launch.case.kernel for launch in LAUNCHES if hasattr(launch, "case")}
    assert rungs | kernels <= set(asked())


def test_launches_are_chosen_by_a_text():
    assert list(asked("vectorized 2048")) == ["vectorized 2048"]


def test_ways_are_equal_to_half_a_percent_with_one_limiter_and_equal_counters():
    assert is_equal(row())
    assert is_equal(row(few=WAY | {"time_s": 1.004e-5}))
    assert not is_equal(row(few=WAY | {"time_s": 1.006e-5}))
    assert not is_equal(row(by_name=WAY | {"limiter": "issue"}))
    assert not is_equal(row(counters=["smsp__inst_executed.sum"]))
    assert not is_equal({"name": "tiled 512", "left_out": "too large"})


def test_the_table_names_what_differs_and_what_is_missing():
    different = row(few=WAY | {"time_s": 1.01e-5, "limiter": "issue"}, counters=["a.sum"])
    lines = list(summary([row(), different, {"name": "best 512", "left_out": "no time"}]))
    assert lines[1].split() == ["tiled", "512", "10.00", "10.00", "10.00", "0.00%", "L1"]
    assert lines[2].endswith("1.00%  L1, issue; a.sum")
    assert lines[3].endswith("no time")
    assert lines[4] == "1 of 3 launches are equal to 0.5%."
