"""What blocks touched of global memory, as the core notes it, for `analysis.traffic`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.schedule import Courses, Floats
from analysis.traffic import Touches
from toolkit.sass.core import TOUCH
from toolkit.sass.machine import Touched

READ, WRITE, ATOMIC = range(3)  # kinds of touches, as trace.h numbers them
MOST_TOUCHES = 1 << 22  # of each worker: 100 MB of them

_SECTORS = np.array([bin(mask).count("1") for mask in range(256)])


@dataclass(frozen=True, kw_only=True)
class Below:
    """Sectors of 32 bytes that blocks ask of L2: each counts once per block.

    `written_by_warps` counts a sector once for each warp that writes it.
    """

    read: int
    written: int
    written_by_warps: int

    def times(self, blocks: int) -> Below:
        """That of as many blocks alike."""
        return Below(
            read=blocks * self.read,
            written=blocks * self.written,
            written_by_warps=blocks * self.written_by_warps,
        )

    def __add__(self, other: Below) -> Below:
        return Below(
            read=self.read + other.read,
            written=self.written + other.written,
            written_by_warps=self.written_by_warps + other.written_by_warps,
        )


def below(touched: Touched) -> Below:
    """The sectors of all touches."""
    sectors, kind = _SECTORS[touched.touches["mask"]], touched.touches["kind"]
    return Below(
        read=int(sectors[kind == READ].sum()),
        written=int(sectors[kind == WRITE].sum()),
        written_by_warps=touched.written_by_warps,
    )


def touches_in_time(
    touches: NDArray[Any], starts: Floats, courses: Courses | None = None
) -> Touches:
    """The touches of all blocks of a launch, line by line.

    `starts` says when each block begins, in its lifetimes, and `courses` how it gets on, evenly
    where not given; its work goes with the instructions of the warp that lives longest. An atomic
    both reads its line and writes it.
    """
    assert touches.dtype == TOUCH
    block = touches["block"].astype(np.int64)
    life = np.zeros(len(starts))
    np.maximum.at(life, block, touches["step"])
    courses = Courses.even(np.ones(len(starts))) if courses is None else courses
    work = touches["step"] / np.maximum(life[block], 1)
    time = starts[block] + courses.time(block, work)
    lines, piece = np.unique(touches["line"], return_inverse=True)
    masks = np.zeros(len(lines), dtype=np.uint8)
    np.bitwise_or.at(masks, piece, touches["mask"])
    sectors = _SECTORS[touches["mask"]].astype(np.float64)
    is_atomic = touches["kind"] == ATOMIC
    sectors[is_atomic] = 0.0  # counted apart: neither reads nor writes of L2
    size = SECTOR_BYTES * _SECTORS[masks][piece].astype(np.float64)
    is_write = touches["kind"] == WRITE
    again = np.flatnonzero(is_atomic)
    every = np.concatenate([np.arange(len(touches)), again])
    return Touches(
        time=time[every],
        piece=piece.astype(np.int64)[every],
        block=block[every],
        sectors=sectors[every],
        size=size[every],
        is_write=np.concatenate([is_write, np.ones(len(again), dtype=bool)]),
    )
