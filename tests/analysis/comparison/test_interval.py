"""Intervals of predicted times: from launches like them, and of changes between two."""

from dataclasses import replace
from math import exp, hypot, log

import numpy as np
import pytest

from analysis.comparison import interval
from analysis.comparison.interval import (
    UNITS,
    LaunchArrays,
    MeasuredLaunch,
    busy_of,
    change_interval,
    interval_of,
    measured_launches,
    quantiles_of,
    table_of,
    with_estimates,
)
from analysis.comparison.like_launches import COLUMNS, HELD_OUT, LAUNCHES, PAIR_SHARE
from analysis.comparison.times import predicted_change
from analysis.devices import find_device
from analysis.errors import InputError
from analysis.l2_state import L2State, l2_state
from analysis.timing.predicted import Predicted, Resource, TimeBound


def predicted(time_s=20e-6, limiter=Resource.DRAM, share=0.9, **changes):
    bound = TimeBound(name=limiter, time_s=share * (time_s - 3e-6), basis="")
    return Predicted(
        **{
            "time_s": time_s,
            "cycles": 1.0,
            "clock_hz": 1e9,
            "launch_s": 3e-6,
            "flop_per_s": 0.0,
            "l2": L2State.DIRTY,
            "limiter": limiter,
            "limiter_share": share,
            "next_limiter": Resource.L2,
            "next_share": 0.2,
            "bounds": (bound,),
            "constants": "",
            "basis": "",
            "is_fitted": True,
        }
        | changes
    )


def launch(error, limiter=Resource.DRAM, share=0.9, l2=L2State.DIRTY):
    busy = tuple(share if unit == limiter else 0.0 for unit in UNITS)
    return MeasuredLaunch(limiter=limiter, l2=l2, busy=(*busy, 0.15), error=error)


def test_four_fifths_of_equal_steps_lie_between_the_ends():
    low, high = quantiles_of(np.linspace(-0.4, 0.5, 19))
    assert (low, high) == pytest.approx((-0.35, 0.45))


def test_an_interval_contains_the_predicted_time():
    low, high = quantiles_of(np.linspace(0.1, 0.3, 19))
    assert high == pytest.approx(0.28889, abs=1e-5)  # nine tenths of 20 steps, from 0.1 - 1/90
    assert low == pytest.approx(-interval.LEAST_SIDE * high)
    low, high = quantiles_of(np.linspace(-0.3, -0.1, 19))
    assert high == pytest.approx(-interval.LEAST_SIDE * low)


def test_launches_alike_decide_and_others_do_not(monkeypatch):
    alike = [launch(error) for error in np.linspace(-0.02, 0.02, interval.NEIGHBOURS)]
    others = [launch(9.0, Resource.LATENCY, 0.2), launch(-9.0, Resource.ISSUE, 0.9)] * 60
    table = LaunchArrays.of([*others, *alike])
    monkeypatch.setattr(interval, "_table", lambda: table)
    low, high = interval_of(predicted(), find_device("h200"))
    assert exp(-0.02) < low / 20e-6 < 1 < high / 20e-6 < exp(0.02)
    wide = interval_of(predicted(limiter=Resource.LATENCY, share=0.2), find_device("h200"))
    assert wide[1] > 10 * 20e-6


def test_an_interval_is_wider_where_launches_are_rare():
    errors = np.linspace(-0.02, 0.02, interval.NEIGHBOURS)
    shares = 0.5 + 0.001 * np.arange(len(errors))
    table = LaunchArrays.of([launch(x, share=s) for x, s in zip(errors, shares, strict=True)])
    usual = table.usual_distance
    assert usual == pytest.approx(0.003)  # with five others, of which four are at both sides
    widths = []
    for share in (0.53, 0.63):
        low, high = table.ends(Resource.DRAM, L2State.DIRTY, launch(0.0, share=share).busy)
        widths.append(high - low)
    fifth = [0.002, 0.63 - 0.559 + 0.004]  # distances of that neighbour
    wider = [(1 + interval.RARITY * x / usual) / (1 + interval.RARITY) for x in fifth]
    assert widths[1] / widths[0] == pytest.approx(wider[1] / wider[0], rel=1e-6)


def test_intervals_are_wider_than_errors_of_development_launches(monkeypatch):
    table = LaunchArrays.of([launch(x) for x in np.linspace(-0.02, 0.02, interval.NEIGHBOURS)])
    monkeypatch.setattr(interval, "_table", lambda: table)
    low, high = interval_of(predicted(), find_device("h200"))
    busy = busy_of({Resource.DRAM: 0.9 * 17e-6}, 20e-6, 3e-6)
    ends = table.ends(Resource.DRAM, L2State.DIRTY, busy)
    expected = [20e-6 * exp(HELD_OUT * end) for end in ends]
    assert (low, high) == pytest.approx(tuple(expected))
    assert HELD_OUT > 1


def test_devices_of_which_no_launch_was_measured_have_no_interval():
    assert interval_of(predicted(), find_device("rtx-3090")) is None
    assert interval_of(predicted(), find_device("h100-sxm")) is not None


def test_the_table_keeps_launches():
    launches = [launch(0.123), launch(-0.05, Resource.L2, 0.44, L2State.WARM)]
    columns = " ".join([*(unit.name for unit in UNITS), interval.LAUNCH])
    assert sorted(map(repr, measured_launches(columns, table_of(launches)))) == sorted(
        map(repr, launches)
    )


def test_the_table_that_ships_is_one():
    found = measured_launches(COLUMNS, LAUNCHES)
    assert len(found) >= 100
    assert all(0 <= share <= 1 for one in found for share in one.busy)


def test_a_change_is_clear_beyond_the_errors_of_both():
    one = predicted(interval_s=(18e-6, 22e-6))
    near, far = (
        predicted(time_s, interval_s=(0.9 * time_s, 1.1 * time_s)) for time_s in (19e-6, 10e-6)
    )
    low, high = change_interval(one, near)
    assert low < 0.95
    assert high > 1
    assert not predicted_change(one, near, True)[0].is_clear
    assert predicted_change(one, far, True)[0].is_clear
    assert change_interval(one, predicted()) is None
    assert predicted_change(predicted(), near, True)[0].is_clear
    assert 0 < PAIR_SHARE <= 1


def test_earlier_records_say_flushed_and_mean_dirty():
    assert L2State("flushed") is L2State.DIRTY
    with pytest.raises(InputError, match="give clean, dirty or warm"):
        l2_state("cold")
    assert replace(predicted(), l2=L2State("warm")).l2 == "warm"


@pytest.mark.parametrize(
    ("ends", "half_width", "wider"),
    [
        ((-0.1, 0.1), 0.0, (-0.1, 0.1)),
        ((-0.1, 0.1), 0.3, (-0.1887, 0.1887)),  # 0.3 * 1.28 / 2.4 = 0.16; hypot(0.1, 0.16)
        ((0.05, 0.1), 0.3, (-0.1676, 0.1887)),  # as much below, hypot(0.05, 0.16)
    ],
)
def test_an_estimate_of_the_work_widens_the_interval(ends, half_width, wider):
    before = predicted(interval_s=tuple(20e-6 * exp(end) for end in ends))
    found = with_estimates(before, half_width).interval_s
    assert found == pytest.approx(tuple(20e-6 * exp(end) for end in wider), rel=1e-4)
    assert with_estimates(predicted(), half_width).interval_s is None


def test_a_longer_block_than_those_executed_widens_the_interval_upward_alone():
    before = predicted(interval_s=(18e-6, 22e-6))
    low, high = with_estimates(before, 0.0, longer=0.5).interval_s
    assert low == pytest.approx(18e-6)
    assert high == pytest.approx(20e-6 * exp(hypot(log(1.1), log(1.5))))
