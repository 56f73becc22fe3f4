"""Horizontal bars of shares, from 0 to 100 %, or of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.svg.drawing import NARROW, rect, svg, text, two, width_of

WIDE = 600
ROW_PX, BAR_PX = 30, 15
LEAST_NAMES_PX, LEAST_VALUES_PX = 148, 52
GAP_PX = 10


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A row: its name, its length as a share of the longest possible, and its value as text."""

    name: str
    share: float
    value: str
    class_: str = "s2"


def bars(rows: Sequence[Bar], label: str) -> Markup:
    return two(_drawing(rows, label, WIDE), _drawing(rows, label, NARROW))


def _drawing(rows: Sequence[Bar], label: str, width: int) -> Markup:
    return svg(width, ROW_PX * len(rows) + 4, label, _drawn(rows, width))


def _drawn(rows: Sequence[Bar], width: int) -> Iterator[Markup]:
    names_px = max(LEAST_NAMES_PX, *(width_of(one.name) + GAP_PX for one in rows))
    values_px = max(LEAST_VALUES_PX, *(width_of(one.value) + GAP_PX for one in rows))
    room = width - names_px - values_px
    for place, one in enumerate(rows):
        y = place * ROW_PX + 4
        is_hot = one.class_ == "c0"
        yield text(0, y + 13, one.name, "b" if is_hot else "")
        yield rect("track", names_px, y, room, BAR_PX)
        length = room * min(1.0, one.share)
        if length >= 0.1:
            yield rect(one.class_, names_px, y, length, BAR_PX)
        yield text(width, y + 13, one.value, "cost b" if is_hot else "", anchor="end")
