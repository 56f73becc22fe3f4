"""Reasons why each rung is faster than the one before, in sentences and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from analysis.comparison.statistics import NEGLIGIBLE_CHANGE
from analysis.comparison.steps import Change, Ends, Quantity, Step, Weight
from analysis.records.profile import Grade
from analysis.timing.predicted import ROOFS, Resource
from reports import text
from reports.sections.effect_names import in_column, in_table
from reports.sections.table import Cell, Table, plain_table

# Subject and verb of a quantity that a resource serves
_SERVES: Mapping[Quantity, str] = MappingProxyType(
    {
        "L1 sectors": "L1 serves {} sectors",
        "shared wavefronts": "shared memory serves {} wavefronts",
        "L2 bytes": "L2 moves {} bytes",
        "DRAM bytes": "DRAM moves {} bytes",
        "warp instructions": "the kernel issues {} warp instructions",
    }
)
NOT_THE_LIMIT = "not the limit"
NO_CAUSE = "no single cause stands out."
WITHIN = f"Within {100 * NEGLIGIBLE_CHANGE:.0f} % of {{}}: {NO_CAUSE}"


def has_reason(step: Step) -> bool:
    """True if a reason is known, and the speedup, measured if possible, is worth one."""
    return step.reason is not None and _is_changed(step)


def _is_changed(step: Step) -> bool:
    return step.speedup is None or abs(step.speedup - 1) > NEGLIGIBLE_CHANGE


def why(step: Step) -> str:
    """Sentence on the largest reason: 'L1 serves 6.60× fewer sectors.'"""
    if step.reason is None or not has_reason(step):
        is_within = step.reason is None or not _is_changed(step)
        return WITHIN.format(step.before) if is_within else _sentence(NO_CAUSE.rstrip("."))
    change = _counted(step)
    ends = change.best if change else None
    if change and ends and change.quantity in _SERVES and ends.ratio not in (None, 0, 1):
        return _sentence(_SERVES[change.quantity].format(_factor(ends)))
    return _sentence(f"{reason_name(step)} {_cost(step.reason)}")


def reason_name(step: Step) -> str:
    """Name the reason of a step, as the heading of its two times."""
    assert step.reason is not None
    name = step.reason.resource
    if step.reason.is_part:
        return in_table(name)
    return f"{name} traffic" if name in _TRAFFIC else name


_TRAFFIC = (Resource.L1, Resource.L2, Resource.DRAM)


def _cost(weight: Weight) -> str:
    before, after = weight.time_s.before, weight.time_s.after
    if weight.is_part:
        verb = "cost" if _is_plural(weight.resource) else "costs"
        direction = "more" if after > before else "less"
        return f"{verb} {text.predicted_seconds(abs(after - before))} {direction}"
    if not before:
        return f"needs {text.predicted_seconds(after)} more"
    change = after / before - 1
    if change < 1:
        more = "more" if change > 0 else "less"
        return f"needs {text.three_digits(100 * abs(change))} % {more}"
    return f"needs {text.ratio(after / before)} as much"


def _is_plural(name: str) -> bool:
    """True for 'idle SMs', False for 'waiting at barriers'."""
    return in_table(name).endswith("s") and not name.startswith(("waiting", "starting"))


def _sentence(words: str) -> str:
    return f"{text.capital(words)}."


def brief(step: Step) -> str:
    """The largest reason for a narrow column: 'L1 sectors 6.60× fewer', 'barriers 281 → 0 µs'."""
    if step.reason is None or not has_reason(step):
        return ""
    change = _counted(step)
    told = _short(change) if change else ""
    if told:
        return told.removeprefix("shared ").removeprefix("warp ")
    ends = step.reason.time_s
    name = step.reason.resource
    short = in_column(name)
    if not min(ends.before, ends.after) and name in ROOFS:
        return f"{short}: {NOT_THE_LIMIT if ends.before else 'now the limit'}"
    scale, unit = text.time_unit(max(ends.before, ends.after))
    before, after = (text.three_digits(end / scale) for end in (ends.before, ends.after))
    return f"{short} {before} → {after} {unit}"


def reason(step: Step) -> str:
    """The largest reason with its times: 'L1 sectors 19.8× fewer: 79.1 → 4.00 µs'."""
    if step.reason is None:
        return text.ABSENT
    change = _counted(step)
    what = _short(change) if change else ""
    ends = step.reason.time_s
    before, after = (time_in_words(step.reason, end) for end in (ends.before, ends.after))
    name = in_table(step.reason.resource)
    return f"{what or name}{_on_sms(step, step.reason)}: {before} → {after}"


def _counted(step: Step) -> Change | None:
    """Change of the count that the reason is about, if it changed as the time did."""
    if step.reason is None or step.reason.quantity is None:
        return None
    change = step.change(step.reason.quantity)
    if change is None or change.best is None or step.basis == "predicted bounds":
        return change
    time_s, count = step.reason.time_s, change.best
    return change if (count.after < count.before) == (time_s.after < time_s.before) else None


def _short(change: Change) -> str:
    ends = change.best
    if ends is None or not ends.ratio or ends.ratio == 1:
        return ""
    is_share = change.quantity == "occupancy"
    return f"{change.quantity} {_factor(ends, *(('lower', 'higher') if is_share else ()))}"


def _factor(ends: Ends, below: str = "fewer", above: str = "more") -> str:
    """Ratio in words: '1.5× fewer' or '1.5× more'."""
    low, high = sorted((ends.before, ends.after))
    return f"{text.ratio(high / low)} {below if ends.after < ends.before else above}"


def _on_sms(step: Step, weight: Weight) -> str:
    """Phrase on the number of SMs that share the work, if it differs."""
    busy = step.change("busy SMs")
    ends = busy.predicted if busy and weight.is_of_each_sm else None
    if ends is None or ends.before == ends.after:
        return ""
    return f" on {text.count(ends.after)} SMs instead of {text.count(ends.before)}"


def time_in_words(weight: Weight, time_s: float) -> str:
    """Time of a part. A roof without one may be busy, but another one limits the kernel."""
    is_other_roof = weight.resource in ROOFS and not time_s
    return NOT_THE_LIMIT if is_other_roof else text.predicted_seconds(time_s)


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
            *(("speedup", name, True) for name, _ in kinds),
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
