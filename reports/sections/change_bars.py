"""Bars of a comparison of two launches: the parts of both times, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.records.launch import LaunchRecord
from analysis.timing.predicted import Effect
from reports import text
from reports.sections.effect_names import in_bar
from reports.sections.launch_report import LaunchReport
from reports.sections.time_parts import Part, PartClass, kept_names, parts_of_time
from reports.svg.bar import Segment, bar

HEIGHT_PX = 40


@dataclass(frozen=True, kw_only=True)
class BarRow:
    """A time, whose it is, and its bar."""

    time: str
    what: str
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class ChangeBars:
    """Rows on one scale; `key` names their segments, in `unit`."""

    rows: tuple[BarRow, ...]
    key: tuple[tuple[str, str, str, str], ...]  #: class, name, value before, value after
    unit: str
    note: str = ""


def change_bars(
    before: LaunchRecord, after: LaunchRecord, moved: Effect | None
) -> ChangeBars | None:
    """Bars of two launches, None unless both have a time. `moved` is the effect to mark.

    Both bars have the same parts, which sum to the measured time if there is one.
    """
    drawn = divided(before, after, moved)
    if drawn is None:
        return None
    reports = [_report(one) for one in (before, after)]
    whole = [sum(part.time_s for part, _ in one) for one in drawn]
    longest_s = max(whole)
    scale, unit = text.time_unit(longest_s)

    def segment(part: Part, kind: PartClass) -> Segment:
        shown = text.three_digits(part.time_s / scale)
        return Segment(share=part.time_s / longest_s, value=shown, name=part.name, class_=kind)

    rows = []
    for name, one, whole_s in zip(("before", "after"), drawn, whole, strict=True):
        segments = [segment(part, kind) for part, kind in one]
        listed = ", ".join(f"{x.name} {x.value}" for x in segments)
        if name == "after" and whole_s < whole[0]:
            saved_s = whole[0] - whole_s
            said = f"{text.three_digits(saved_s / scale)} {unit}"
            segments.append(
                Segment(
                    share=saved_s / longest_s, value="saves", name=said, class_=PartClass.MISSING
                )
            )
        label = f"Parts of the time {name}, in {unit}: {listed}"
        shown = text.predicted_seconds(whole_s)
        rows.append(BarRow(time=shown, what=name, bar=bar(segments, label, height=HEIGHT_PX)))
    scaled = [one for one, whole_s in zip(reports, whole, strict=True) if _is_shorter(one, whole_s)]
    note = "Where the predicted time is longer, its parts are scaled to the measured time."
    return ChangeBars(
        rows=tuple(rows), key=_key(drawn, scale), unit=unit, note=note if scaled else ""
    )


def divided(
    before: LaunchRecord, after: LaunchRecord, moved: Effect | None
) -> list[list[tuple[Part, PartClass]]] | None:
    """The same parts of both times, each with its kind; None unless both have a time."""
    reports = [_report(one) for one in (before, after)]
    names = kept_names(reports)
    found = [parts_of_time(one, names) for one in reports]
    if not all(found):
        return None
    marked = in_bar(moved) if moved else None
    return [[(part, _kind(part, marked)) for part in one] for one in found]


def _is_shorter(report: LaunchReport, whole_s: float) -> bool:
    return report.predicted is not None and whole_s < (1 - 1e-9) * report.predicted.time_s


def _report(one: LaunchRecord) -> LaunchReport:
    return LaunchReport(
        name=one.kernel,
        resources=one.resources,
        predicted=one.predicted,
        samples_s=one.samples_s,
    )


def _kind(part: Part, marked: str | None) -> PartClass:
    """The marked part is the only one in the colour of a cost."""
    if part.name == marked:
        return PartClass.CAUSE
    return PartClass.AVOIDABLE if part.kind == PartClass.CAUSE else part.kind


def _key(
    drawn: Sequence[Sequence[tuple[Part, PartClass]]], scale: float
) -> tuple[tuple[str, str, str, str], ...]:
    times: dict[str, list[float]] = {}
    kinds: dict[str, PartClass] = {}
    for place, one in enumerate(drawn):
        for part, kind in one:
            times.setdefault(part.name, [0.0, 0.0])[place] = part.time_s
            kinds.setdefault(part.name, kind)
    longest = max(sum(part.time_s for part, _ in one) for one in drawn) / scale
    return tuple(
        (
            kinds[name],
            name,
            text.beside(old_s / scale, longest),
            text.beside(new_s / scale, longest),
        )
        for name, (old_s, new_s) in times.items()
    )
