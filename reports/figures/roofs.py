"""The lines of a roofline: slopes of bandwidth up to their ridge points, and flat lids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analysis import roofline as model
from analysis.devices import Device
from analysis.records.profile import Grade
from analysis.timing.predicted import Resource
from reports import style, text

_DASHES = {Grade.NOMINAL: "solid", Grade.MEASURED: "dash"}
TERA = 1e12
_POINTS = 24  # along a roof, for the pointer to find


class Span(NamedTuple):
    """The FLOP/B that a figure covers; names of roofs stand left of `names_end`."""

    low: float
    high: float
    names_end: float


def span_of(intensities: Sequence[float], of: Device, *, margin: float) -> Span:
    """The span of some points and of DRAM's ridge point, with so many times of room on the left."""
    ridge = model.ridge_point(of.fp32_flop_per_s, of.dram_bytes_per_s)
    least = min(intensities)
    return Span(least / margin, 3 * max(*intensities, ridge), 0.8 * least)


def level(name: str, level: model.Level, of: model.Roofline, span: Span) -> Iterator[style.Part]:
    """The roofs of one memory level; the nominal one carries the name, if there is one."""
    peak = of.flop_per_s
    if level.bytes_per_s:
        yield slope(name, level.bytes_per_s, peak, span, Grade.NOMINAL)
    if level.measured_bytes_per_s:
        peak = of.measured_flop_per_s or peak
        roof = slope(name, level.measured_bytes_per_s, peak, span, Grade.MEASURED)
        yield roof | {"mode": "lines"} if level.bytes_per_s else roof


def lids(of: model.Roofline, span: Span) -> Iterator[style.Part]:
    """The roofs of FP32, from where the fastest level's reaches them."""
    start = min(_ridges(of), default=span.low)
    yield flat(Resource.FP32, of.flop_per_s, start, span, Grade.NOMINAL)
    if of.measured_flop_per_s:
        yield flat(Resource.FP32, of.measured_flop_per_s, start, span, Grade.MEASURED)


def tensor_lid(roof: model.TensorRoof, of: model.Roofline, span: Span) -> style.Part:
    """The roof of products on tensor cores, from where the fastest level's reaches it."""
    ridges = [model.ridge_point(roof.flop_per_s, b) for b in _bandwidths(of)]
    return flat(roof.name, roof.flop_per_s, min(ridges, default=span.low), span, Grade.NOMINAL)


def _ridges(of: model.Roofline) -> Iterator[float]:
    for bandwidth in _bandwidths(of):
        yield model.ridge_point(of.flop_per_s, bandwidth)


def _bandwidths(of: model.Roofline) -> Iterator[float]:
    for one in of.levels:
        bandwidth = one.bytes_per_s or one.measured_bytes_per_s
        if bandwidth:
            yield bandwidth


def slope(name: str, bandwidth: float, peak: float, span: Span, grade: Grade) -> style.Part:
    """A bandwidth's roof, up to its ridge point."""
    ridge = model.ridge_point(peak, bandwidth)
    x = _steps(span.low, max(ridge, span.low * 1.01))
    y = [model.bandwidth_ceiling(intensity, bandwidth) for intensity in x]
    label_at = sum(intensity < span.names_end for intensity in x) - 1
    names = name.replace("/", "/<br>")  # of levels with one bandwidth
    label = [names if place == label_at else "" for place in range(len(x))]
    return _roof(name, text.bytes_per_s(bandwidth), x, y, label, grade)


def flat(name: str, rate: float, start: float, span: Span, grade: Grade) -> style.Part:
    """A roof of compute, named at its right end."""
    x = _steps(max(start, span.low), span.high)
    label = [*[""] * (len(x) - 1), name]
    roof = _roof(name, text.flop_per_s(rate), x, [rate] * len(x), label, grade)
    return roof if grade == Grade.NOMINAL else roof | {"mode": "lines"}


def _steps(low: float, high: float) -> list[float]:
    return [low * (high / low) ** (step / _POINTS) for step in range(_POINTS + 1)]


def _roof(
    name: str,
    value: str,
    x: list[float],
    y: list[float],
    label: list[str],
    grade: Grade,
) -> style.Part:
    """A line with a label at each of its points; the dash tells the grade."""
    return style.scatter(
        "lines+text",
        x,
        [rate / TERA for rate in y],
        [
            style.hover(f"{name} {value} ({grade})", text.flop_per_s(rate), text.flop_per_byte(at))
            for at, rate in zip(x, y, strict=True)
        ],
        text=label,
        textposition="top left",
        textfont={"color": style.INK, "size": 12},
        line={"color": style.INK, "width": 1.5, "dash": _DASHES[grade]},
        name=f"{name} {value} ({grade})",
        showlegend=False,
    )
