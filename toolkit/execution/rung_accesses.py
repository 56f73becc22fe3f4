"""Accesses of all blocks of a rung to global memory, from the footprints of a few executed blocks.

The registry of rungs says which tiles each block computes, so which parts of A, B and C the
footprint of its region (or kind) covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import ceil_div
from analysis.traffic.block_schedule import BlockProgress, Floats
from analysis.traffic.grid import Indices, Pieces, TileGrid
from analysis.traffic.l2 import Accesses
from analysis.traffic.pieces import READ
from kernels.closed_forms import pieces_of_c
from toolkit.execution.accesses import after_writes, steps_of_all_work
from toolkit.execution.distinct import distinct
from toolkit.execution.footprint import BIN_FLOATS, Data, Footprint
from toolkit.rungs.launch import RungLaunch

# Parts along K: enough to distinguish near reuse from far reuse, few enough to run in seconds.
MOST_ACCESSES = 600_000
MOST_PARTS = 32


class RungAccesses:
    """Accesses of all blocks of a rung, from the footprint of a block of each region or kind.

    `waits`: blocks wait for data of others.
    """

    def __init__(
        self,
        launch: RungLaunch,
        footprints: Sequence[Footprint],
        region_of: Indices,
        *,
        waits: bool,
    ) -> None:
        pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
        blocks, bins = len(region_of), ceil_div(launch.executed.k, BIN_FLOATS)
        parts = max(1, min(MOST_ACCESSES // (2 * len(pieces.block)), MOST_PARTS, bins))
        found = [_joined(one, bins, parts) for one in footprints]
        counts = np.array([len(one.entries) for one in found])
        of_block, begins = counts[region_of], np.cumsum(counts) - counts
        self.block = np.repeat(np.arange(blocks), of_block)
        within = np.arange(len(self.block)) - (np.cumsum(of_block) - of_block)[self.block]
        rows = begins[region_of][self.block] + within
        self.entries = np.concatenate([one.entries for one in found])[rows]
        self.piece = _names(self.entries, self.block, pieces, launch.tiles, parts)
        last, last_read = (
            np.array([getattr(one, name) for one in found])[region_of]
            for name in ("last", "last_read")
        )
        steps = np.maximum(1, last) if waits else steps_of_all_work(last, last_read)
        self.done = np.minimum(1.0, self.entries["step"] / steps[self.block])
        self.is_write = self.entries["kind"] != READ
        self.size = self._sizes() if waits else self.entries["bytes"]
        #: reads of partial sums that other blocks wrote, and the write of each
        self.read, self.before = self._exchanged() if waits else np.zeros((2, 0), dtype=np.int64)

    def _sizes(self) -> Floats:
        """Bytes of each piece: of the block that accesses most of it."""
        of_piece = np.zeros(int(self.piece.max(initial=-1)) + 1)
        np.maximum.at(of_piece, self.piece, self.entries["bytes"])
        found: Floats = of_piece[self.piece]
        return found

    def _exchanged(self) -> tuple[Indices, Indices]:
        is_sum = self.entries["data"] == Data.SUMS
        writes, reads = (
            np.flatnonzero(is_sum & self.is_write),
            np.flatnonzero(is_sum & ~self.is_write),
        )
        last = np.full(int(self.piece.max(initial=-1)) + 1, -1)
        last[self.piece[writes]] = writes
        before = last[self.piece[reads]]
        others = (before >= 0) & (self.block[reads] != self.block[before])
        return reads[others], before[others]

    @property
    def sums_bytes(self) -> float:
        """Bytes of partial sums that blocks read after other blocks wrote them."""
        return float(SECTOR_BYTES * self.entries["sectors"][self.read].sum())

    @property
    def sums_writers(self) -> int:
        """Number of blocks that wrote these sums."""
        return len(np.unique(self.block[self.before]))

    def in_time(
        self,
        lifetimes: Floats,
        starts: Floats,
        progress: BlockProgress,
        *,
        typical_steps: float | None = None,
    ) -> Accesses:
        """Accesses of blocks that begin at `starts` and take `lifetimes`.

        `typical_steps`: steps that take a lifetime of 1, for a launch whose blocks differ.
        """
        steps = self.entries["step"]
        done = self.done * lifetimes[self.block] if typical_steps is None else steps / typical_steps
        time = starts[self.block] + progress.time(self.block, done)
        if len(self.read):
            time = after_writes(
                self.block, self.entries["step"], time, read=self.read, before=self.before
            )
        return Accesses(
            time=time,
            piece=self.piece,
            block=self.block,
            sectors=self.entries["sectors"],
            size=self.size,
            is_write=self.is_write,
        )


def _joined(found: Footprint, bins: int, parts: int) -> Footprint:
    """The footprint, with `bins` positions along K joined to `parts` parts."""
    entries = found.entries
    part = np.minimum(entries["bin"].astype(np.int64) * parts // bins, parts - 1)
    columns = [*(entries[name] for name in ("data", "kind", "own", "slot")), part]
    some, kind = distinct(columns)
    joint = entries[some]
    joint["bin"] = part[some]
    for name in ("sectors", "bytes"):
        joint[name] = np.bincount(kind, entries[name])
    joint["step"] = np.bincount(kind, entries["sectors"] * entries["step"]) / joint["sectors"]
    return replace(found, entries=joint)


def _names(
    entries: NDArray[Any], block: Indices, pieces: Pieces, tiles: TileGrid, parts: int
) -> Indices:
    """Number of the piece that each entry accesses: blocks share what has one number.

    `block`: block of each entry. `parts`: parts along K.
    """
    own = np.searchsorted(pieces.block, block) + entries["own"]
    part = entries["bin"]
    numbers = {
        Data.A: (pieces.row[own] * parts + part, tiles.down * parts),
        Data.B: (pieces.column[own] * parts + part, tiles.across * parts),
        Data.C: (own, len(pieces.block)),
        Data.SUMS: (np.maximum(0, block + entries["slot"]), 0),
    }
    found, begin = np.zeros(len(entries), dtype=np.int64), 0
    for data, (number, count) in numbers.items():
        at = entries["data"] == data
        found[at] = begin + number[at]
        begin += count
    return found
