"""Predictions of launches that follow each other, added up by hand."""

import pytest

from analysis.l2_state import L2State
from analysis.timing.in_turn import BOUNDARY_S, in_turn
from analysis.timing.predicted import Cost, Effect, Predicted, Resource, TimeBound

LAUNCH_S = 3e-6


def predicted(busy_s, *, dram_s, issue_s, costs=True, cycles=1000.0):
    waiting = Cost(
        effect=Effect.DRAM_LATENCY, time_s=busy_s, alone_s=busy_s / 2, together_s=2 * busy_s
    )
    launch = Cost(effect=Effect.LAUNCH, time_s=LAUNCH_S, alone_s=LAUNCH_S)
    return Predicted(
        time_s=busy_s + LAUNCH_S,
        cycles=cycles,
        clock_hz=cycles / busy_s,
        launch_s=LAUNCH_S,
        flop_per_s=1.0,
        l2=L2State.DIRTY,
        limiter=Resource.DRAM,
        limiter_share=0.5,
        next_limiter=Resource.ISSUE,
        next_share=0.25,
        bounds=(
            TimeBound(name=Resource.DRAM, time_s=dram_s, basis="bytes"),
            TimeBound(name=Resource.ISSUE, time_s=issue_s, basis="instructions"),
        ),
        constants="sm_90",
        basis="all blocks",
        is_fitted=True,
        costs=(waiting, launch) if costs else (),
    )


FIRST = predicted(4e-6, dram_s=2e-6, issue_s=1e-6)
SECOND = predicted(16e-6, dram_s=4e-6, issue_s=12e-6, cycles=3000.0)


def test_times_add_up_and_a_launch_counts_once():
    found = in_turn([("split", FIRST), ("multiply", SECOND)], flop=46)
    assert found.time_s == pytest.approx(20e-6 + LAUNCH_S + BOUNDARY_S)  # 4 + 16 us
    assert found.launch_s == pytest.approx(LAUNCH_S + BOUNDARY_S)
    assert found.clock_hz == pytest.approx(200e6)  # 4000 clocks in 20 us
    assert found.flop_per_s == pytest.approx(46 / found.time_s)
    assert found.basis == "split: all blocks; multiply: all blocks"


def test_the_limiter_is_the_resource_with_the_largest_sum():
    found = in_turn([("split", FIRST), ("multiply", SECOND)], flop=1)
    assert (found.limiter, found.next_limiter) == (Resource.ISSUE, Resource.DRAM)
    assert found.limiter_share == pytest.approx(13 / 20)  # 1 + 12 of 20 us
    assert found.next_share == pytest.approx(6 / 20)


def test_costs_sum_to_the_time():
    found = in_turn([("split", FIRST), ("multiply", SECOND)], flop=1)
    assert sum(cost.time_s for cost in found.costs) == pytest.approx(found.time_s)
    waiting, launch = found.costs
    assert (waiting.effect, launch.effect) == (Effect.DRAM_LATENCY, Effect.LAUNCH)
    assert waiting.alone_s == pytest.approx(10e-6)  # half of 4 + 16 us
    assert waiting.together_s == pytest.approx(40e-6)  # twice 4 + 16 us
    assert launch.together_s == 0


def test_without_the_costs_of_a_launch_there_are_none():
    plain = predicted(1e-6, dram_s=1e-6, issue_s=0.0, costs=False)
    assert in_turn([("split", FIRST), ("multiply", plain)], flop=1).costs == ()
