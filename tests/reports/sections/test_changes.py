"""Sentences of a comparison: the factor of a launch, the cause that moved, the limiter."""

import pytest

from analysis.comparison.causes import CauseChange
from analysis.comparison.counts import Outcome
from analysis.comparison.runs import Pair
from analysis.comparison.times import PredictionChange
from analysis.timing.predicted import Effect
from reports.sections.changes import cause_sentence, shift, time_sentence


def pair(*, before_us, after_us, limiters=("latency", "latency"), causes=()):
    return Pair(
        label="transpose",
        shape=None,
        status_before="ok",
        status_after="ok",
        compared=0,
        counts=(),
        time=None,
        predicted=prediction(before_us * 1e-6, after_us * 1e-6, *limiters),
        causes=causes,
    )


def prediction(before_s, after_s, limiter_before, limiter_after):
    return PredictionChange(
        before_s=before_s,
        after_s=after_s,
        limiter_before=limiter_before,
        limiter_after=limiter_after,
        change=after_s / before_s,
        verdict=Outcome.CHANGED,
    )


@pytest.mark.parametrize(
    ("before_us", "after_us", "words"), [(30, 12, "2.50× faster"), (12, 30, "2.50× slower")]
)
def test_the_factor_is_the_longer_time_over_the_shorter(before_us, after_us, words):
    compared = pair(before_us=before_us, after_us=after_us)
    found = shift(compared)
    assert found is not None
    assert found.factor == pytest.approx(2.5)
    assert time_sentence(compared).endswith(f"µs predicted, {words}.")


def test_a_limiter_that_stays_is_not_told():
    assert cause_sentence(pair(before_us=30, after_us=12)) == ""


def test_a_limiter_that_changes_is_told_after_the_cause():
    moved = CauseChange(effect=Effect.CONFLICTS, before_s=13.1e-6, after_s=0.0)
    compared = pair(
        before_us=30, after_us=12, limiters=("shared memory", "latency"), causes=(moved,)
    )
    said = (
        "Shared-memory bank conflicts: 13.1 → 0 µs. Limiter: shared memory before, latency after."
    )
    assert cause_sentence(compared) == said


def test_the_two_parts_of_issue_move_as_one():
    causes = (
        CauseChange(effect=Effect.DRAM_LATENCY, before_s=0.0, after_s=80e-6),
        CauseChange(effect=Effect.FP32_PIPE, before_s=91e-6, after_s=19e-6),
        CauseChange(effect=Effect.OTHER_INSTRUCTIONS, before_s=150e-6, after_s=93e-6),
    )
    compared = pair(before_us=292, after_us=170, causes=causes)
    assert cause_sentence(compared) == "Instruction issue: 241 → 112 µs."
    compared = pair(before_us=292, after_us=170, causes=causes[:2])
    assert cause_sentence(compared) == "Waiting for DRAM: 0 → 80.0 µs."
