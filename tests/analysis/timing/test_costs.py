"""Order of effects, and the roof that is named, without a replay."""

import pytest

from analysis.timing.costs import SceneTime, _at_roof
from analysis.timing.predicted import ALIKE, WAITS, Effect, rank


def test_waiting_is_ranked_below_effects_that_save_about_as_much():
    assert rank(Effect.DRAM_LATENCY, 21.0) < rank(Effect.BARRIERS, 19.3)  # 18.9 < 19.3
    assert rank(Effect.DRAM_LATENCY, 21.0) > rank(Effect.BARRIERS, 18.0)
    assert {rank(one, 1.0) for one in WAITS} == {ALIKE}
    assert Effect.BARRIERS not in WAITS


@pytest.mark.parametrize(
    ("special", "named"),
    [
        (96, [(Effect.SPECIAL_PIPE, 96), (Effect.REMAINDER, 14)]),  # 1.05 * 96 > 100
        (
            95,  # 1.05 * 95 < 100
            [(Effect.FP32_PIPE, 40), (Effect.OTHER_INSTRUCTIONS, 60), (Effect.REMAINDER, 10)],
        ),
    ],
)
def test_a_pipe_that_is_nearly_as_busy_as_the_schedulers_is_the_roof(special, named):
    roofs = {Effect.OTHER_INSTRUCTIONS: 100, Effect.FP32_PIPE: 40, Effect.SPECIAL_PIPE: special}
    found = list(_at_roof(SceneTime(clocks=110, roofs=roofs, lost={}), 110))
    assert found == named
    assert sum(clocks for _, clocks in found) == 110
