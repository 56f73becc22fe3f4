"""Accesses of the blocks of a tiled matrix product to A, B and C, in closed form.

An oracle for the accesses that executed blocks record (`toolkit.execution.rung_accesses`). A block
reads its rows of A and its columns of B along k and then writes its tile of C. A piece is a part
along K of a row of tiles in A or of a column of tiles in B, a tile of C, or the partial sums that a
block leaves for another block with which it shares a tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.access import Tiling
from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.traffic.block_schedule import BlockProgress, Floats
from analysis.traffic.grid import Indices, Pieces
from analysis.traffic.l2 import ARRAYS, Accesses

# Parts along K: enough to distinguish near reuse from far reuse, few enough to run in seconds.
MOST_ACCESSES = 600_000
MOST_PARTS = 32
TAKEN_LATER = 1.01  # partial sums are read after they are written, whatever the speeds of the SMs
FLOATS_PER_SECTOR = SECTOR_BYTES // FLOAT_BYTES


def sums_bytes(tiling: Tiling) -> int:
    """Bytes of the partial sums of a tile that a block leaves: one sum per element."""
    return FLOAT_BYTES * tiling.block_m * tiling.block_n


def gemm_accesses(
    tiling: Tiling,
    problem: Gemm,
    pieces: Pieces,
    starts: Floats,
    progress: BlockProgress | None = None,
    lead: Floats | None = None,
) -> Accesses:
    """Accesses of all blocks, which compute `pieces` and begin at `starts`.

    Times are in lifetimes of a block that computes a whole tile of C. `progress` is even if not
    given. `lead`: work of each block before its first read, where blocks differ in it. The block
    that stores a tile reads the partial sums of all other blocks that share it.
    """
    down, across = ceil_div(problem.m, tiling.block_m), ceil_div(problem.n, tiling.block_n)
    parts = _parts(len(pieces.block), problem.k)
    spans = _spans(pieces, parts)
    of, of_block = spans.piece, pieces.block
    progress = BlockProgress.even(np.ones(len(starts))) if progress is None else progress
    lead = np.zeros(len(starts)) if lead is None else lead
    before = _work_before(pieces)
    done = starts[of_block] + progress.time(of_block, before + pieces.ends - pieces.begins)
    rows = np.minimum(tiling.block_m, problem.m - pieces.row * tiling.block_m)
    columns = np.minimum(tiling.block_n, problem.n - pieces.column * tiling.block_n)
    sectors_of_a = rows * _sectors(np.float64(problem.k), problem.k) / parts
    sectors_of_b = _sectors(columns, problem.n) * problem.k / parts
    sectors_of_c = rows * _sectors(columns, problem.n)
    tile = pieces.row * across + pieces.column
    b_from, c_from = down * parts, (down + across) * parts
    left_from = c_from + down * across

    def access(
        index: Indices, time: Floats, piece: Indices, sectors: Floats, size: Floats, is_write: bool
    ) -> Accesses:
        return Accesses(
            time=time,
            piece=piece,
            block=pieces.block[index],
            sectors=sectors,
            size=size,
            is_write=np.full(len(index), is_write),
        )

    def read(first: int, line: Indices, sectors: Floats, floats: Indices) -> Accesses:
        """Reads of parts of a row of tiles in A, or of a column of tiles in B."""
        size = (FLOAT_BYTES * problem.k / parts) * floats.astype(np.float64)
        name = first + line[of] * parts + spans.part
        waits = lead[of_block[of]]
        done = before[of] + waits + (1 - waits) * spans.work
        time = starts[of_block[of]] + progress.time(of_block[of], done)
        return access(of, time, name, sectors[of] * spans.share, size[of], False)

    stores, leaves = np.flatnonzero(pieces.ends == 1), np.flatnonzero(pieces.ends < 1)
    owner = np.empty(down * across, dtype=np.int64)
    owner[tile[stores]] = stores
    takes = owner[tile[leaves]]
    taken_at = np.maximum(done[takes], done[leaves]) * TAKEN_LATER
    np.maximum.at(done, takes, taken_at)  # a tile is stored when it has all of its sums
    sums = np.full(len(leaves), float(sums_bytes(tiling)))
    left = left_from + np.arange(len(leaves))
    name_of_c = c_from + tile[stores]
    c_bytes = float(FLOAT_BYTES) * rows * columns
    every = (
        read(0, pieces.row, sectors_of_a, rows),
        read(b_from, pieces.column, sectors_of_b, columns),
        access(stores, done[stores], name_of_c, sectors_of_c[stores], c_bytes[stores], True),
        access(leaves, done[leaves], left, sums / SECTOR_BYTES, sums, True),
        access(takes, taken_at, left, sums / SECTOR_BYTES, sums, False),
    )
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(accesses, name) for accesses in every]) for name in ARRAYS
    }
    return Accesses(**arrays)


@dataclass(frozen=True, kw_only=True)
class _Spans:
    """Parts of K that pieces read: fraction of each part, and work on the piece done before it."""

    piece: Indices
    part: Indices
    share: Floats
    work: Floats


def _spans(pieces: Pieces, parts: int) -> _Spans:
    first = np.floor(pieces.begins * parts).astype(np.int64)
    counts = np.ceil(pieces.ends * parts).astype(np.int64) - first
    piece = np.repeat(np.arange(len(counts)), counts)
    part = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts) + first[piece]
    begins = np.maximum(pieces.begins[piece] * parts, part)
    ends = np.minimum(pieces.ends[piece] * parts, part + 1)
    return _Spans(
        piece=piece,
        part=part,
        share=ends - begins,
        work=(begins + ends) / 2 / parts - pieces.begins[piece],
    )


def _work_before(pieces: Pieces) -> Floats:
    """Work that the block of each piece has done on its earlier pieces."""
    lengths = pieces.ends - pieces.begins
    before = np.cumsum(lengths) - lengths
    of_block = np.flatnonzero(np.diff(pieces.block, prepend=-1))
    found: Floats = before - np.repeat(before[of_block], np.diff(of_block, append=len(before)))
    return found


def _parts(blocks: int, k: int) -> int:
    wanted = MOST_ACCESSES // (2 * blocks)
    return max(1, min(wanted, MOST_PARTS, k // FLOATS_PER_SECTOR))


def _sectors(floats: np.ndarray | np.float64, pitch: int) -> np.ndarray:
    """Sectors of consecutive floats in a row, averaged over the alignments that `pitch` allows."""
    if pitch % FLOATS_PER_SECTOR == 0:
        return np.ceil(np.asarray(floats) / FLOATS_PER_SECTOR)
    return (np.asarray(floats) + FLOATS_PER_SECTOR - 1) / FLOATS_PER_SECTOR
