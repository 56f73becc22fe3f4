"""What blocks touched of global memory, as the core notes it, for `analysis.traffic`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.traffic import SECTOR_BYTES, Floats, Touches
from toolkit.sass.core import TOUCH

READ, WRITE, ATOMIC = range(3)  # kinds of touches, as trace.h numbers them
MOST_TOUCHES = 1 << 22  # of each worker: 100 MB of them

_SECTORS = np.array([bin(mask).count("1") for mask in range(256)])


@dataclass(frozen=True, kw_only=True)
class Below:
    """Sectors of 32 bytes that blocks ask of L2.

    `read` are those that a block reads for the first time, `written` those that a warp writes for
    the first time.
    """

    read: int
    written: int


def below(touches: NDArray[Any]) -> Below:
    """The sectors of all touches."""
    sectors, kind = _SECTORS[touches["mask"]], touches["kind"]
    return Below(read=int(sectors[kind == READ].sum()), written=int(sectors[kind == WRITE].sum()))


def touches_in_time(touches: NDArray[Any], starts: Floats) -> Touches:
    """The touches of all blocks of a launch, line by line.

    `starts` says when each block begins, in its lifetimes; within one, time goes with the
    instructions of the warp that lives longest. An atomic both reads its line and writes it.
    """
    assert touches.dtype == TOUCH
    block = touches["block"].astype(np.int64)
    life = np.zeros(len(starts))
    np.maximum.at(life, block, touches["step"])
    time = starts[block] + touches["step"] / np.maximum(life[block], 1)
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
