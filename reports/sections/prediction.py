"""Predicted times in words and as tables: their errors, and the bounds of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from analysis.comparison.accuracy import Accuracy, accuracies
from analysis.comparison.gap import steps_to_measured
from analysis.comparison.steps import Step
from analysis.devices import DEVICES, Device
from analysis.hardware.sm_constants import constants_of
from analysis.records.profile import Grade
from analysis.timing.predicted import Predicted
from reports import text
from reports.ladder import Timing, View
from reports.sections.effect_names import in_table
from reports.sections.table import Table, plain_table


def told_steps(view: View) -> tuple[Step, ...]:
    """The steps of the ladder that have counts, so that a reason can be given."""
    return tuple(one for one in view.steps if one.basis)


# In words.


def verdict(found: Sequence[Timing]) -> str:
    """Error of the predicted times relative to the measured ones."""
    compared = [one for one in found if one.ratio]
    if not compared:
        return "No rung was timed here."
    errors = {one.record.label: one.ratio - 1 for one in compared if one.ratio}
    worst = max(errors, key=lambda label: abs(errors[label]))
    # of factors: half and twice the time are errors of one size
    typical = exp(fmean(abs(log(one.ratio)) for one in compared if one.ratio)) - 1
    if len(compared) == 1:
        return f"The prediction of {worst} is {text.change(errors[worst])} off."
    return (
        f"{len(compared)} rungs were timed: predictions are {text.percent(typical)} off on "
        f"average, {text.change(errors[worst])} at worst ({worst})."
    )


def trust(device: Device) -> str:
    """Measured accuracy of predictions of the ladder for a device, and where constants are from."""
    known = [one for one in accuracies(device) if one.kernels == "ladder"]
    found = constants_of(device)
    source = found.taken_from
    constants = f"; most constants are those of {source}" if source else ""
    if (own := found.own) is not None:
        constants = f"; here {len(own.values)} constants were measured on {own.gpu} ({own.file})"
    if not known:
        return f"Predictions for this GPU were never compared with measured times{constants}."
    others = list(dict.fromkeys(DEVICES[one.device].name for one in known))
    is_own = others == [device.name]
    which = "this GPU" if is_own else f"{text.listing(others)} (also {device.sm_arch})"
    errors = ", ".join(map(_error, known))
    if own is not None:
        errors += " with the constants of this package"
    return f"Predictions for {which}: mean error {errors}{constants}."


def _error(one: Accuracy) -> str:
    """'4.8 % on 26 held-out launches'"""
    return f"{text.percent(one.mean_error)} on {one.launches} {_how(one)} launches"


def _how(one: Accuracy) -> str:
    return "held-out" if one.is_held_out else "fitted"


def limits(predicted: Predicted) -> str:
    """'limited by shared memory (busy 71.0 % of the time), then issue (64.2 %)'"""
    share = text.busy(predicted.limiter, predicted.limiter_share)
    return (
        f"limited by {predicted.limiter} ({share} of the time), then "
        f"{predicted.next_limiter} ({text.percent(predicted.next_share)})"
    )


# As tables.


def bounds_table(predicted: Predicted, *, share: float) -> Table:
    """The bounds of at least `share` of the time, the longest first."""
    titles = ("resource alone", ("time", Grade.PREDICTED, True), "basis")
    return plain_table(titles, bound_rows(predicted, share))


def bound_rows(predicted: Predicted, share: float = 0.0) -> Iterator[tuple[str, str, str]]:
    """(name, time, basis) of each bound of at least `share` of the time, the longest first."""
    for bound in sorted(predicted.bounds, key=lambda bound: -bound.time_s):
        if bound.time_s >= share * predicted.time_s:
            yield bound.name, text.predicted_seconds(bound.time_s), bound.basis


@dataclass(frozen=True, kw_only=True)
class PartRow:
    """A part of the time of a launch, or a total of all parts before it."""

    name: str
    time_s: float
    about: str
    text: str
    is_total: bool = False


def part_rows_of(one: Timing) -> Iterator[PartRow]:
    """The parts of the predicted time, and the steps to the measured one."""
    predicted, about = one.predicted, "the sum of the parts above"
    for cost in predicted.costs:
        yield PartRow(
            name=in_table(cost.effect),
            time_s=cost.time_s,
            about=cost.detail,
            text=text.predicted_seconds(cost.time_s),
        )
    total = text.predicted_seconds(predicted.time_s)
    yield PartRow(
        name=Grade.PREDICTED, time_s=predicted.time_s, about=about, text=total, is_total=True
    )
    if one.measured:
        for step in steps_to_measured(predicted, one.measured):
            yield PartRow(
                name=in_table(step.name),
                time_s=step.time_s,
                about=step.detail,
                text=signed_seconds(step.time_s),
            )
        name, time_s = one.grade.partition(" ")[0], one.measured.median_s  # the date is left out
        yield PartRow(
            name=name, time_s=time_s, about=one.grade, text=text.seconds(time_s), is_total=True
        )


def signed_seconds(time_s: float) -> str:
    """A time with its sign: '+12.3 µs', '−1.20 µs'."""
    return f"{'−' if time_s < 0 else '+'}{text.predicted_seconds(abs(time_s))}"
