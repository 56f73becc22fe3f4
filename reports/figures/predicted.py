"""Predicted times: against measured ones where there are any, else under the simple bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import plotly.graph_objects as go

from analysis.records.profile import Grade, Profile
from analysis.timing.predicted import Resource
from reports import style, text
from reports.ladder import Timing, View
from reports.sections.prediction import bound_names, limits

TITLE = "Predicted time"
BAND = 0.12  # the aim of the model, drawn so that a reader sees which variants miss it

OF_PARITY = (
    "Each point is one variant: its predicted time upwards, the measured one to the right, so "
    f"that on the line both are equal. The band is ±{100 * BAND:.0f} %."
)
OF_RATES = (
    "Nothing comparable was measured: bars are predicted rates, and each mark is the rate that one "
    "resource alone would allow. The leftmost mark is the longest bound; the space between it and "
    "the end of the bar is what no single resource explains. Marks beyond the FP32 peak are on the "
    "logarithmic scale."
)

# Okabe and Ito's, and a symbol each
_MARKS = {
    Resource.ISSUE: style.Look(colour="#d55e00", symbol="triangle-up-open"),
    Resource.FP32: style.Look(colour="#0072b2", symbol="circle-open"),
    Resource.SHARED_MEMORY: style.Look(colour="#cc79a7", symbol="square-open"),
    Resource.L1: style.Look(colour="#e69f00", symbol="diamond-open"),
    Resource.L2: style.Look(colour="#009e73", symbol="triangle-down-open"),
    Resource.DRAM: style.Look(colour="#56b4e9", symbol="star-open"),
}
_OTHER = style.Look(colour=style.INK, symbol="x-open")


def reading(view: View) -> str:
    """How to read the figure: it is one of two."""
    found = view.timings
    return OF_PARITY if any(one.ratio for one in found) else OF_RATES


def figure(view: View) -> go.Figure:
    """Predicted against measured times, log-log; bars of predicted rates where there are none."""
    title = style.title_of(TITLE, view)
    found = view.timings
    if not found:
        return style.empty(title, "No time was predicted at this shape.")
    compared = [one for one in found if one.ratio]
    return (
        _parity(view.profile, title, compared) if compared else _rates(view.profile, title, found)
    )


# Against measured times.


def _parity(profile: Profile, title: str, found: Sequence[Timing]) -> go.Figure:
    times = [t for one in found for t in (one.predicted.time_s, _measured(one))]
    ends = [min(times) / 1.5, max(times) * 1.5]
    looks = style.looks(profile)
    keys = {style.fill(one.grade): style.plain(one.grade.partition(" on ")[0]) for one in found}
    return style.figure(
        title,
        [
            *_band(ends),
            *(_point(one, looks[one.record.label]) for one in found),
            *(style.key(name, "circle" + style.FILLS[fill]) for fill, name in keys.items()),
        ],
        height=560,
        xaxis=_time_axis(f"time, {' or '.join(keys)}"),
        yaxis=_time_axis("time, predicted"),
    )


def _time_axis(title: str) -> style.Part:
    # "D2": ticks at 1, 2 and 5; "~s" writes them with prefixes
    return style.axis(f"{title}, s", type="log", dtick="D2", tickformat="~s")


def _measured(one: Timing) -> float:
    return one.measured.median_s if one.measured else one.predicted.time_s


def _band(ends: list[float]) -> Iterator[style.Part]:
    """The diagonal, and the band around it as one filled shape."""
    upper, lower = [e * (1 + BAND) for e in ends], [e * (1 - BAND) for e in ends]
    yield style.scatter(
        "lines",
        [*ends, *reversed(ends)],
        [*upper, *reversed(lower)],
        fill="toself",
        fillcolor=style.GRID,
        line={"width": 0},
        name=f"±{100 * BAND:.0f} %",
    )
    yield style.diagonal(ends)


def _point(one: Timing, look: style.Look) -> style.Part:
    fill = style.fill(one.grade)
    return style.scatter(
        "markers",
        [_measured(one)],
        [one.predicted.time_s],
        [_about(one)],
        name=style.plain(one.record.label),
        marker=style.marker(
            look.colour,
            look.symbol + style.FILLS[fill],
            12,
            line={"color": style.INK if fill == Grade.RECORDED else look.colour, "width": 1},
        ),
    )


def _about(one: Timing) -> str:
    return style.hover(
        one.record.label,
        f"{text.predicted_seconds(one.predicted.time_s)} (predicted)",
        f"{text.seconds(one.measured.median_s)} ({one.grade})" if one.measured else "",
        f"{text.ratio(one.ratio)} ({text.change(one.ratio - 1)})" if one.ratio else "",
        limits(one.predicted),
    )


# Under the simple bounds.


def _rates(profile: Profile, title: str, found: Sequence[Timing]) -> go.Figure:
    records = tuple(one.record for one in found)
    looks = style.looks(profile)
    names = bound_names(found)
    # the marks of resources that are far from limiting would squeeze the bars
    most = max(one.predicted.flop_per_s for one in found)
    end = 1.05 * max(profile.device.fp32_flop_per_s, most)
    linear = style.scale("linear") | {"xaxis.autorange": False, "xaxis.range": [0, end]}
    return style.figure(
        title,
        [
            style.bars(
                Grade.PREDICTED,
                [one.predicted.flop_per_s for one in found],
                [_about_rate(one) for one in found],
                [looks[record.label].colour for record in records],
                showlegend=False,  # its swatch would have one variant's colour
            ),
            style.key(Grade.PREDICTED, "square"),
            *(_marks(name, found) for name in names),
        ],
        height=190 + style.ROW_PX * len(found),
        bargap=0.35,
        xaxis=style.rate_axis(range=linear["xaxis.range"]),
        yaxis=style.rows_axis(records),
        updatemenus=style.buttons(("linear", {}, linear), ("logarithmic", {}, style.scale("log"))),
    )


def _about_rate(one: Timing) -> str:
    return style.hover(
        one.record.label,
        f"{text.flop_per_s(one.predicted.flop_per_s)} (predicted)",
        text.predicted_seconds(one.predicted.time_s),
        limits(one.predicted),
    )


def _marks(name: Resource, found: Sequence[Timing]) -> style.Part:
    look = _MARKS.get(name, _OTHER)
    points = [
        (row, one, bound)
        for row, one in enumerate(found)
        for bound in one.predicted.bounds
        if bound.name == name and bound.time_s > 0
    ]
    rates = [one.record.shape.flop / bound.time_s for _, one, bound in points]
    return style.scatter(
        "markers",
        rates,
        [row for row, _, _ in points],
        [
            style.hover(
                f"{one.record.label}: {name} alone",
                f"{text.flop_per_s(rate)}, {text.predicted_seconds(bound.time_s)} (predicted)",
                bound.basis,
            )
            for (_, one, bound), rate in zip(points, rates, strict=True)
        ],
        name=style.plain(f"{name} alone"),
        marker=style.marker(look.colour, look.symbol, 11),
    )
