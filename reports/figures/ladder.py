"""The rate of every rung: bars for what was measured, circles for what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.records.profile import Grade
from reports import style, text
from reports.ladder import View
from reports.sections.ladder_answer import graded, share
from reports.sections.ladder_rows import Row, Rows, rows
from reports.sections.ladder_summary import TERA, speedup
from reports.style import COLOURS
from reports.svg.drawing import width_of

TITLE = "Rate of each rung"
ROOM = 1.05  # of the highest rate or the peak
ALL_ROWS_PX, ROW_PX, LEAST_ROW_PX, NARROW_ROW_PX = 600, 33, 24, 52
TITLE_PX = 40
INK = style.INK
WIDTHS_PX = {True: 368, False: 720}  # of a narrow figure, and the least one of a wide figure
BOLD = 1.15  # width of bold text over that of regular text
HEAD_PX, HEADS = 17, 2  # height of a row of names above the chart, and the rows that always fit
NAMES, RATES = 0.235, 0.85  # of the width: where bars begin and where they end


@dataclass(frozen=True, kw_only=True)
class RowPlace:
    """Places of a row, which is at `row`: of its bar and of its texts, and the bar's height.

    `columns` are places of the columns of numbers, and `bars` of the bars, in parts of the width.
    """

    bar: float
    texts: float
    height: float
    bars: tuple[float, float]
    columns: tuple[float, float]
    row_px: int
    head_px: int
    foot_px: int


def place(number: int, *, is_narrow: bool) -> RowPlace:
    """Places for a figure of so many rows; on a telephone a bar is below its texts."""
    if is_narrow:
        return RowPlace(
            bar=0.23,
            texts=-0.22,
            height=0.3,
            bars=(0.015, 1),
            columns=(0.82, 1),
            row_px=NARROW_ROW_PX,
            head_px=56,
            foot_px=120,
        )
    row_px = min(ROW_PX, max(LEAST_ROW_PX, ALL_ROWS_PX // max(1, number)))
    return RowPlace(
        bar=0,
        texts=0,
        height=0.46,
        bars=(NAMES, RATES),
        columns=(0.918, 0.995),
        row_px=row_px,
        head_px=38,
        foot_px=54,
    )


def placed(shown: Rows, *, is_narrow: bool) -> RowPlace:
    """Places for these rows, with room for the names of all lines above them."""
    at = place(len(shown.rungs), is_narrow=is_narrow)
    more = _most_heads(shown, at) - HEADS
    return replace(at, head_px=at.head_px + HEAD_PX * more)


def figure(
    view: View, chosen: str | None = None, *, is_narrow: bool = False, is_titled: bool = True
) -> style.Figure:
    """Horizontal bars, one per rung that has a rate; the row of the label `chosen` stands out.

    Light is the rate of the rung before, dark what a rung gains, open what it loses. The traces
    have a point per row, and `meta` of the layout has the labels of the rows, from the top.
    """
    shown = rows(view)
    title = style.title_of(TITLE, view)
    if not shown.rungs:
        return style.empty(title, "No rung has a rate at this shape.")
    at = placed(shown, is_narrow=is_narrow)
    top = at.head_px + TITLE_PX * is_titled
    number = chosen_row(shown, chosen)
    return style.figure(
        title if is_titled else "",
        [*_bars(shown, at), *_lines(shown, at), *_predictions(shown, at), *_columns(shown, at)],
        height=top + at.row_px * len(shown.rungs) + at.foot_px,
        barmode="overlay",
        hovermode="y",
        dragmode=False,
        margin={"l": 0, "r": 0, "t": top, "b": at.foot_px},
        meta={"labels": [row.label for row in shown.rungs]},
        shapes=list(_selection(number)),
        annotations=list(_heads(shown, at)),
        xaxis=style.axis(
            "",
            domain=at.bars,
            range=[0, most(shown) / TERA],
            tickmode="array",
            tickvals=ticks(most(shown) / TERA),
            showgrid=False,
            automargin=False,
            fixedrange=True,
        ),
        yaxis=_rows_axis(shown, at, [_name(row) for row in shown.rungs], 0)
        | {"tickfont": {"color": INK, "size": 14}},
        yaxis2=_rows_axis(shown, at, [rate_text(row) for row in shown.rungs], at.columns[0])
        | {"tickfont": {"color": INK, "size": 14, "weight": 600}},
        yaxis3=_rows_axis(shown, at, [speedup(row) for row in shown.rungs], at.columns[1]),
    )


def chosen_row(shown: Rows, chosen: str | None) -> int:
    """Number of the row that stands out, from 0."""
    best = shown.row(chosen) if chosen else None
    best = best or shown.chosen
    return next((k for k, row in enumerate(shown.rungs) if row is best), 0)


def most(shown: Rows) -> float:
    """The end of the axis in FLOP/s."""
    rates = [row.best_rate for row in shown.rungs]
    if shown.cublas:
        rates.append(shown.cublas.flop_per_s)
    highest = max(rates)
    # a small product is far from the peak: its bars would be too short to compare
    return ROOM * (max(shown.peak, highest) if highest > shown.peak / 4 else highest)


def ticks(end: float) -> list[float]:
    """About seven round numbers from 0 to the end of an axis."""
    step = next(s * 10.0**e for e in range(-6, 6) for s in (1, 2, 5) if end / (s * 10.0**e) <= 8)
    return [float(f"{step * k:.6g}") for k in range(int(end / step) + 1)]


def rate_text(row: Row) -> str:
    return text.three_digits(row.best_rate / TERA)


def lines(shown: Rows) -> Iterator[tuple[str, float, str, str]]:
    """Name, rate, colour and dash of each line across the rows."""
    if shown.cublas:
        rate = shown.cublas.flop_per_s
        yield f"cuBLAS {text.three_digits(rate / TERA)}", rate, style.LOST, "dash"
    for name, rate in shown.roofs:
        if rate <= most(shown):
            yield f"{name} {text.three_digits(rate / TERA)}", rate, INK, "solid"


def _name(row: Row) -> str:
    number = "" if row.record.rung is None else str(row.record.rung)
    return f"\u2002{number:\u2007>2}\u2002{style.plain(row.label)}"  # of figures' width


def _rows_axis(shown: Rows, at: RowPlace, words: Sequence[str], position: float) -> style.Part:
    """An axis whose ticks are texts of the rows: names on the left, numbers ending at a place."""
    number = len(shown.rungs)
    is_first = position == 0
    return style.axis(
        "",
        tickmode="array",
        tickvals=[row + at.texts for row in range(number)],
        ticktext=list(words),
        range=[number - 0.5, -0.5],
        showgrid=False,
        showline=False,
        linecolor=style.CLEAR,
        automargin=False,
        fixedrange=True,
        anchor="free",
        position=position,
        side="left" if is_first else "right",
        ticklabelposition="inside",
        ticklen=0,
        **({} if is_first else {"overlaying": "y"}),
    )


def _columns(shown: Rows, at: RowPlace) -> Iterator[style.Part]:
    """Traces that draw nothing: Plotly draws an axis only for a trace."""
    for axis in ("y2", "y3"):
        yield style.scatter("markers", [None], [0], yaxis=axis, showlegend=False)


# Bars.


def _bars(shown: Rows, at: RowPlace) -> Iterator[style.Part]:
    is_filled = shown.is_measured or shown.grade == Grade.THEORY
    name = graded(shown)
    light = [min(row.before or row.rate, row.rate) if row.rate else None for row in shown.rungs]
    about = [_about(shown, row) for row in shown.rungs]
    yield _bar(shown, at, name, light, [0.0] * len(light), is_filled, "barl", hover=about)
    changes = [(row.rate - row.before) if row.rate and row.before else None for row in shown.rungs]
    gains = [change if change and change > 0 else None for change in changes]
    bases = [row.before or 0.0 for row in shown.rungs]
    if any(gains):
        yield _bar(shown, at, "gained over the rung before", gains, bases, is_filled, "bard")
    losses = [-change if change and change < 0 else None for change in changes]
    if any(losses):
        yield _bar(
            shown, at, "lost", losses, [row.rate or 0.0 for row in shown.rungs], False, "cost"
        )


def _bar(
    shown: Rows,
    at: RowPlace,
    name: str,
    lengths: Sequence[float | None],
    bases: Sequence[float],
    is_filled: bool,
    colour: str,
    hover: Sequence[str] | None = None,
) -> style.Part:
    told = {"hoverinfo": "skip"} if hover is None else {"hoverinfo": "text", "hovertext": hover}
    outline = {"color": COLOURS[colour], "width": 0 if is_filled else 1.5}
    return {
        "type": "bar",
        "orientation": "h",
        "name": style.plain(name),
        "x": [None if one is None else one / TERA for one in lengths],
        "base": [one / TERA for one in bases],
        "y": [row + at.bar for row in range(len(shown.rungs))],
        "width": at.height,
        "marker": {"color": COLOURS[colour] if is_filled else style.CLEAR, "line": outline},
        **told,
    }


def _about(shown: Rows, row: Row) -> str:
    measured, predicted = row.measured, row.predicted
    return style.hover(
        row.name,
        f"{text.flop_per_s(measured.flop_per_s)} {graded(shown)}, {text.seconds(measured.median_s)}"
        if measured
        else "",
        f"{text.flop_per_s(predicted.flop_per_s)} predicted, "
        f"{text.predicted_seconds(predicted.time_s)}"
        if predicted
        else "",
        f"{text.flop_per_s(row.rate)} at most, by {row.record.theory.limiter}"
        if shown.grade == Grade.THEORY and row.record.theory
        else "",
        f"{share(row.of_cublas)} of cuBLAS" if row.of_cublas else "",
    )


def _predictions(shown: Rows, at: RowPlace) -> Iterator[style.Part]:
    """Open circles beside measured bars; predicted bars need none."""
    if not shown.is_measured or not any(row.predicted for row in shown.rungs):
        return
    known = [(row, one.predicted) for row, one in enumerate(shown.rungs) if one.predicted]
    yield style.scatter(
        "markers",
        [one.flop_per_s / TERA for _, one in known],
        [row + at.bar for row, _ in known],
        name=Grade.PREDICTED.value,
        marker={"size": 10, "color": style.BACKGROUND, "line": style.ink(2)},
        cliponaxis=False,
    )


def _lines(shown: Rows, at: RowPlace) -> Iterator[style.Part]:
    number = len(shown.rungs)
    for name, rate, colour, dash in lines(shown):
        x: list[float | None] = []
        y: list[float | None] = []
        ends = [(-0.5, number - 0.5)]
        if at.bar:  # lines must not cross the texts of a row
            ends = [(row + at.bar - 0.22, row + at.bar + 0.22) for row in range(number)]
        for start, end in ends:
            x += [rate / TERA, rate / TERA, None]
            y += [start, end, None]
        yield style.scatter(
            "lines",
            x,
            y,
            name=name,
            line={"color": colour, "width": 1.5, "dash": dash},
            showlegend=False,
        )


# Around the bars.


def _selection(row: int) -> Iterator[style.Part]:
    """The row that stands out: a background, and a bar at its left end."""
    for width, colour in ((1.0, COLOURS["gainbg"]), (0.004, style.CHOSEN)):
        yield {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": width,
            "y0": row - 0.5,
            "y1": row + 0.5,
            "fillcolor": colour,
            "line": {"width": 0},
            "layer": "below",
        }


def _heads(shown: Rows, at: RowPlace) -> Iterator[style.Part]:
    """Names of the lines and of the columns of numbers, above the rows."""
    places, levels = _line_places(shown, at), head_rows(shown, at)
    for (name, _, colour, _), x, row in zip(lines(shown), places, levels, strict=True):
        begins = begins_at_line(name, x, at)
        yield _head(name, x, 1 + HEAD_PX * row, colour, begins=begins, weight=600)
    for name, x in zip(("TFLOP/s", "speedup"), at.columns, strict=True):
        is_near = bool(at.bar) or any(abs(one - x) < 0.08 for one in places)
        yield _head(name, x, columns_above_px(shown, at) if is_near else 1, style.QUIET, size=12)


def _line_places(shown: Rows, at: RowPlace) -> list[float]:
    """Places of the lines, in parts of the width."""
    start, end = at.bars
    return [start + (end - start) * rate / most(shown) for _, rate, _, _ in lines(shown)]


def columns_above_px(shown: Rows, at: RowPlace) -> int:
    """Distance above the rows of the names of columns that are near the name of a line."""
    return 2 + HEAD_PX * _most_heads(shown, at) if at.bar else 20


def _most_heads(shown: Rows, at: RowPlace) -> int:
    return max([HEADS, *(row + 1 for row in head_rows(shown, at))])


def begins_at_line(name: str, x: float, at: RowPlace) -> bool:
    """True if a line at `x` has no room for its name on its left."""
    return x < _length(name, at)


def _length(name: str, at: RowPlace) -> float:
    """Length of a bold name, in parts of the width."""
    return BOLD * width_of(name) / WIDTHS_PX[bool(at.bar)]


def head_rows(shown: Rows, at: RowPlace) -> list[int]:
    """Row of each line's name above the chart, from 0: the first one in which it has room."""
    taken: list[list[tuple[float, float]]] = []  # by row: ends of the names in it
    found = {}
    named = zip(lines(shown), _line_places(shown, at), strict=True)
    for (name, *_), x in sorted(named, key=lambda one: -one[1]):
        length = _length(name, at)
        left, right = (x, x + length) if begins_at_line(name, x, at) else (x - length, x)
        row = next(
            (n for n, ends in enumerate(taken) if all(right < a or left > b for a, b in ends)),
            len(taken),
        )
        taken += [[]] if row == len(taken) else []
        taken[row].append((left, right))
        found[name] = row
    return [found[name] for name, *_ in lines(shown)]


def _head(
    name: str,
    x: float,
    above_px: float,
    colour: str,
    *,
    begins: bool = False,
    size: int = 13,
    **font: object,
) -> style.Part:
    """A text that ends at `x`, or begins there."""
    return {
        "text": name,
        "xref": "paper",
        "yref": "paper",
        "x": x,
        "y": 1,
        "xanchor": "left" if begins else "right",
        "yanchor": "bottom",
        "yshift": above_px,
        "showarrow": False,
        "borderpad": 0,
        "font": {"color": colour, "size": size, **font},
    }
