"""Figures of a comparison: two launches as parts, two profiles as changes."""

from dataclasses import replace

import pytest

from analysis.comparison.runs import compare, compare_launches
from analysis.timing.predicted import Cost, Effect
from reports.figures.comparison import times
from reports.figures.launch import COLOURS
from reports.sections.time_parts import PartClass
from tests.analysis.comparison.test_launches import BEFORE
from tests.records_by_hand import predicted
from tests.reports.profiles_by_hand import change, record_of
from tests.reports.profiles_by_hand import predicted as with_prediction


def launch(parts_us):
    """A launch whose predicted time is the sum of these parts."""
    costs = tuple(Cost(effect=e, time_s=us * 1e-6, alone_s=0.0) for e, us in parts_us.items())
    time_s = sum(one.time_s for one in costs)
    return replace(BEFORE, predicted=replace(predicted(time_s), costs=costs))


def test_the_parts_of_both_launches_are_stacked_and_what_moved_is_marked():
    before = {Effect.CONFLICTS: 55, Effect.DRAM_BANDWIDTH: 35, Effect.LAUNCH: 4}
    after = {Effect.DRAM_BANDWIDTH: 36, Effect.LAUNCH: 4}
    found = times(compare_launches(launch(before), launch(after))).plotly()
    shown = {trace.name: tuple(trace.x) for trace in found.data}
    assert shown["bank conflicts"] == pytest.approx((55, 0))
    assert shown["DRAM bandwidth"] == pytest.approx((35, 36))
    assert sum(sum(one) for one in shown.values()) == pytest.approx(94 + 40)
    marked = [trace.name for trace in found.data if trace.marker.color == COLOURS[PartClass.CAUSE]]
    assert marked == ["bank conflicts"]
    assert all(tuple(trace.y) == ("before", "after") for trace in found.data)
    assert found.layout.xaxis.title.text == "time, µs"


def test_launches_without_a_time_are_said_to_be_so():
    found = times(compare_launches(BEFORE, BEFORE)).plotly()
    assert not found.data
    assert "time is not known" in found.layout.annotations[0].text


def test_records_of_profiles_change_in_the_colours_of_better_and_worse(in_prediction):
    tiled = record_of(in_prediction, "tiled")
    slower = with_prediction(tiled, 2 * 0.0516459 * 1.1, limiter="L1").predicted
    found = times(compare(in_prediction, change(in_prediction, "tiled", predicted=slower))).plotly()
    (bars,) = found.data
    names = list(found.layout.yaxis.ticktext)
    at = next(k for k, name in enumerate(names) if name.startswith("tiled"))
    assert bars.x[at] == pytest.approx(100)
    assert bars.text[at] == "2.00× slower"
    assert bars.marker.color[at] == COLOURS[PartClass.CAUSE]
    others = {colour for k, colour in enumerate(bars.marker.color) if k != at}
    assert others == {COLOURS[PartClass.REST]}
    assert len(names) == len(bars.x) == 6
