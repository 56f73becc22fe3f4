"""Order of effects, and the roof that is named, without a replay."""

import pytest

from analysis.timing.costs import SceneTime, _at_roof
from analysis.timing.predicted import ALIKE, WAITS, Cost, Effect, rank


def test_waiting_is_ranked_below_effects_that_save_about_as_much():
    assert rank(Effect.DRAM_LATENCY, 21.0) < rank(Effect.BARRIERS, 19.3)  # 18.9 < 19.3
    assert rank(Effect.DRAM_LATENCY, 21.0) > rank(Effect.BARRIERS, 18.0)
    assert {rank(one, 1.0) for one in WAITS} == {ALIKE}
    assert Effect.BARRIERS not in WAITS


def test_waits_for_loads_count_together():
    assert rank(Effect.L2_LATENCY, 21.0, 36.0) == pytest.approx(24.0)  # 2/3 of 36 > 0.9 * 21
    assert rank(Effect.L2_LATENCY, 30.0, 36.0) == pytest.approx(27.0)
    assert rank(Effect.BARRIERS, 21.0) == 21.0


def test_what_is_saved_only_after_others_counts_less():
    """Uncoalesced accesses of a kernel that waits for each of them save nothing alone."""

    def worth(effect, part, alone):
        return Cost(effect=effect, time_s=part, alone_s=alone).worth_s

    assert worth(Effect.UNCOALESCED, 23.8, 0.0) < worth(Effect.L2_LATENCY, 24.8, 25.5)  # 21.4, 23.0
    assert worth(Effect.UNCOALESCED, 23.8, 23.8) == 23.8
    assert worth(Effect.INTEGER_PIPE, 23.8, 0.0) == 23.8  # a roof is saved alone


def test_no_edit_hides_the_first_access():
    """A launch that ends soon after its first load would save nothing by starting loads earlier."""

    def worth(first, together):
        wait = Cost(
            effect=Effect.DRAM_LATENCY, time_s=1.2, alone_s=1.2, first_s=first, together_s=together
        )
        return wait.worth_s

    assert worth(0.0, 0.0) == pytest.approx(1.08)
    assert worth(1.0, 0.0) == pytest.approx(0.18)
    assert worth(1.5, 0.0) == 0
    assert worth(1.0, 0.6) == pytest.approx(0.4)


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
