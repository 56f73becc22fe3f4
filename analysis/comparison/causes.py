"""Comparison of what two predicted times are spent on, by effect and by source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparison.lines import aligned
from analysis.records.profile import LineCounters
from analysis.timing.predicted import Effect, Predicted

MOVED = 0.02  # of the longer time: smaller differences are not named


@dataclass(frozen=True, kw_only=True)
class CauseChange:
    """Cost of one effect on both sides, in seconds."""

    effect: Effect
    before_s: float
    after_s: float

    @property
    def difference_s(self) -> float:
        return self.after_s - self.before_s


@dataclass(frozen=True, kw_only=True)
class LineCostChange:
    """Cost of one source line on both sides, in seconds; None if a side lacks the line."""

    file: str
    text: str
    line_before: int | None
    line_after: int | None
    before_s: float | None
    after_s: float | None

    @property
    def difference_s(self) -> float:
        return (self.after_s or 0.0) - (self.before_s or 0.0)


def cause_changes(before: Predicted, after: Predicted) -> tuple[CauseChange, ...]:
    """Effects whose cost moved by at least `MOVED` of the longer time, the largest move first."""
    ours, theirs = ({cost.effect: cost.time_s for cost in one.costs} for one in (before, after))
    if not ours or not theirs:
        return ()
    least_s = MOVED * max(before.time_s, after.time_s)
    found = [
        CauseChange(effect=effect, before_s=ours.get(effect, 0.0), after_s=theirs.get(effect, 0.0))
        for effect in dict.fromkeys([*ours, *theirs])
    ]
    moved = [one for one in found if abs(one.difference_s) >= least_s]
    return tuple(sorted(moved, key=lambda one: -abs(one.difference_s)))


def line_cost_changes(
    before: Predicted,
    after: Predicted,
    lines_before: Sequence[LineCounters],
    lines_after: Sequence[LineCounters],
) -> tuple[LineCostChange, ...]:
    """Source lines whose cost moved by at least `MOVED` of the longer time, likewise."""
    ours, theirs = (
        {(cost.file, cost.line): cost.time_s for cost in one.lines} for one in (before, after)
    )
    if not ours or not theirs:
        return ()
    least_s = MOVED * max(before.time_s, after.time_s)
    found = []
    for first, second in aligned(lines_before, lines_after):
        known = second or first
        assert known is not None
        found.append(
            LineCostChange(
                file=known.file,
                text=known.text,
                line_before=first.line if first else None,
                line_after=second.line if second else None,
                before_s=ours.get((first.file, first.line), 0.0) if first else None,
                after_s=theirs.get((second.file, second.line), 0.0) if second else None,
            )
        )
    moved = [one for one in found if abs(one.difference_s) >= least_s]
    return tuple(sorted(moved, key=lambda one: -abs(one.difference_s)))
