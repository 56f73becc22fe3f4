"""Roofline of all rungs: each at the FLOP per byte that it moves at every memory level."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import roofline as model
from analysis.comparison.hierarchy import LevelBound
from analysis.roofline import LevelName
from reports import style, text
from reports.figures import roofs
from reports.ladder import View, roofs_of_tensor_cores
from reports.sections import hierarchy
from reports.sections.hierarchy import LEVELS, LaunchTraffic

TITLE = "Roofline of all rungs"
READING = "The nearer a point to the roof of its level, the more this memory limits the rung."

_NAMES = {level: level.value for level in LevelName} | {LevelName.SHARED: "shared memory"}
TERA = 1e12


def figure(view: View, chosen: str | None = None) -> style.Figure:
    """Roofs of the device, and a point per rung and level at the rung's rate, log-log.

    Points of the label `chosen` stand out. Filled points are measured, open ones predicted.
    """
    title = style.title_of(TITLE, view)
    found = hierarchy.launches(view)
    points = {
        level: [(one, bound) for one in found if (bound := _bound(one, level))] for level in LEVELS
    }
    drawn = [level for level in LEVELS if points[level]]
    if not drawn:
        return style.empty(
            title, "No traffic is known at this shape: profile with simulation or --counters."
        )
    intensities = [b.flop_per_byte for of in points.values() for _, b in of if b.flop_per_byte]
    span = roofs.span_of(intensities, view.profile.device, margin=10)
    return style.figure(
        title,
        [
            *_roofs(view, span, drawn),
            *(_trace(view, level, points[level], chosen) for level in drawn),
        ],
        height=560,
        xaxis=style.axis("FLOP per byte at the level", type="log", dtick=1, tickformat=","),
        yaxis=style.rate_axis(),
    )


def _bound(launch: LaunchTraffic, level: LevelName) -> LevelBound | None:
    """Return the bytes that a launch moves at a level: counted, else simulated. None if unknown."""
    predicted, counted = launch.pair(level)
    found = counted or predicted
    return found if found and found.flop_per_byte and _rate(launch) else None


def _rate(launch: LaunchTraffic) -> float | None:
    return launch.rate_flop_per_s or launch.predicted_flop_per_s


def _trace(
    view: View,
    level: LevelName,
    points: list[tuple[LaunchTraffic, LevelBound]],
    chosen: str | None,
) -> style.Part:
    records = [view.record(launch.label) for launch, _ in points]
    colours = [style.colour_of(r, chosen) if r else style.GREY for r in records]
    symbol = style.LEVEL_SYMBOLS[level]
    rates = [rate for launch, _ in points if (rate := _rate(launch))]
    return style.scatter(
        "markers",
        [bound.flop_per_byte for _, bound in points],
        [rate / TERA for rate in rates],
        [_about(launch, bound) for launch, bound in points],
        name=_NAMES[level],
        marker={
            "size": 10,
            "color": colours,
            "symbol": [symbol if o.rate_flop_per_s else f"{symbol}-open" for o, _ in points],
            "line": {"color": colours, "width": 1.5},
        },
        meta={"labels": [launch.label for launch, _ in points]},
        showlegend=True,
    )


def _about(launch: LaunchTraffic, bound: LevelBound) -> str:
    grade = launch.rate_grade if launch.rate_flop_per_s else "predicted"
    of = _rate(launch) or 0.0
    return style.hover(
        f"{launch.label}, {_NAMES[bound.level]}",
        f"{text.flop_per_s(of)} ({grade})",
        f"{text.flop_per_byte(bound.flop_per_byte)}: {text.size(bound.moved_bytes)}",
        f"{text.percent(of / bound.flop_per_s)} of the roof" if bound.flop_per_s else "",
    )


def _roofs(view: View, span: roofs.Span, drawn: list[LevelName]) -> Iterator[style.Part]:
    """The roofs of the levels that are drawn; two of one bandwidth are one line."""
    of_device = model.roofline(view.profile.device)
    levels = [one for one in of_device.levels if one.name in drawn]
    for one in levels:
        same = [o.name for o in levels if _rates(o) == _rates(one)]
        if one.name == same[0]:
            yield from roofs.level("/".join(same), one, of_device, span)
    yield from roofs.lids(of_device, span)
    for roof in roofs_of_tensor_cores(view):
        yield roofs.tensor_lid(roof, of_device, span)


def _rates(level: model.Level) -> tuple[float | None, float | None]:
    return level.bytes_per_s, level.measured_bytes_per_s
