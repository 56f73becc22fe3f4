"""A time divided into the parts that its bar shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from analysis.timing.predicted import Cost, Effect, Predicted
from reports.sections.effect_names import in_bar
from reports.sections.launch_report import LaunchReport

MOST_PARTS = 6  # of one bar
LEAST_SHARE = 0.01  # of the time: smaller parts are one
OTHERS = "other"


class PartClass(StrEnum):
    """Classes of a part in the style sheet."""

    CAUSE = "c0"  # the largest avoidable part
    ROOF = "s1"
    AVOIDABLE = "s2"
    REST = "s3"
    UNEXPLAINED = "unexplained"  # from a predicted time to a longer measured one
    MISSING = "saved"  # what a shorter time saves


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    time_s: float
    kind: PartClass


def parts(report: LaunchReport, names: Collection[str] | None = None) -> list[Part]:
    """Parts of the predicted time, which sum to it; then what a longer measured time has more.

    Without a prediction a measured time is one part. Empty if there is neither. Parts whose names
    are not among `names` are joined to one; None for those of `kept_names([report])`.
    """
    predicted, measured_s = report.predicted, report.measured_s
    if predicted is None:
        whole = Part(name="measured, not divided", time_s=measured_s or 0, kind=PartClass.REST)
        return [whole] if measured_s else []
    kept = kept_names([report]) if names is None else names
    found = _joined(_predicted(predicted, report.answer.cause), kept)
    if measured_s is not None and measured_s > predicted.time_s:
        left_s = measured_s - predicted.time_s
        found.append(Part(name="unexplained", time_s=left_s, kind=PartClass.UNEXPLAINED))
    return found


def parts_of_time(report: LaunchReport, names: Collection[str] | None = None) -> list[Part]:
    """The same parts, which sum to the measured time if there is one.

    Where the predicted time is longer, each part keeps its share and is scaled to the measured one.
    """
    found, predicted, measured_s = parts(report, names), report.predicted, report.measured_s
    if predicted is None or measured_s is None or measured_s >= predicted.time_s:
        return found
    scale = measured_s / predicted.time_s
    return [replace(part, time_s=scale * part.time_s) for part in found]


def kept_names(reports: Iterable[LaunchReport]) -> set[str]:
    """Names of the parts that are not joined to others in the bar of at least one report."""
    return {name for one in reports if one.predicted for name in _kept(one, one.predicted)}


def _predicted(predicted: Predicted, cause: Cost | None) -> Iterator[Part]:
    """Avoidable parts, the cause first, then the roof, and the launch last."""
    if not predicted.costs:
        work_s = predicted.time_s - predicted.launch_s
        yield Part(name="work, not divided", time_s=work_s, kind=PartClass.ROOF)
        yield Part(name=Effect.LAUNCH, time_s=predicted.launch_s, kind=PartClass.REST)
        return
    order = sorted(predicted.costs, key=lambda cost: (cost is not cause, not cost.is_avoidable))
    for cost in order:
        kind = PartClass.CAUSE if cost is cause else _class_of(cost)
        yield Part(name=in_bar(cost.effect), time_s=cost.time_s, kind=kind)


def _class_of(cost: Cost) -> PartClass:
    """Class of a part that is not the cause."""
    if cost.is_roof:
        return PartClass.ROOF
    return PartClass.AVOIDABLE if cost.is_avoidable else PartClass.REST


def _kept(report: LaunchReport, predicted: Predicted) -> set[str]:
    """Names of the parts of one report that are not joined; a single small one stays."""
    found = list(_predicted(predicted, report.answer.cause))
    least_s = LEAST_SHARE * predicted.time_s
    kept = sorted(found, key=lambda part: -part.time_s)[:MOST_PARTS]
    small = {p.name for p in found if p not in kept or p.time_s < least_s}
    small -= {Effect.LAUNCH}
    return {part.name for part in found} - (small if len(small) > 1 else set())


def _joined(found: Iterable[Part], names: Collection[str]) -> list[Part]:
    """The parts with those joined to one whose names are not among `names`, before the launch."""
    found = [part for part in found if part.time_s > 0]
    left = [part for part in found if part.name in names]
    other_s = sum(part.time_s for part in found if part.name not in names)
    if not other_s:
        return left
    other = Part(name=OTHERS, time_s=other_s, kind=PartClass.REST)
    at = next((k for k, part in enumerate(left) if part.name == Effect.LAUNCH), len(left))
    return [*left[:at], other, *left[at:]]
