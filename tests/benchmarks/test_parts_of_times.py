"""Mistakes in the parts of a time that are reported."""

from types import SimpleNamespace

import pytest

from analysis.timing.predicted import Cost, Effect, RankedCause, TimeBound
from benchmarks.parts_of_times import MOST_REMAINDER, checked, of_users_kernel
from benchmarks.report_speed import LAUNCHES


def parts(*, waits=5.0, remainder=1.0, bound=9.0):
    """A time of 10 s: DRAM bandwidth takes 4 s."""
    seconds = {
        Effect.DRAM_BANDWIDTH: 4.0,
        Effect.BARRIERS: waits,
        Effect.REMAINDER: remainder,
    }
    costs = tuple(Cost(effect=one, time_s=s, alone_s=0.0) for one, s in seconds.items())
    causes = tuple(
        RankedCause(cause=one.effect, time_s=one.time_s, share=one.time_s / 10, is_avoidable=True)
        for one in sorted(costs, key=lambda cost: -cost.time_s)
    )
    limit = TimeBound(name="DRAM", time_s=bound, basis="")
    found = SimpleNamespace(time_s=10.0, costs=costs, causes=causes, bounds=(limit,))
    return checked("own", "kernel", found)


def test_parts_that_sum_to_the_time_are_right():
    found = parts()
    assert found.wrong == ""
    assert found.remainder == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"waits": 4.9}, "parts do not sum to the time"),
        ({"waits": -1.0, "remainder": 7.0}, "negative part"),
        ({"waits": 0.1, "remainder": 5.9}, "a cause below 2% is named"),
        ({"waits": 1.0, "remainder": 5.0}, "the remainder is the first cause"),
        ({"bound": 10.1}, "bound above the time: DRAM"),
    ],
)
def test_what_is_wrong_is_said(changed, wrong):
    assert wrong in parts(**changed).wrong


@pytest.mark.exhaustive  # about 4 s each
@pytest.mark.parametrize("name", LAUNCHES)
def test_parts_of_users_kernels_add_up(name):
    found = checked("users' kernels", name, of_users_kernel(name, "h200"))
    assert found.wrong == ""
    assert found.remainder <= MOST_REMAINDER
