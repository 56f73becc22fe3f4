"""Reasons why each rung is faster than the one before, in sentences and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from analysis.comparison.statistics import NEGLIGIBLE_CHANGE
from analysis.comparison.steps import Change, Ends, Quantity, Step, Weight
from analysis.records.profile import Grade
from reports import text
from reports.sections.table import Cell, Table, plain_table

_UNITS: dict[Quantity, Callable[[float], str]] = {
    "time": text.seconds,
    "L2 bytes": lambda value: text.size(round(value)),
    "DRAM bytes": lambda value: text.size(round(value)),
    "occupancy": text.percent,
}
_AS_RATIO: tuple[Quantity, ...] = (
    "time", "L1 sectors", "shared wavefronts", "L2 bytes", "DRAM bytes", "warp instructions",
)  # fmt: skip
_MORE_IS_LESS: tuple[Quantity, ...] = ("occupancy", "busy SMs")  # waiting, idling


def sentence(step: Step, *, grade: str = Grade.MEASURED) -> str:
    """Sentences on the speedup of a rung over the one before, and its largest reason with numbers.

    `grade` is the name for a measured time.
    """
    return " ".join([_speed(step, grade), *_why(step)])


def _speed(step: Step, grade: str) -> str:
    speedups = {Grade.PREDICTED: step.predicted_speedup, grade: step.measured_speedup}
    gains = {name: speedup for name, speedup in speedups.items() if speedup}
    told = [f"{text.ratio(gain)} ({name})" for name, gain in gains.items()]
    at_odds = min(gains.values()) < 1 < max(gains.values())
    doubt = ": the two do not agree on which is faster" if at_odds else ""
    return f"{step.after} is {text.listing(told)} as fast as {step.before}{doubt}."


def _why(step: Step) -> Iterator[str]:
    if not step.is_worth_a_reason:
        yield f"Below {text.percent(NEGLIGIBLE_CHANGE)} there is nothing to explain."
        return
    if step.reason is None:
        yield f"No resource explains it, by {step.basis}."
        return
    yield (
        f"The largest reason is {step.reason.resource}: {_moved(step, step.reason)} "
        f"(by {step.basis})."
    )
    if step.price:
        yield f"Against it, {_alone(step.price)}{_on_sms(step, step.price)}."


def reason(step: Step) -> str:
    """The largest reason in few words: 'L1 sectors 19.8× fewer: 79.1 → 4.00 µs'."""
    if step.reason is None:
        return text.ABSENT
    quantity = None if step.reason.is_step else step.reason.quantity  # a step has other parts too
    change = step.change(quantity) if quantity else None
    what = _short(change) if change else ""
    before, after = _times(step.reason.time_s)
    return f"{what or step.reason.resource}{_on_sms(step, step.reason)}: {before} → {after}"


def _short(change: Change) -> str:
    ends = change.best
    if ends is None or not ends.ratio or ends.ratio == 1:
        return ""
    return f"{change.quantity} {_factor(ends)}"


def _moved(step: Step, weight: Weight) -> str:
    """Phrase on the change in use of a resource, and the time that this use alone needs."""
    change = step.change(weight.quantity) if weight.quantity else None
    ends = change.best if change else None
    alone = _alone(weight) + _on_sms(step, weight)
    if change is None or ends is None or ends.before == ends.after:
        return alone
    is_same_way = (ends.after < ends.before) == (weight.time_s.after < weight.time_s.before)
    agrees = is_same_way != (change.quantity in _MORE_IS_LESS)
    return f"{_went(change.quantity, ends)}, {'and' if agrees else 'but'} {alone}"


def _went(quantity: Quantity, ends: Ends) -> str:
    verb = "fall" if ends.after < ends.before else "rise"
    verb += "s" if quantity == "occupancy" else ""
    before, after = map(_UNITS.get(quantity, text.count), (ends.before, ends.after))
    times = f", {_factor(ends)}" if ends.before and ends.after and quantity in _AS_RATIO else ""
    return f"{quantity} {verb} from {before} to {after}{times}"


def _factor(ends: Ends) -> str:
    """Ratio in words: '1.5× fewer' or '1.5× more'."""
    low, high = sorted((ends.before, ends.after))
    return f"{text.ratio(high / low)} {'fewer' if ends.after < ends.before else 'more'}"


def _alone(weight: Weight) -> str:
    before, after = _times(weight.time_s)
    verb = "falls" if weight.time_s.after < weight.time_s.before else "rises"
    whose = (
        f"the part of {weight.resource} in the gap from nominal peak"
        if weight.is_step
        else f"the time that {weight.resource} alone needs"
    )
    return f"{whose} {verb} from {before} to {after}"


def _on_sms(step: Step, weight: Weight) -> str:
    """Phrase on the number of SMs that share the work, if it differs."""
    busy = step.change("busy SMs")
    ends = busy.predicted if busy and weight.is_of_each_sm else None
    if ends is None or ends.before == ends.after:
        return ""
    return f" on {text.count(ends.after)} SMs instead of {text.count(ends.before)}"


def _times(ends: Ends) -> tuple[str, str]:
    """Both ends; a step of the gap is below 0 where its cause goes on beside the others."""
    before, after = (
        text.predicted_seconds(end).replace("-", "−") for end in (ends.before, ends.after)
    )
    return before, after


def table(steps: Sequence[Step], *, grade: str = Grade.MEASURED) -> Table:
    """One row per step: the gain in time by each grade, and the largest reason."""
    kinds = [
        (name, speedup)
        for name, speedup in (
            (Grade.PREDICTED, attrgetter("predicted_speedup")),
            (grade, attrgetter("measured_speedup")),
        )
        if any(map(speedup, steps))
    ]
    return plain_table(
        [
            "variant",
            *(("as fast", name, True) for name, _ in kinds),
            "largest reason",
        ],
        (
            [
                Cell(one.after, details=_over(one, before)),
                *(text.ratio(speedup(one)) for _, speedup in kinds),
                reason(one),
            ]
            for one, before in zip(steps, [None, *steps], strict=False)
        ),
    )


def _over(step: Step, before: Step | None) -> tuple[str, ...]:
    """Name of the rung that a rung is compared with, if it is not the one of the row above."""
    return () if before and before.after == step.before else (f"over {step.before}",)
