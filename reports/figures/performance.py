"""The rate of every rung, measured and recorded, under its theoretical ceiling."""

from __future__ import annotations

from collections.abc import Iterator

import plotly.graph_objects as go

from analysis.records.profile import Grade, Interval, Measured, Profile, Record
from analysis.roofline import share_of_peak
from reports import style, text
from reports.ladder import View

TITLE = "Performance of the ladder"
READING = (
    "Bars are measured medians with their 95% interval, open circles predicted rates, upright "
    "marks the attainable rate of each rung (theory), open diamonds the bound without caches "
    "(theory: every load from DRAM), drawn no higher than the FP32 peak. Caches let kernels pass "
    "it. The space between a bar and its mark is what theory does not explain."
)


def figure(view: View) -> go.Figure:
    """One row per rung that has a rate: bars of FLOP/s, theory as marks, references as lines."""
    title = style.title_of(TITLE, view)
    records = tuple(
        r for r in view.rungs if r.theory or r.trusted or r.trusted_prediction or view.earlier(r)
    )
    if not records:
        return style.empty(title, "No rung has a rate at this shape.")
    return style.figure(
        title,
        [
            *_bars(view, records),
            *_marks(records, view.profile.device.fp32_flop_per_s),
            *_lines(view, len(records)),
        ],
        height=190 + style.ROW_PX * len(records),
        barmode="group",
        bargap=0.3,
        xaxis=style.rate_axis(rangemode="tozero"),
        yaxis=style.rows_axis(records),
        updatemenus=style.menu(
            [
                ("linear", {}, _scale(type="linear", tickmode="auto")),
                # "D2": ticks at 1, 2 and 5 only
                ("logarithmic", {}, _scale(type="log", tickmode="linear", dtick="D2")),
            ]
        ),
    )


def _scale(**axis: str) -> style.Part:
    return {f"xaxis.{name}": value for name, value in axis.items()} | {"xaxis.autorange": True}


_Series = tuple[str, str, list[Measured | None]]  # grade, hatch, measurements


def _bars(view: View, records: tuple[Record, ...]) -> Iterator[style.Part]:
    runs: list[_Series] = [(Grade.MEASURED, "", [record.trusted for record in records])]
    if view.recorded:
        runs.append((view.recorded_label, ".", list(map(view.earlier, records))))
    for grade, hatch, measured in runs:
        if any(measured):
            yield _bar(view.profile, records, measured, grade, hatch)
            yield style.key(style.plain(grade), "square-open-dot" if hatch else "square")


def _bar(
    profile: Profile,
    records: tuple[Record, ...],
    measured: list[Measured | None],
    grade: str,
    hatch: str,
) -> style.Part:
    looks = style.looks(profile)
    colours = [looks[record.label].colour for record in records]
    spread = [_spread(one) for one in measured]
    return style.bars(
        grade,
        [one.flop_per_s if one else None for one in measured],
        [
            _about(profile, record, one, grade) if one else ""
            for record, one in zip(records, measured, strict=True)
        ],
        colours,
        # Plotly complains of "overlay" where bars have colours of their own
        style.hatch(hatch, "#1b1f24", fillmode="replace", bgcolor=colours, size=5),
        error_x={
            "type": "data",
            "symmetric": False,
            "arrayminus": [below for below, _ in spread],
            "array": [above for _, above in spread],
            "color": style.INK,
            "thickness": 1.5,
            "width": 5,
        },
        showlegend=False,  # its swatch would have one rung's colour
    )


def rate_interval(measured: Measured) -> Interval | None:
    """The interval of the rate; the longest time is the lowest rate."""
    if measured.interval_s is None:
        return None
    flop = measured.flop_per_s * measured.median_s
    return Interval(low=flop / measured.interval_s.high, high=flop / measured.interval_s.low)


def _spread(measured: Measured | None) -> tuple[float, float]:
    """Distances from the rate to the lower and to the upper end of its interval."""
    bounds = rate_interval(measured) if measured else None
    if measured is None or bounds is None:
        return 0.0, 0.0
    return measured.flop_per_s - bounds.low, bounds.high - measured.flop_per_s


def _about(profile: Profile, record: Record, measured: Measured, grade: str) -> str:
    bounds = rate_interval(measured)
    roof = record.theory.attainable_flop_per_s if record.theory else None
    return style.hover(
        f"{record.label} ({grade})",
        text.flop_per_s(measured.flop_per_s),
        f"95% interval {text.interval(bounds, text.flop_per_s)}" if bounds else "",
        f"median of {text.count(len(measured.samples_s))}: {text.seconds(measured.median_s)}",
        f"{text.percent(share_of_peak(measured.flop_per_s, profile.device))} of the FP32 peak",
        f"{text.percent(measured.flop_per_s / roof)} of attainable" if roof else "",
    )


_Point = tuple[int, float, str]  # row, FLOP/s, text of the hover box


def _marks(records: tuple[Record, ...], fp32_flop_per_s: float) -> Iterator[style.Part]:
    rows = list(enumerate(records))
    yield from _mark(
        Grade.PREDICTED,
        {"symbol": "circle-open", "size": 11, "line": style.ink(2)},
        [
            (
                row,
                predicted.flop_per_s,
                style.hover(
                    f"{record.label}: {text.flop_per_s(predicted.flop_per_s)} (predicted)",
                    text.predicted_seconds(predicted.time_s),
                    f"limited by {predicted.limiter}",
                ),
            )
            for row, record in rows
            if (predicted := record.trusted_prediction)
        ],
    )
    yield from _mark(
        "attainable (theory)",
        {"symbol": "line-ns-open", "size": 26, "line": style.ink(3)},
        [
            (
                row,
                theory.attainable_flop_per_s,
                style.hover(
                    f"{record.label}: attainable (theory)",
                    text.flop_per_s(theory.attainable_flop_per_s),
                    f"limited by {theory.limiter}",
                    *(f"{c.name}: {text.flop_per_s(c.flop_per_s)}" for c in theory.ceilings),
                ),
            )
            for row, record in rows
            if (theory := record.theory)
        ],
    )
    yield from _mark(
        "bound without caches (theory)",
        {"symbol": "diamond-open", "size": 10, "line": style.ink()},
        [
            (
                row,
                min(theory.uncached.flop_per_s, fp32_flop_per_s),
                style.hover(
                    f"{record.label}: bound without caches (theory)",
                    text.flop_per_s(theory.uncached.flop_per_s),
                    theory.uncached.basis,
                ),
            )
            for row, record in rows
            if (theory := record.theory)
        ],
    )


def _mark(name: str, marker: style.Part, points: list[_Point]) -> Iterator[style.Part]:
    """A symbol in each row that has a point; nothing without any."""
    if points:
        yield style.scatter(
            "markers",
            [rate for _, rate, _ in points],
            [row for row, _, _ in points],
            [about for _, _, about in points],
            name=name,
            marker=marker | {"color": style.INK},
        )


def _lines(view: View, rows: int) -> Iterator[style.Part]:
    yield _line("FP32 peak", Grade.NOMINAL, view.profile.device.fp32_flop_per_s, "solid", rows)
    for cublas, grade in view.each_cublas:
        yield _line("cuBLAS", grade, cublas.flop_per_s, style.DASHES[grade], rows)


def _line(name: str, grade: str, rate: float, dash: str, rows: int) -> style.Part:
    label = f"{name} {text.flop_per_s(rate)} ({grade})"
    # a point per row, for the pointer to find
    y = [-0.5, *range(rows), rows - 0.5]
    return style.scatter(
        "lines",
        [rate] * len(y),
        y,
        style.hover(label),
        name=style.plain(label),
        line=style.ink(dash=dash),
    )
