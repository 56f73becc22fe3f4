"""Parts of one time, and of several times under the same names."""

from dataclasses import replace

import pytest

from analysis.timing.predicted import Cost, Effect
from reports.pages.launches import page
from reports.sections.change_bars import change_bars
from reports.sections.launch_report import LaunchReport
from reports.sections.time_parts import parts, parts_of_time
from tests.records_by_hand import predicted, resources
from tests.reports.test_result_pages_in_browser import record

BEFORE = {Effect.IDLE_SMS: 5e-6, Effect.DRAM_BANDWIDTH: 4e-6, Effect.LAUNCH: 1e-6}
AFTER = {
    Effect.DRAM_BANDWIDTH: 96.9e-6,
    Effect.IDLE_SMS: 0.9e-6,  # less than a hundredth
    Effect.DIVERGENCE: 0.7e-6,
    Effect.ATOMICS: 0.5e-6,
    Effect.LAUNCH: 1e-6,
}


def time_of(costs):
    parts = tuple(Cost(effect=one, time_s=time_s, alone_s=time_s) for one, time_s in costs.items())
    return predicted(sum(costs.values()), costs=parts)


def report(costs, *samples_s):
    return LaunchReport(
        name="k", resources=resources(), predicted=time_of(costs), samples_s=samples_s
    )


def test_a_part_that_is_small_on_one_side_keeps_its_value():
    assert [part.name for part in parts(report(AFTER))] == ["DRAM bandwidth", "other", "launch"]
    before = record("copy", predicted=time_of(BEFORE))
    found = change_bars(before, replace(before, predicted=time_of(AFTER)), None)
    key = {name: (old, new) for _, name, old, new in found.key}
    assert key["idle SMs"] == ("5.00", "0.900")
    assert key["other"] == ("0", "1.20")
    assert sum(float(new) for _, new in key.values()) == pytest.approx(100)


def test_bars_have_the_measured_time_where_the_predicted_one_is_longer():
    measured_s = 8e-6
    found = parts_of_time(report(BEFORE, measured_s))
    assert sum(part.time_s for part in found) == pytest.approx(measured_s)
    assert [part.time_s / measured_s for part in found] == pytest.approx([0.5, 0.4, 0.1])
    before = record("copy", predicted=time_of(BEFORE), samples_s=(measured_s,))
    bars = change_bars(before, replace(before, samples_s=(20e-6,)), None)
    assert [row.time for row in bars.rows] == ["8.00 µs", "20.0 µs"]
    assert bars.note.endswith("its parts are scaled to the measured time.")
    assert change_bars(before, before, None).note == bars.note
    longer = replace(before, samples_s=(20e-6,))
    assert change_bars(longer, longer, None).note == ""


def test_bars_of_launches_have_the_scale_of_the_times_beside_them():
    slow = replace(report(BEFORE, 8e-6), name="slow")
    html = page([slow, replace(report(BEFORE, 4e-6), name="fast")])
    assert "slow: idle SMs 4.00 µs, DRAM bandwidth 3.20 µs, launch 800 ns" in html
    assert "fast: idle SMs 2.00 µs, DRAM bandwidth 1.60 µs, launch 400 ns" in html
