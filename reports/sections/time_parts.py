"""A time divided into the parts that its bar shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from analysis.timing.predicted import Cost, Effect, Predicted
from reports.sections.launch_report import LaunchReport

MOST_PARTS = 6  # of one bar
LEAST_SHARE = 0.01  # of the time: smaller parts are one
OTHERS = "other"

# Names that fit into a bar; other effects have their own
SHORT = {
    Effect.CONFLICTS: "bank conflicts",
    Effect.REGISTER_BANKS: "register banks",
    Effect.DEPENDENCES: "waiting for instructions",
    Effect.OTHER_INSTRUCTIONS: "non-FP32 instructions",
    Effect.SHARED_WAVEFRONTS: "shared wavefronts",
    Effect.REMAINDER: "no overlap",
}


def short_name(effect: Effect) -> str:
    """Name of an effect that fits into a bar."""
    return SHORT.get(effect, effect)


class Kind(StrEnum):
    """Classes of a part in the style sheet."""

    CAUSE = "c0"  # the largest avoidable part
    ROOF = "s1"
    AVOIDABLE = "s2"
    REST = "s3"
    UNEXPLAINED = "unexplained"  # from a predicted time to a longer measured one
    MISSING = "saved"  # from a measured time to a longer predicted one


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    time_s: float
    kind: Kind


def parts(report: LaunchReport) -> list[Part]:
    """Parts of the predicted time, which sum to it; then what differs from the measured time.

    Without a prediction a measured time is one part. Empty if there is neither.
    """
    predicted, measured_s = report.predicted, report.measured_s
    if predicted is None:
        whole = Part(name="measured, not divided", time_s=measured_s or 0, kind=Kind.REST)
        return [whole] if measured_s else []
    found = _few(list(_predicted(predicted, report.answer.cause)), predicted.time_s)
    if measured_s is not None and measured_s > predicted.time_s:
        left_s = measured_s - predicted.time_s
        found.append(Part(name="unexplained", time_s=left_s, kind=Kind.UNEXPLAINED))
    return found


def _predicted(predicted: Predicted, cause: Cost | None) -> Iterator[Part]:
    """Avoidable parts, the cause first, then the roof, and the launch last."""
    if not predicted.costs:  # of an earlier version
        work_s = predicted.time_s - predicted.launch_s
        yield Part(name="work, not divided", time_s=work_s, kind=Kind.ROOF)
        yield Part(name=Effect.LAUNCH, time_s=predicted.launch_s, kind=Kind.REST)
        return
    order = sorted(predicted.costs, key=lambda cost: (cost is not cause, not cost.is_avoidable))
    for cost in order:
        kind = (
            Kind.CAUSE
            if cost is cause
            else Kind.ROOF
            if cost.is_roof
            else Kind.AVOIDABLE
            if cost.is_avoidable
            else Kind.REST
        )
        yield Part(name=short_name(cost.effect), time_s=cost.time_s, kind=kind)


def _few(found: Sequence[Part], whole_s: float) -> list[Part]:
    """The same parts with the smallest ones joined to one, before the launch."""
    kept = sorted(found, key=lambda part: -part.time_s)[:MOST_PARTS]
    small = [p for p in found if p not in kept or p.time_s < LEAST_SHARE * whole_s]
    small = [part for part in small if part.name != Effect.LAUNCH]
    if len(small) < 2:
        return [part for part in found if part.time_s > 0]
    others = Part(name=OTHERS, time_s=sum(part.time_s for part in small), kind=Kind.AVOIDABLE)
    left = [part for part in found if part not in small]
    at = next((k for k, part in enumerate(left) if part.name == Effect.LAUNCH), len(left))
    return [*left[:at], replace(others, kind=Kind.REST), *left[at:]]
