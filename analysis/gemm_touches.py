"""What the blocks of a tiled matrix product touch of A, B and C, for `analysis.traffic`.

A block reads its rows of A and its columns of B from the first k to the last and writes its tile
of C at the end. Pieces are parts along K of a row of blocks in A and of a column of blocks in B,
and tiles of C.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from analysis.access import Tiling
from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import ceil_div
from analysis.grid import ROW_MAJOR, Order, TileGrid
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.traffic import Floats, Touches

# Parts along K: enough for L2 to tell near reuse from far, few enough for seconds.
MOST_TOUCHES = 600_000
MOST_PARTS = 32
LEFT_AT = 0.95  # of a life
FLOATS_PER_SECTOR = SECTOR_BYTES // FLOAT_BYTES


def gemm_touches(
    tiling: Tiling,
    problem: Gemm,
    starts: Floats,
    *,
    order: Order = ROW_MAJOR,
    left_bytes: float = 0.0,
) -> Touches:
    """The touches of every block; `starts` says when each begins, in lifetimes of a block.

    `order` says which tile of C each block computes. `left_bytes` are sums that blocks leave for
    the owners of the first tiles, as many for each, which read them when they end.
    """
    down, across = ceil_div(problem.m, tiling.block_m), ceil_div(problem.n, tiling.block_n)
    block, row, column = order.with_tiles(TileGrid(down=down, across=across))
    begins = starts[block]
    parts = _parts(len(block), problem.k)
    part = np.arange(parts)
    rows = np.minimum(tiling.block_m, problem.m - row * tiling.block_m)
    columns = np.minimum(tiling.block_n, problem.n - column * tiling.block_n)
    depth = problem.k / parts

    def along_k(of_block: np.ndarray) -> np.ndarray:
        return np.repeat(of_block, parts)

    time = (begins[:, None] + (part + 0.5) / parts).ravel()
    piece_of_a = (row[:, None] * parts + part).ravel()
    piece_of_b = (down + column[:, None]) * parts + part
    piece_of_c = (down + across) * parts + row * across + column
    sectors_of_a = along_k(rows * _sectors(np.float64(problem.k), problem.k) / parts)
    sectors_of_b = along_k(_sectors(columns, problem.n) * depth)
    of_c = Touches(
        time=begins + 1.0,
        piece=piece_of_c,
        block=block,
        sectors=rows * _sectors(columns, problem.n),
        size=FLOAT_BYTES * 1.0 * rows * columns,
        is_write=np.ones(len(block), bool),
    )
    every = [
        Touches(
            time=np.concatenate([time, time]),
            piece=np.concatenate([piece_of_a, piece_of_b.ravel()]),
            block=np.concatenate([along_k(block), along_k(block)]),
            sectors=np.concatenate([sectors_of_a, sectors_of_b]),
            size=FLOAT_BYTES * np.concatenate([along_k(rows * depth), along_k(columns * depth)]),
            is_write=np.zeros(2 * len(time), bool),
        ),
        of_c,
    ]
    if left_bytes:
        first = np.flatnonzero(begins == begins.min())
        each = np.full(len(first), left_bytes / len(first))
        left = Touches(
            time=begins[first] + LEFT_AT,
            piece=(down + across) * parts + down * across + first,
            block=block[first],
            sectors=each / SECTOR_BYTES,
            size=each,
            is_write=np.ones(len(first), bool),
        )
        every += [left, replace(left, time=begins[first] + 1.0, is_write=~left.is_write)]
    return Touches(
        **{
            one.name: np.concatenate([getattr(touches, one.name) for touches in every])
            for one in fields(Touches)
        }
    )


def _parts(blocks: int, k: int) -> int:
    wanted = MOST_TOUCHES // (2 * blocks)
    return max(1, min(wanted, MOST_PARTS, k // FLOATS_PER_SECTOR))


def _sectors(floats: np.ndarray | np.float64, pitch: int) -> np.ndarray:
    """Sectors of a run of floats in a row; rows of another pitch begin anywhere in a sector."""
    if pitch % FLOATS_PER_SECTOR == 0:
        return np.ceil(np.asarray(floats) / FLOATS_PER_SECTOR)
    return (np.asarray(floats) + FLOATS_PER_SECTOR - 1) / FLOATS_PER_SECTOR
