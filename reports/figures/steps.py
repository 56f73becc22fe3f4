"""The ladder as steps: the rate of every rung, one after the other, and why each one is higher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go

from analysis.records.profile import Grade, Record
from reports import ladder, style, text
from reports.ladder import View
from reports.sections import rungs

TITLE = "Step by step"
READING = (
    "Move the slider to climb the ladder: each position adds a rung and says what it gained and "
    "why. Predicted rates are open symbols on a dashed line, measured or recorded ones filled on a "
    "solid line; the dotted line is cuBLAS, the upper one the FP32 peak."
)

# Predicted or measured: dash, colour and symbol
LOOKS = {True: ("dash", "#d55e00", "diamond-open"), False: ("solid", "#0072b2", "circle")}


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The rates of one grade, None where a rung has none."""

    grade: str
    rates: tuple[float | None, ...]


def figure(view: View) -> go.Figure:
    """Steps of FLOP/s over the rungs, with a slider that adds one rung at a time."""
    title = style.title_of(TITLE, view)
    records = view.rungs
    series = [one for one in _series(view) if any(one.rates)]
    places = [n for n in range(len(records)) if any(one.rates[n] for one in series)]
    if not places:
        return style.empty(title, "No rung has a time at this shape, predicted or measured.")
    rows = [records[place] for place in places]
    cut = [replace(one, rates=tuple(one.rates[place] for place in places)) for one in series]
    lines = list(_references(view, len(rows)))
    said = _sentences(view, rows)
    return style.figure(
        title,
        [*(_trace(one, rows) for one in cut), *lines],
        height=580,
        margin={"l": 8, "r": 12, "t": 88, "b": 8},
        xaxis=style.axis(
            "",
            tickmode="array",
            tickvals=list(range(len(rows))),
            ticktext=[style.plain(record.label) for record in rows],
            tickangle=-45,
            range=[-0.5, len(rows) - 0.5],
            showgrid=False,
        )
        | {"title": {"text": "rung, from the first to the last", "standoff": 4}},
        yaxis=style.rate_axis(type="log", dtick="D2", autorange=True),
        sliders=[_slider(cut, rows, said)],
        # above the plot: the slider is below it
        legend=style.LEGEND | {"y": 1.02},
    )


def _series(view: View) -> Iterator[_Series]:
    for grade, times in (
        (Grade.PREDICTED, map(ladder.prediction, view.rungs)),
        (Grade.MEASURED, map(ladder.measurement, view.rungs)),
        (view.recorded_label, map(view.earlier, view.rungs)),
    ):
        yield _Series(grade=grade, rates=tuple(one.flop_per_s if one else None for one in times))


def _trace(one: _Series, rows: Sequence[Record]) -> style.Part:
    dash, colour, symbol = LOOKS[one.grade == Grade.PREDICTED]
    return style.scatter(
        "lines+markers",
        list(range(len(rows))),
        list(one.rates),
        [
            style.hover(f"{record.rung}: {record.label}", f"{text.flop_per_s(rate)} ({one.grade})")
            for record, rate in zip(rows, one.rates, strict=True)
        ],
        name=style.plain(one.grade),
        line={"shape": "hvh", "dash": dash, "color": colour, "width": 2},
        marker={"symbol": symbol, "size": 11, "color": colour},
    )


def _references(view: View, rungs_shown: int) -> Iterator[style.Part]:
    yield _level("FP32 peak (nominal)", view.profile.device.fp32_flop_per_s, "dashdot", rungs_shown)
    for cublas, grade in view.each_cublas[:1]:
        yield _level(f"cuBLAS ({grade})", cublas.flop_per_s, "dot", rungs_shown)


def _level(name: str, rate: float, dash: str, rungs_shown: int) -> style.Part:
    return style.scatter(
        "lines",
        [-0.5, rungs_shown - 0.5],
        [rate, rate],
        name=style.plain(f"{name} {text.flop_per_s(rate)}"),
        line=style.ink(dash=dash),
        hoverinfo="name",
    )


def _sentences(view: View, rows: Sequence[Record]) -> list[str]:
    """What the slider says at each rung."""
    grade = view.grade_of_times
    gained = {one.after: rungs.sentence(one, grade=grade) for one in view.steps}
    return [
        " ".join([*_stands_for(row), gained.get(row.label, f"{row.label}: {row.idea}.")])
        for row in rows
    ]


def _stands_for(record: Record) -> Iterator[str]:
    """What a name like "best" is at this shape, as its record notes it."""
    yield from (f"{note}." for note in record.notes if note.startswith(f"{record.label} is "))


def _slider(series: Sequence[_Series], rows: Sequence[Record], said: Sequence[str]) -> style.Part:
    return style.slider(
        len(rows) - 1,
        [
            {
                "label": str(record.rung),
                "value": style.plain(sentence),  # the page shows it below the figure
                "method": "restyle",
                "args": [
                    {"y": [_up_to(one, place) for one in series]},
                    list(range(len(series))),
                ],
            }
            for place, (record, sentence) in enumerate(zip(rows, said, strict=True))
        ],
        pad={"t": 34},
        currentvalue={"visible": False},
    )


def _up_to(one: _Series, place: int) -> list[float | None]:
    return [rate if other <= place else None for other, rate in enumerate(one.rates)]
