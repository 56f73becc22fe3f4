"""The gap, explained: from nominal peak to the time that a launch takes, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import plotly.graph_objects as go

from reports import style, text
from reports.ladder import Timing, View
from reports.sections.prediction import GapRow, gap_rows_of

TITLE = "The gap, explained"
READING = (
    "Choose a variant above the plot. From the time at nominal peak downwards, each bar is the "
    "time that one cause adds (orange) or takes away (green); grey bars are totals: what is "
    "predicted and, where it was measured, what the clock showed. The steps add up to the last "
    "total. The model does not explain the remainder."
)

LABEL_ROOM = 1.4  # of the longest bar: less cuts labels off at 400 px, more wastes a wide page
ADDS, TAKES, TOTAL = "#d55e00", "#009e73", style.SWATCH


def figure(view: View) -> go.Figure:
    """A waterfall per variant, one at a time: the fastest predicted first shown."""
    title = style.title_of(TITLE, view)
    found = [one for one in view.timings if one.predicted.gap]
    if not found:
        return style.empty(title, "No time was predicted at this shape.")
    first = min(range(len(found)), key=lambda place: found[place].predicted.time_s)
    rows = [list(gap_rows_of(one)) for one in found]
    most = max(map(len, rows))
    return style.figure(
        title,
        [
            _waterfall(one, own, is_shown=one is found[first])
            for one, own in zip(found, rows, strict=True)
        ],
        height=130 + 34 * most,
        showlegend=False,
        xaxis=style.axis("time, s", tickformat="~s", range=_span(rows[first])),
        yaxis=_axis(rows[first]),
        updatemenus=style.menu(
            [
                (
                    one.record.label,
                    {"visible": [other is one for other in found]},
                    {"xaxis.range": _span(own)}
                    | {f"yaxis.{key}": value for key, value in _ticks(own).items()},
                )
                for one, own in zip(found, rows, strict=True)
            ],
            active=first,
        ),
    )


def _waterfall(one: Timing, rows: Sequence[GapRow], *, is_shown: bool) -> style.Part:
    reached = _reached(rows)
    return {
        "type": "waterfall",
        "orientation": "h",
        "measure": ["absolute" if row.is_total else "relative" for row in rows],
        "x": [row.time_s for row in rows],
        "y": list(range(len(rows))),
        "base": 0,
        "name": style.plain(one.record.label),
        "visible": is_shown,
        "text": [row.text for row in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"color": style.INK},
        "increasing": {"marker": {"color": ADDS}},
        "decreasing": {"marker": {"color": TAKES}},
        "totals": {"marker": {"color": TOTAL}},
        "connector": {"line": {"color": style.GRID, "width": 1}},
        "hoverinfo": "text",
        "hovertext": [
            style.hover(
                f"{one.record.label}: {row.name}",
                row.text,
                *style.broken(row.about),
                f"reaches {text.predicted_seconds(end)}",
            )
            for row, end in zip(rows, reached, strict=True)
        ],
    }


def _reached(rows: Sequence[GapRow]) -> list[float]:
    """The time after each bar; totals but the first add nothing."""
    adds = (0.0 if row.is_total and number else row.time_s for number, row in enumerate(rows))
    return list(accumulate(adds))


def _span(rows: Sequence[GapRow]) -> list[float]:
    """Range of the axis, from 0 or below, with room for the longest bar's label on a phone."""
    ends = [0.0, *_reached(rows), *(row.time_s for row in rows if row.is_total)]
    return [min(ends), min(ends) + LABEL_ROOM * (max(ends) - min(ends))]


def _ticks(rows: Sequence[GapRow]) -> style.Part:
    return {
        "tickvals": list(range(len(rows))),
        "ticktext": ["<br>".join(map(style.plain, style.lines(row.name))) for row in rows],
        "range": [len(rows) - 0.5, -0.5],
    }


def _axis(rows: Sequence[GapRow]) -> style.Part:
    return style.axis("", tickmode="array", showgrid=False, **_ticks(rows)) | {"ticks": ""}
