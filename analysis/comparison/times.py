"""Changes of the measured and of the predicted time of one launch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.comparison.counts import Outcome
from analysis.comparison.interval import change_interval
from analysis.comparison.statistics import TimeVerdict, quotient, time_verdict
from analysis.records.profile import Interval, Measured
from analysis.timing.predicted import Predicted

ROUNDING = 1e-9  # of a predicted time: far above what an order of sums does, below any cycle


@dataclass(frozen=True, kw_only=True)
class TimeChange:
    """Two medians, and the verdict on them; `reason` says why a verdict is ambiguous.

    `change` is after over before, `change_interval` its interval: each end is wrong with a chance
    of at most 5%.
    """

    before_s: float
    after_s: float
    before_interval_s: Interval | None
    after_interval_s: Interval | None
    before_samples: int
    after_samples: int
    change: float | None
    change_interval: Interval | None
    verdict: TimeVerdict
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class PredictionChange:
    """Two predicted times, their limiters, and whether anything of them changed.

    `change` is after over before, `change_interval` its 80% interval, None where a prediction has
    none.
    """

    before_s: float
    after_s: float
    limiter_before: str
    limiter_after: str
    change: float | None
    verdict: Outcome
    change_interval: tuple[float, float] | None = None

    @property
    def is_clear(self) -> bool:
        """False if the errors of both predictions allow that the other one is faster."""
        if self.change_interval is None:
            return True
        low, high = self.change_interval
        return not low <= 1 <= high


def time_change(
    before: Measured | None, after: Measured | None, same_device: bool
) -> tuple[TimeChange | None, str]:
    """Change of the times, or the reason why there is none."""
    if before is None or after is None:
        if before is None and after is None:
            return None, ""
        which = "first" if after is None else "second"
        return None, f"measured times are not compared: only the {which} side has one"
    if not same_device:
        return None, ""  # said once, for all records
    if obstacle := _obstacle(before, after):
        return None, f"times are not compared: {obstacle}"
    change = quotient(after.interval_s, before.interval_s)
    verdict = time_verdict(change)
    changed = TimeChange(
        before_s=before.median_s,
        after_s=after.median_s,
        before_interval_s=before.interval_s,
        after_interval_s=after.interval_s,
        before_samples=len(before.samples_s),
        after_samples=len(after.samples_s),
        change=after.median_s / before.median_s if before.median_s else None,
        change_interval=change,
        verdict=verdict,
        reason=_why_ambiguous(before, after) if verdict == TimeVerdict.AMBIGUOUS else None,
    )
    return changed, ""


def _obstacle(before: Measured, after: Measured) -> str:
    """Reason why two times are not comparable; empty if they are."""
    if before.clock != after.clock:
        return f"{before.clock} before, {after.clock} after"
    if before.clock == "host clock":
        return "times of the host's CPU depend on its other load and are not those of a kernel"
    if before.l2 != after.l2:
        return f"L2 was {before.l2} before and {after.l2} after"
    return ""


def _why_ambiguous(before: Measured, after: Measured) -> str:
    if before.interval_s is None or after.interval_s is None:
        counts = f"{len(before.samples_s)} before, {len(after.samples_s)} after"
        return f"too few samples for an interval ({counts}): 6 are needed"
    return (
        "the samples are consistent with a change and with none: take more samples, or hold the "
        "clock steady"
    )


def predicted_change(
    before: Predicted | None, after: Predicted | None, same_device: bool
) -> tuple[PredictionChange | None, str]:
    """Change of the predicted times, and notes on it."""
    if before is None or after is None or not same_device:
        return None, ""
    if before.l2 != after.l2:
        return None, (
            f"predicted times are not compared: L2 was {before.l2} before and {after.l2} after"
        )
    # sums of another order differ in their last digits: that is no change
    same_time = math.isclose(before.time_s, after.time_s, rel_tol=ROUNDING)
    is_same = same_time and before.limiter == after.limiter
    change = PredictionChange(
        before_s=before.time_s,
        after_s=after.time_s,
        limiter_before=before.limiter,
        limiter_after=after.limiter,
        change=after.time_s / before.time_s if before.time_s else None,
        verdict=Outcome.SAME if is_same else Outcome.CHANGED,
        change_interval=change_interval(before, after),
    )
    if before.constants == after.constants:
        return change, ""
    return change, (
        f"predicted with constants of {before.constants} before, of {after.constants} after"
    )
