"""The rate of every rung as a static drawing, for paper and for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from reports.figures import ladder as figure
from reports.figures.ladder import RowPlace
from reports.sections.ladder_rows import Row, Rows
from reports.sections.ladder_summary import TERA, speedup
from reports.svg.drawing import NARROW, element, number, path, rect, svg, text, two

WIDE = 860


def drawing(shown: Rows, chosen: str | None, label: str) -> Markup:
    """Draw `reports.figures.ladder.figure` at the width of a screen and of a telephone."""
    return two(
        _drawing(shown, chosen, label, WIDE),
        _drawing(shown, chosen, label, NARROW),
    )


def _drawing(shown: Rows, chosen: str | None, label: str, width: int) -> Markup:
    rungs = len(shown.rungs)
    at = figure.placed(shown, is_narrow=width == NARROW)
    end = at.head_px + rungs * at.row_px
    start, stop = (width * part for part in at.bars)
    scale = (stop - start) / figure.most(shown)
    parts = [
        rect("sel", 0, at.head_px + figure.chosen_row(shown, chosen) * at.row_px, width, at.row_px)
    ]
    for place, row in enumerate(shown.rungs):
        top = at.head_px + at.row_px * place
        parts += _bars(shown, row, at, top, start, scale)
        parts += _texts(row, at, top, width)
    parts += _lines(shown, at, start, scale, end, width)
    for tick in figure.ticks(figure.most(shown) / TERA):
        x = start + tick * TERA * scale
        if x < width - 8:
            anchor = "start" if x < 8 else "middle"
            parts.append(text(x, end + 16, f"{tick:g}", "mu", anchor=anchor))
    above = figure.columns_above_px(shown, at)
    for name, part in zip(("TFLOP/s", "speedup"), at.columns, strict=True):
        parts.append(text(width * part, at.head_px - above - 4, name, "mu", anchor="end"))
    return svg(width, end + 22, label, parts)


def _bars(
    shown: Rows, row: Row, at: RowPlace, top: float, start: float, scale: float
) -> Iterator[Markup]:
    height = at.height * at.row_px
    y = top + at.row_px * (0.5 + at.bar) - height / 2
    rate, before = row.rate, row.before
    if rate:
        kind = "" if shown.grade != "predicted" else " open"
        light = min(rate, before or rate)
        yield rect(f"lad-light{kind}", start, y, light * scale, height)
        if before and before < rate:
            yield rect(
                f"lad-gain{kind}", start + before * scale, y, (rate - before) * scale, height
            )
        if before and before > rate:
            yield rect("lad-lost", start + rate * scale, y, (before - rate) * scale, height)
    if row.predicted and shown.is_measured:
        x = start + row.predicted.flop_per_s * scale
        yield element("circle", class_="pt", cx=x, cy=y + height / 2, r=5)


def _texts(row: Row, at: RowPlace, top: float, width: int) -> Iterator[Markup]:
    y = top + at.row_px * (0.5 + at.texts) + 5
    yield text(26, y, f"{row.record.rung or ''}", "mu", anchor="end")
    yield text(34, y, row.label)
    yield text(width * at.columns[0], y, figure.rate_text(row), "b", anchor="end")
    yield text(width * at.columns[1], y, speedup(row), "mu", anchor="end")


def _lines(
    shown: Rows, at: RowPlace, start: float, scale: float, end: float, width: int
) -> Iterator[Markup]:
    levels = figure.head_rows(shown, at)
    for level, (name, rate, _, _) in zip(levels, figure.lines(shown), strict=True):
        x, kind = start + rate * scale, "cost" if name.startswith("cuBLAS") else ""
        d = f"M{number(x)} {at.head_px}V{number(end)}"
        if at.bar:  # lines must not cross the texts of a row
            middles = [
                at.head_px + at.row_px * (row + 0.5 + at.bar) for row in range(len(shown.rungs))
            ]
            d = "".join(f"M{number(x)} {number(y - 11)}V{number(y + 11)}" for y in middles)
        yield path("dh" if kind else "rf", d)
        anchor = "start" if figure.begins_at_line(name, x / width, at) else "end"
        yield text(
            x, at.head_px - 4 - figure.HEAD_PX * level, name, f"b {kind}".strip(), anchor=anchor
        )
