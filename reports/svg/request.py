"""One request of a warp: the bank of each lane, or the bytes that lanes use of each sector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from analysis.access import BANKS, WORD_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import WARP_SIZE
from analysis.traffic.requests import pieces
from reports.svg.drawing import NARROW, rect, svg, text, two

Lanes = Sequence[int | None]
WIDE = 430
MOST_SECTORS = 64
COLUMNS = 8


def banks(lanes: Lanes, label: str) -> Markup:
    """Bank of the first word that each lane accesses."""
    return two(_banks(lanes, label, WIDE, 6.4), _banks(lanes, label, NARROW, 6.4))


def _banks(lanes: Lanes, label: str, width: int, cell: float) -> Markup:
    left, top, side = 34, 8, BANKS * cell
    parts = [rect("bx", left, top, side, WARP_SIZE * cell)]
    for lane, offset in enumerate(lanes):
        if offset is not None:
            bank = offset // WORD_BYTES % BANKS
            parts.append(rect("c0", left + bank * cell, top + lane * cell, cell - 0.6, cell - 0.6))
    parts += _axis(left, top, side, "bank", str(BANKS - 1))
    parts += [
        text(left - 6, top + 10, "0", "mu", anchor="end"),
        text(left - 6, top + side, str(WARP_SIZE - 1), "mu", anchor="end"),
        text(0, top + side / 2 + 4, "lane", "mu"),
    ]
    return svg(width, int(top + side + 22), label, parts)


def _axis(left: float, top: float, side: float, title: str, last: str) -> Iterator[Markup]:
    y = top + side + 17
    yield text(left, y, "0", "mu")
    yield text(left + side / 2, y, title, "mu", anchor="middle")
    yield text(left + side, y, last, "mu", anchor="end")


def sectors(lanes: Lanes, bytes_per_lane: int, label: str) -> Markup:
    """Each sector that a request takes as a bar of 32 bytes, and the bytes that lanes use."""
    return two(
        _sectors(lanes, bytes_per_lane, label, WIDE),
        _sectors(lanes, bytes_per_lane, label, NARROW),
    )


def _sectors(lanes: Lanes, bytes_per_lane: int, label: str, width: int) -> Markup:
    found = pieces(lanes, bytes_per_lane, "global")[:MOST_SECTORS]
    wide, high, gap = (width - 4) / COLUMNS - 5, 14, 5
    parts = []
    for place, one in enumerate(found):
        row, column = divmod(place, COLUMNS)
        x, y = column * (wide + gap) + 1, row * (high + gap) + 1
        parts.append(rect("bx", x, y, wide, high))
        used = wide * one.used_bytes / SECTOR_BYTES
        parts.append(rect("c0", x, y, used, high))
    rows = -(-len(found) // COLUMNS)
    y = rows * (high + gap) + 16
    parts.append(text(1, y, f"orange: bytes used of each sector of {SECTOR_BYTES} B", "mu"))
    return svg(width, y + 6, label, parts)
