"""The steps between a predicted and a measured time."""

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.gap import (
    held_clock_hz,
    over_measured,
    steps_to_measured,
)
from analysis.records.profile import GpuState
from analysis.timing.predicted import GapCause
from tests import records_by_hand
from tests.records_by_hand import predicted

PREDICTED = predicted(102e-6, cycles=2e5, clock_hz=2e9, launch_s=2e-6, is_fitted=True)


def measured(median_s, *clocks_hz, **more):
    before, after, *_ = [GpuState(sm_clock_hz=clock) for clock in clocks_hz] + [None, None]
    return records_by_hand.measured(median_s, before=before, after=after, **more)


def test_a_lower_clock_takes_its_share_and_the_rest_remains():
    clock, rest = steps_to_measured(PREDICTED, measured(130e-6, 1.7e9, 1.5e9))
    assert clock.name == GapCause.HELD_CLOCK
    assert clock.time_s == pytest.approx(25e-6)  # 100 µs · (2.0 / 1.6 - 1)
    assert clock.detail == (
        "1600 MHz before and after the samples, on average; the prediction is for 2000 MHz"
    )
    assert (rest.name, rest.time_s) == (GapCause.REMAINDER, pytest.approx(3e-6))


def test_without_a_known_clock_all_of_it_remains():
    for unknown in (measured(110e-6), measured(110e-6, None, None)):
        (rest,) = steps_to_measured(PREDICTED, unknown)
        assert rest.time_s == pytest.approx(8e-6)
    assert held_clock_hz(measured(1.0, None, 1.5e9)) == 1.5e9


POSITIVE = st.floats(1e-9, 1e3)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(1e6, 1e11), st.floats(1e6, 1e11))
def test_the_steps_add_up_to_the_measured_time(time_s, launch_s, median_s, nominal_hz, held_hz):
    predicted = replace(PREDICTED, time_s=time_s, launch_s=launch_s, clock_hz=nominal_hz)
    steps = steps_to_measured(predicted, measured(median_s, held_hz))
    largest = max(time_s, median_s, *(abs(step.time_s) for step in steps))
    added = fsum([time_s, *(step.time_s for step in steps)])
    assert added == pytest.approx(median_s, rel=0, abs=4e-16 * largest)


def test_only_times_of_one_thing_have_a_ratio():
    assert over_measured(PREDICTED, measured(100e-6)) == pytest.approx(1.02)
    assert over_measured(PREDICTED, measured(100e-6, l2="warm")) is None
    assert over_measured(PREDICTED, measured(1.0, clock="host clock", l2="host")) is None
    assert over_measured(PREDICTED, None) is None
    assert over_measured(None, measured(1.0)) is None
