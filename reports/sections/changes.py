"""The verdict of a comparison: better or worse, by which factor, and the cause that moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparison.causes import CauseChange
from analysis.comparison.counts import Outcome
from analysis.comparison.runs import Pair, RunComparison
from analysis.comparison.statistics import TimeVerdict
from analysis.errors import shortened
from analysis.records.launch import LaunchRecord
from analysis.timing.predicted import Effect
from reports import text

ISSUE = (Effect.FP32_PIPE, Effect.OTHER_INSTRUCTIONS)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The number of a comparison, its unit and grade.

    `is_worse` is True if it costs time, False if it gives it back, None for no change.
    """

    value: str
    unit: str
    grade: str
    is_worse: bool | None


@dataclass(frozen=True, kw_only=True)
class TimeShift:
    """Times of one launch on both sides, measured ones where both sides have them."""

    before_s: float
    after_s: float
    is_measured: bool
    #: False if samples are consistent with a change and with none, or the intervals of predictions
    is_clear: bool
    is_worse: bool | None  #: None for no change, or no clear one

    @property
    def factor(self) -> float:
        """The longer time over the shorter one."""
        short, long = sorted((self.before_s, self.after_s))
        return long / short if short else 1.0

    @property
    def words(self) -> str:
        """'1.92× faster', 'no change'"""
        if self.is_worse is None:
            return "no change" if self.is_clear else "no clear change"
        return f"{text.ratio(self.factor)} {'slower' if self.is_worse else 'faster'}"


def shift(pair: Pair) -> TimeShift | None:
    """Return the change of a launch's time, None if it is not known on both sides."""
    if time := pair.time:
        is_worse = {TimeVerdict.SLOWER: True, TimeVerdict.FASTER: False}.get(time.verdict)
        return TimeShift(
            before_s=time.before_s,
            after_s=time.after_s,
            is_measured=True,
            is_clear=time.verdict != TimeVerdict.AMBIGUOUS,
            is_worse=is_worse,
        )
    if (found := pair.predicted) is None:
        return None
    is_same = text.ratio(found.change) == text.ratio(1.0)
    return TimeShift(
        before_s=found.before_s,
        after_s=found.after_s,
        is_measured=False,
        is_clear=is_same or found.is_clear,
        is_worse=found.after_s > found.before_s if found.is_clear and not is_same else None,
    )


def time_sentence(pair: Pair, *, with_factor: bool = True) -> str:
    """'transpose: 26.7 → 13.9 µs predicted, 1.92× faster.', empty without both times."""
    found = shift(pair)
    if found is None:
        return ""
    grade = "measured" if found.is_measured else "predicted"
    one = text.seconds if found.is_measured else text.predicted_seconds
    before, after = one(found.before_s), one(found.after_s)
    number, _, unit = before.partition(" ")
    times = f"{number if after.endswith(f' {unit}') else before} → {after}"
    shown = before if before == after else times
    change = f", {found.words}" if with_factor else ""
    return f"{shortened(pair.label)}: {shown} {grade}{change}."


def cause_sentence(pair: Pair) -> str:
    """The cause that moved most, and the limiter if it is another one; empty without either."""
    told = [f"{one}." for one in _moved(pair.causes)[:1]]
    if (found := pair.predicted) and found.limiter_before != found.limiter_after:
        told.append(f"Limiter: {found.limiter_before} before, {found.limiter_after} after.")
    return " ".join(told)


def _moved(causes: Sequence[CauseChange]) -> list[str]:
    """'Shared-memory bank conflicts: 13.1 → 0 µs', the cause that moved most first.

    The two parts of the roof of issue are one, as in the answer on a launch.
    """
    times = {str(one.effect): (one.before_s, one.after_s) for one in causes}
    parts = [times[one] for one in ISSUE if one in times]
    if len(parts) == len(ISSUE):
        times = {name: time for name, time in times.items() if name not in ISSUE}
        times["instruction issue"] = (sum(x for x, _ in parts), sum(x for _, x in parts))
    order = sorted(times, key=lambda name: -abs(times[name][1] - times[name][0]))
    return [_from_to(name, *times[name]) for name in order]


def _from_to(name: str, before_s: float, after_s: float) -> str:
    longer_s = max(before_s, after_s)
    scale, unit = text.time_unit(longer_s)
    before, after = (text.beside(x / scale, longer_s / scale) for x in (before_s, after_s))
    return f"{name[0].upper()}{name[1:]}: {before} → {after} {unit}"


def headline(comparison: RunComparison) -> Headline:
    """Return the first sentence: the factor of a launch, or the number of rungs that changed."""
    shifts = [found for pair in comparison.pairs if (found := shift(pair))]
    if isinstance(comparison.before, LaunchRecord) and shifts:
        (one,) = shifts
        grade = "measured" if one.is_measured else "predicted"
        if one.is_worse is None:
            return Headline(value=text.ratio(1.0), unit=one.words, grade=grade, is_worse=None)
        value, _, unit = one.words.partition(" ")
        return Headline(value=value, unit=unit, grade=grade, is_worse=one.is_worse)
    if measured := [one for one in shifts if one.is_measured]:
        shifts = measured
    grade = f"of {len(shifts)} {'measured' if measured else 'predicted'} times"
    for is_worse, unit in ((True, "slower"), (False, "faster")):
        if number := sum(one.is_worse is is_worse for one in shifts):
            return Headline(value=f"{number:,}", unit=unit, grade=grade, is_worse=is_worse)
    if shifts:
        return Headline(value="0", unit="changed", grade=grade, is_worse=None)
    changed = sum(len(pair.changed) for pair in comparison.pairs)
    unit = "count changed" if changed == 1 else "counts changed"
    return Headline(value=f"{changed:,}", unit=unit, grade="no times", is_worse=None)


def is_changed(pair: Pair) -> bool:
    """True if the predicted time of a launch changed."""
    return pair.predicted is not None and pair.predicted.verdict == Outcome.CHANGED
