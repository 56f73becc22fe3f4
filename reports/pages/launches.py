"""Several launches on one page: their times as bars on one scale, and the cause of each."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from analysis.errors import shortened
from reports import text
from reports.sections.launch_facts import short_device
from reports.sections.launch_report import LaunchReport
from reports.sections.table import Table, Title, plain_table
from reports.sections.time_parts import Part, PartClass, parts_of_time
from reports.svg.bar import Segment, bar
from reports.templating import template

MOST_BARS, BAR_PX = 20, 24


def page(reports: Sequence[LaunchReport]) -> str:
    """At least two launches as one HTML page that needs no network, the longest first."""
    order = sorted(reports, key=lambda one: -(one.time_s or 0.0))
    timed = [one for one in order if one.time_s]
    return template("launches.html.j2").render(
        title=f"{len(reports):,} launches",
        verdict=_verdict(timed),
        rows=_bars(timed[:MOST_BARS]),
        more=max(0, len(timed) - MOST_BARS),
        table=_table(order),
    )


def _verdict(timed: Sequence[LaunchReport]) -> tuple[str, str]:
    if not timed:
        return "No time is known.", ""
    first = timed[0].answer
    return f"The longest is {first.time_sentence}", first.cause_sentence


def _bars(timed: Sequence[LaunchReport]) -> list[tuple[str, str, Markup]]:
    """Time, name and bar of each; the largest cause of all is the only one that is marked."""
    if not timed:
        return []
    longest_s = max(one.time_s or 0.0 for one in timed)
    costs = [one.answer.cause.time_s if one.answer.cause else 0.0 for one in timed]
    worst = costs.index(max(costs))
    rows = []
    for place, one in enumerate(timed):
        segments = [
            Segment(
                share=part.time_s / longest_s,
                value=text.predicted_seconds(part.time_s),
                name=part.name,
                class_=PartClass.AVOIDABLE
                if part.kind == PartClass.CAUSE and place != worst
                else part.kind,
            )
            for part in parts_of_time(one)
        ]
        listed = ", ".join(f"{x.name} {x.value}" for x in segments)
        drawn = bar(segments, f"{shortened(one.name)}: {listed}", height=BAR_PX)
        rows.append((text.predicted_seconds(one.time_s), shortened(one.name), drawn))
    return rows


_TITLES: tuple[Title, ...] = (
    "launch",
    "device",
    "time",
    "grade",
    "most time",
    "largest avoidable part",
    "line",
)


def _table(order: Sequence[LaunchReport]) -> Table:
    return plain_table(_TITLES, [list(_row(one)) for one in order])


def _row(one: LaunchReport) -> tuple[str, ...]:
    place, found = one.answer.place, parts_of_time(one)
    longest = max(found, key=lambda part: part.time_s, default=None)
    cause = next((part for part in found if part.kind == PartClass.CAUSE), None)
    grade = (
        "measured" if one.measured_s is not None else "predicted" if one.predicted else "no time"
    )
    return (
        shortened(one.name),
        short_device(one.device) or text.ABSENT,
        text.predicted_seconds(one.time_s),
        grade,
        _named(longest),
        _named(cause),
        f"{shortened(place[0])}:{place[1]}" if place else text.ABSENT,
    )


def _named(part: Part | None) -> str:
    """'DRAM bandwidth, 65.4 µs'"""
    return f"{part.name}, {text.predicted_seconds(part.time_s)}" if part else text.ABSENT
