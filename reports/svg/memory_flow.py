"""Bytes that a launch moves between registers, shared memory, L1, L2 and DRAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import atan2, cos, sin, sqrt

from markupsafe import Markup

from reports.svg.drawing import NARROW, number, path, rect, svg, text, two

WIDE = 840
UNITS_HIGH, UNIT_WIDE = 72, 124
NARROW_UNIT, NARROW_HIGH = 136, 64


@dataclass(frozen=True, kw_only=True)
class MemoryUnit:
    """A memory: its name, the share of the time that it is busy (None: unknown), if it is hot."""

    name: str
    busy: float | None
    busy_label: str
    is_hot: bool = False


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Bytes in one direction: what is done, how many, and the same as text."""

    action: str
    moved_bytes: float
    size: str
    is_hot: bool = False

    @property
    def label(self) -> str:
        return f"{self.action} {self.size}"


@dataclass(frozen=True, kw_only=True)
class MemoryFlow:
    """Units and edges of a launch; an edge that moves nothing is None, and so is an unused unit.

    `shared_note` and `dram_note` are lines of text beside these units.
    """

    shared: MemoryUnit | None
    l1: MemoryUnit | None
    l2: MemoryUnit | None
    dram: MemoryUnit | None
    shared_load: Edge | None = None
    shared_store: Edge | None = None
    l1_load: Edge | None = None
    l1_store: Edge | None = None
    l2_read: Edge | None = None
    l2_write: Edge | None = None
    dram_read: Edge | None = None
    dram_write: Edge | None = None
    shared_note: Sequence[str] = ()
    dram_note: Sequence[str] = ()
    label: str = ""

    @property
    def edges(self) -> list[Edge]:
        found = [
            *(self.shared_load, self.shared_store, self.l1_load, self.l1_store),
            *(self.l2_read, self.l2_write, self.dram_read, self.dram_write),
        ]
        return [edge for edge in found if edge]

    def stroke(self, edge: Edge) -> float:
        """Width of an arrow in pixels: its area would exaggerate."""
        return 1.5 + 6 * sqrt(edge.moved_bytes / max(one.moved_bytes for one in self.edges))


def flow(shown: MemoryFlow) -> Markup:
    return two(_wide(shown), _narrow(shown))


def _wide(shown: MemoryFlow) -> Markup:
    has_shared, has_global = shown.shared is not None, shown.l1 is not None
    low = 152 if has_shared else 26
    height = (low if has_global else 26) + (UNITS_HIGH + 20 if has_global else UNITS_HIGH + 8)
    x1, x2, x3, x4 = 110, 268, 500, 730
    parts: list[Markup] = [*_box(0, 26 if not has_shared else 14, 110, height - 36, None)]
    if shown.shared:
        parts += _box(x2, 14, UNIT_WIDE, UNITS_HIGH, shown.shared)
        parts += _pair(shown, shown.shared_load, shown.shared_store, (x1, x2), 14)
        for place, line in enumerate(shown.shared_note):
            class_ = ("cost" if place else "cost b") if shown.shared.is_hot else "mu"
            parts.append(text(x2 + UNIT_WIDE + 14, 40 + 19 * place, line, class_))
    for unit, x, wide in ((shown.l1, x2, UNIT_WIDE), (shown.l2, x3, 110), (shown.dram, x4, 110)):
        if unit:
            parts += _box(x, low, wide, UNITS_HIGH, unit)
    parts += _pair(shown, shown.l1_load, shown.l1_store, (x1, x2), low)
    parts += _pair(shown, shown.l2_read, shown.l2_write, (x2 + UNIT_WIDE, x3), low)
    parts += _pair(shown, shown.dram_read, shown.dram_write, (x3 + 110, x4), low)
    above = low - 12 - 18 * len(shown.dram_note) if has_shared else height + 8
    for place, line in enumerate(shown.dram_note if has_global else ()):
        parts.append(text(WIDE, above + 6 + 18 * place, line, "mu", anchor="end"))
    if shown.dram_note and has_global and not has_shared:
        height += 18 * len(shown.dram_note) + 8
    return svg(WIDE, height, shown.label, parts)


def _pair(
    shown: MemoryFlow, inwards: Edge | None, outwards: Edge | None, ends: tuple[int, int], top: int
) -> Iterator[Markup]:
    """The arrow of what is read, above, and of what is written, below."""
    left, right = ends
    middle = (left + right) / 2
    if inwards:
        yield from _arrow((right, top + 22), (left + 6, top + 22), shown.stroke(inwards), inwards)
        yield _of_edge(middle, top + 9, inwards, "middle")
    if outwards:
        yield from _arrow((left, top + 52), (right - 6, top + 52), shown.stroke(outwards), outwards)
        yield _of_edge(middle, top + 76, outwards, "middle")


def _narrow(shown: MemoryFlow) -> Markup:
    parts: list[Markup] = [*_box(0, 4, NARROW, 40, None)]
    height = 210
    if unit := shown.shared:
        parts += _box(0, 134, NARROW_UNIT, NARROW_HIGH, unit)
        parts += _column(shown, shown.shared_load, shown.shared_store, 0, 44, 134)
        for place, line in enumerate(shown.shared_note):
            class_ = "cost" if unit.is_hot else "mu"
            parts.append(text(0, 220 + 17 * place, line, class_))
            height = max(height, 230 + 17 * place)
    x = NARROW - NARROW_UNIT if shown.shared else (NARROW - NARROW_UNIT) // 2
    tops = (44, 134, 282, 430)
    pairs = (
        (shown.l1, shown.l1_load, shown.l1_store),
        (shown.l2, shown.l2_read, shown.l2_write),
        (shown.dram, shown.dram_read, shown.dram_write),
    )
    for place, (level, inwards, outwards) in enumerate(pairs):
        if not level:
            continue
        top = tops[place + 1]
        above = tops[place] + (NARROW_HIGH if place else 0)
        parts += _box(x, top, NARROW_UNIT, NARROW_HIGH, level)
        parts += _column(shown, inwards, outwards, x, above, top)
        height = max(height, top + NARROW_HIGH + 6)
    if shown.l1:
        for place, line in enumerate(shown.dram_note):
            parts.append(text(0, height + 14 + 17 * place, line, "mu"))
        height += 17 * len(shown.dram_note) + 6 * bool(shown.dram_note)
    return svg(NARROW, height, shown.label, parts)


def _column(
    shown: MemoryFlow, inwards: Edge | None, outwards: Edge | None, x: int, top: int, bottom: int
) -> Iterator[Markup]:
    if inwards:
        at = x + 12
        yield from _arrow((at, bottom), (at, top + 6), shown.stroke(inwards), inwards)
        yield _of_edge(x + 24, top + 26, inwards, "start")
    if outwards:
        at = x + NARROW_UNIT - 12
        yield from _arrow((at, top), (at, bottom - 6), shown.stroke(outwards), outwards)
        yield _of_edge(x + NARROW_UNIT - 24, bottom - 18, outwards, "end")


def _of_edge(x: float, y: float, edge: Edge, anchor: str) -> Markup:
    return text(x, y, edge.label, "cost" if edge.is_hot else "", anchor=anchor)


def _box(
    x: float, y: float, width: float, height: float, unit: MemoryUnit | None
) -> Iterator[Markup]:
    """A unit with its name and, at its foot, a bar of the share that it is busy."""
    yield rect("bx", x, y, width, height, rx=5)
    middle = y + height / 2
    if unit is None:
        yield text(x + width / 2, middle + 4, "Registers", "b", anchor="middle")
        return
    if unit.busy is None:
        yield text(x + width / 2, middle + 4, unit.name, "b", anchor="middle")
        return
    length = max(1.0, (width - 2) * min(1.0, unit.busy))
    yield rect("c0" if unit.is_hot else "s2", x + 1, y + height - 9, length, 8, rx=1)
    yield text(x + width / 2, middle - 9, unit.name, "b", anchor="middle")
    class_ = "cost b" if unit.is_hot else "mu"
    yield text(x + width / 2, middle + 9, unit.busy_label, class_, anchor="middle")


def _arrow(
    start: tuple[float, float], end: tuple[float, float], stroke: float, edge: Edge
) -> Iterator[Markup]:
    angle = atan2(end[1] - start[1], end[0] - start[0])
    head, half = 9 + stroke / 2, 5 + 0.6 * stroke
    back = end[0] - head * cos(angle), end[1] - head * sin(angle)
    aside = -sin(angle) * half, cos(angle) * half
    hot = "h" if edge.is_hot else ""
    ends = [(back[0] + sign * aside[0], back[1] + sign * aside[1]) for sign in (1, -1)]
    yield path(f"ed{hot}", f"M{_at(start)}L{_at(back)}", stroke_width=stroke)
    yield path(f"hd{hot}", f"M{_at(end)}L{_at(ends[0])}L{_at(ends[1])}Z")


def _at(point: tuple[float, float]) -> str:
    return f"{number(point[0])} {number(point[1])}"
