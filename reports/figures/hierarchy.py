"""The hierarchical roofline: every variant at its intensity at each memory level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isclose
from typing import NamedTuple

import plotly.graph_objects as go

from analysis import roofline as model
from analysis.comparison.hierarchy import Hierarchy, LevelBound
from analysis.records.profile import Grade, Profile, Record
from analysis.roofline import LevelName
from reports import ladder, style, text
from reports.figures import roofs
from reports.ladder import View
from reports.sections import hierarchy
from reports.sections.hierarchy import LEVELS, LaunchTraffic

TITLE = "Hierarchical roofline"
READING = (
    "Each variant stands once per memory level, at the FLOP per byte that really move there: read "
    "a point against the roof of its own colour. The farther right of its roof, the less that "
    "level matters; where a point touches its roof, that level is the limit. Open symbols are "
    "predicted (traffic by simulation; the rate of the predicted time or, without one, the rate "
    "attainable under all roofs), filled ones are measured or recorded, and the line between the "
    "two is the gap: sideways in traffic, upwards in rate. Dotted lines are the ceilings of the "
    "source texts, which take every load from DRAM: kernels run above them where caches serve "
    "loads. A button hides a variant, a level or these lines."
)

OF_TEXTS = "source texts' ceilings"
SAME = 1e-3

_NAMES = {level: level.value for level in LevelName} | {LevelName.SHARED: "shared memory"}


@dataclass(frozen=True, kw_only=True)
class _Point:
    """Point of a launch at one memory level, its grade (the fill), and its hover text."""

    fill: Grade
    flop_per_byte: float
    flop_per_s: float
    about: str


def figure(view: View) -> go.Figure:
    """Roofs of the profile's device and a pair of points per variant and level, log-log.

    `meta` of the layout holds names that a page `toggles`, in groups; `meta` of a trace those that
    it `needs` to be visible.
    """
    title = style.title_of(TITLE, view)
    found = hierarchy.launches(view)
    points = {
        (launch.label, level): own
        for launch in found
        for level in LEVELS
        if (own := tuple(_points(launch, level)))
    }
    if not points:
        return style.empty(
            title, "No traffic is known at this shape: profile with simulation or --counters."
        )
    looks = style.looks(view.profile)
    intensities = [point.flop_per_byte for own in points.values() for point in own]
    span = roofs.span_of(intensities, view.profile.device, margin=10)
    return style.figure(
        title,
        [
            *_roofs(view.profile, span, points),
            *_of_texts(view, span),
            *(_trace(looks[label].symbol, label, level, o) for (label, level), o in points.items()),
            *_keys(view, points),
        ],
        height=760,
        meta={"toggles": _toggles(view, points)},
        xaxis=style.axis(
            "FLOP per byte, per level",
            type="log",
            dtick=1,
            tickformat=",",
        ),
        yaxis=style.rate_axis(type="log", dtick=1),
    )


def _points(launch: LaunchTraffic, level: LevelName) -> Iterator[_Point]:
    """The predicted point of a launch at a level, and the measured one."""
    predicted, counted = launch.pair(level)
    if launch.predicted and predicted:
        yield from _point(
            launch, predicted, launch.predicted.grade, _foreseen(launch, launch.predicted)
        )
    reached = _reached(launch)
    if reached and counted:
        yield from _point(launch, counted, launch.counted_grade, reached)
    elif reached and predicted and launch.predicted:
        yield from _point(launch, predicted, launch.predicted.grade, reached)


class _Rate(NamedTuple):
    flop_per_s: float
    meaning: str
    fill: Grade


def _foreseen(launch: LaunchTraffic, by: Hierarchy) -> _Rate:
    """The rate of the predicted time or, without any, the attainable one."""
    if launch.predicted_flop_per_s:
        return _Rate(launch.predicted_flop_per_s, Grade.PREDICTED, Grade.PREDICTED)
    return _Rate(by.attainable_flop_per_s, f"attainable, limited by {by.limiter}", Grade.PREDICTED)


def _reached(launch: LaunchTraffic) -> _Rate | None:
    """Measured rate; for a launch that was counted but not timed, the attainable one."""
    if launch.rate_flop_per_s:
        return _Rate(launch.rate_flop_per_s, launch.rate_grade, style.fill(launch.rate_grade))
    if launch.counted:
        by = launch.counted
        meaning = f"not timed: attainable, limited by {by.limiter}"
        return _Rate(by.attainable_flop_per_s, meaning, style.fill(launch.counted_grade))
    return None


def _point(launch: LaunchTraffic, bound: LevelBound, traffic: str, rate: _Rate) -> Iterator[_Point]:
    """A point, unless nothing moves at the level: it has no place then."""
    if bound.flop_per_byte is None:
        return
    both = bound.nominal_flop_per_s and bound.reached_flop_per_s
    about = style.hover(
        f"{launch.label}, {_NAMES[bound.level]}",
        f"{text.flop_per_s(rate.flop_per_s)} ({rate.meaning})",
        f"{text.flop_per_byte(bound.flop_per_byte)}: {text.size(bound.moved_bytes)} ({traffic})",
        f"roof here: {_roof(bound)}",
        f"by the reached bandwidth: {text.flop_per_s(bound.reached_flop_per_s)}" if both else "",
        f"{text.percent(rate.flop_per_s / bound.flop_per_s)} of the roof"
        if bound.flop_per_s
        else "",
    )
    yield _Point(
        fill=rate.fill,
        flop_per_byte=bound.flop_per_byte,
        flop_per_s=rate.flop_per_s,
        about=about,
    )


def _roof(bound: LevelBound) -> str:
    if bound.flop_per_s is None:
        return "bandwidth not known"
    grade = Grade.NOMINAL if bound.nominal_flop_per_s else "reached"
    return f"{text.flop_per_s(bound.flop_per_s)} ({grade})"


Points = dict[tuple[str, LevelName], tuple[_Point, ...]]


def _trace(symbol: str, label: str, level: LevelName, points: tuple[_Point, ...]) -> style.Part:
    colour = style.LEVEL_COLOURS[level]
    return style.scatter(
        "lines+markers",
        [point.flop_per_byte for point in points],
        [point.flop_per_s for point in points],
        [point.about for point in points],
        name=style.plain(f"{label}, {_NAMES[level]}"),
        line={"color": colour, "width": 2},
        marker=style.graded(
            style.Look(colour=colour, symbol=symbol), [point.fill for point in points]
        ),
        showlegend=False,
        meta={"needs": [style.plain(label), _NAMES[level]]},
    )


def _roofs(profile: Profile, span: roofs.Span, points: Points) -> Iterator[style.Part]:
    """The roofs of the levels that are drawn; two of one bandwidth are one line."""
    of_device = model.roofline(profile.device)
    drawn = {level for _, level in points}
    levels = [one for one in of_device.levels if one.name in drawn]
    for one in levels:
        same = [o.name for o in levels if _rates(o) == _rates(one)]
        if one.name == same[0]:
            colour = style.LEVEL_COLOURS[one.name] if len(same) == 1 else style.INK
            yield from roofs.level("/".join(same), one, of_device, span, colour)
    yield from roofs.lids(of_device, span)


def _of_texts(view: View, span: roofs.Span) -> Iterator[style.Part]:
    """The ceilings of the source texts: where the loads as written meet DRAM's roof.

    Rungs of one ceiling share a line; those above the peak are none.
    """
    for rate, records in _uncached(view).items():
        theory = records[0].theory
        if theory is None:
            continue
        x = [span.low, theory.intensity_loads]
        name = f"{text.flop_per_s(rate)}, source texts: {records[0].label}"
        about = style.hover(
            f"source texts' ceiling: {text.flop_per_s(rate)}",
            f"of {text.listing([record.label for record in records])}",
            f"at {text.flop_per_byte(theory.intensity_loads)} of global loads",
            *style.broken(theory.uncached.basis),
        )
        yield style.scatter(
            "lines+markers+text",
            x,
            [rate, rate],
            about,
            name=style.plain(name),
            text=["", style.plain(text.flop_per_s(rate))],
            textposition="bottom right",
            textfont={"color": style.INK, "size": 10},
            line={"color": style.INK, "width": 1.5, "dash": "dot"},
            marker={"symbol": ["line-ns", "x-thin-open"], "size": 9, "color": style.INK},
            showlegend=False,
            meta={"needs": [OF_TEXTS]},
        )


def _uncached(view: View) -> dict[float, list[Record]]:
    """The rungs of each uncached ceiling that the device's peak does not lie below."""
    found: dict[float, list[Record]] = {}
    for record in view.rungs:
        rate = record.theory.uncached.flop_per_s if record.theory else inf
        if rate < view.profile.device.fp32_flop_per_s:
            # sums of one traffic in another order differ in their last digits
            same = next((one for one in found if isclose(one, rate, rel_tol=SAME)), rate)
            found.setdefault(same, []).append(record)
    return found


def _rates(level: model.Level) -> tuple[float | None, float | None]:
    return level.bytes_per_s, level.measured_bytes_per_s


def _drawn(points: Points) -> tuple[list[str], list[LevelName]]:
    """The variants and the levels that have a point."""
    labels = list(dict.fromkeys(label for label, _ in points))
    return labels, [one for one in LEVELS if any(one == drawn for _, drawn in points)]


def _toggles(view: View, points: Points) -> list[list[str]]:
    labels, levels = _drawn(points)
    of_texts = [OF_TEXTS] if _uncached(view) else []
    return [list(map(style.plain, labels)), [*(_NAMES[level] for level in levels), *of_texts]]


def _keys(view: View, points: Points) -> Iterator[style.Part]:
    """Legend entries: variants, levels, and the meaning of fills and dashes."""
    looks = style.looks(view.profile)
    labels, levels = _drawn(points)
    for label in labels:
        yield style.key(style.plain(label), looks[label].symbol)
    for level in levels:
        marker = {"symbol": "circle", "size": 12, "color": style.LEVEL_COLOURS[level]}
        yield style.key(_NAMES[level], "circle", marker=marker)
    if _uncached(view):
        yield roofs.line_key(OF_TEXTS, "dot")
    fills = {point.fill for own in points.values() for point in own}
    names: dict[Grade, str] = {fill: fill for fill in style.FILLS if fill in fills}
    if view.recorded and Grade.RECORDED in fills:
        names[Grade.RECORDED] = ladder.recorded_on(view.recorded)
    for fill, name in names.items():
        yield style.key(name, "circle" + style.FILLS[fill])
    yield roofs.line_key("nominal roof", "solid")
    if view.profile.device.measured:
        yield roofs.line_key("measured roof", "dash")
