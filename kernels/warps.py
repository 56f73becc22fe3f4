"""Where the 32 lanes of a rung's first warp read and write: the addresses behind its patterns.

Each function mirrors the index arithmetic of one kernel for threads 0 to 31 of block (0, 0) in
phase 0. The numbers that follow from it (sectors, lines, wavefronts per request) are compared
with hardware counters in tests/kernels/.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.access import AccessCounts, Operand, Operation, Space
from analysis.coalescing import pattern
from analysis.geometry import WARP_SIZE, ceil_div
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.result import Pattern

Lanes = NDArray[np.int64]

THREAD = np.arange(WARP_SIZE)
VECTOR = 4  # floats of a float4


@dataclass(frozen=True, kw_only=True)
class WarpAccess:
    """Byte addresses of one warp-level access, and which lanes take part."""

    addresses: Lanes
    active: NDArray[np.bool_]
    instruction_bytes: int


WarpAccesses = dict[tuple[Space, Operation, Operand], WarpAccess]


def patterns(accesses: WarpAccesses, counts: AccessCounts) -> tuple[Pattern, ...]:
    """The pattern of each access, with the number of requests that the launch makes of it."""

    def described() -> Iterator[Pattern]:
        for (space, operation, operand), access in accesses.items():
            instructions = counts.instructions(space, operation, operand)
            yield pattern(
                space=space,
                operation=operation,
                operand=operand,
                addresses=access.addresses,
                active=access.active,
                instruction_bytes=access.instruction_bytes,
                requests=ceil_div(instructions, WARP_SIZE),
            )

    return tuple(described())


def _matrix(row: Lanes, column: Lanes, rows: int, columns: int, width: int = 1) -> WarpAccess:
    """`width` floats at [row][column] of a row-major matrix, guarded by its extent."""
    row, column = np.broadcast_arrays(row, column)
    return WarpAccess(
        addresses=FLOAT_BYTES * (row * columns + column),
        active=(row < rows) & (column < columns),
        instruction_bytes=FLOAT_BYTES * width,
    )


def _shared(index: Lanes, width: int = 1) -> WarpAccess:
    """`width` floats at `index` of a tile in shared memory."""
    return WarpAccess(
        addresses=FLOAT_BYTES * index,
        active=np.ones(WARP_SIZE, dtype=bool),
        instruction_bytes=FLOAT_BYTES * width,
    )


def one_thread_per_element(
    width: int, problem: Gemm, *, rows_along_x: bool = False
) -> WarpAccesses:
    """Rungs 1 to 3: a block of width × width threads, one element of C each."""
    y, x = np.divmod(THREAD, width)
    row, column = (x, y) if rows_along_x else (y, x)
    first = np.zeros_like(THREAD)
    inside = (row < problem.m) & (column < problem.n)  # the others leave at once
    accesses: WarpAccesses = {
        ("global", "load", "A"): _matrix(row, first, problem.m, problem.k),
        ("global", "load", "B"): _matrix(first, column, problem.k, problem.n),
        ("global", "store", "C"): _matrix(row, column, problem.m, problem.n),
    }
    return {
        key: WarpAccess(
            addresses=access.addresses,
            active=access.active & inside,
            instruction_bytes=access.instruction_bytes,
        )
        for key, access in accesses.items()
    }


def tiled(tile: int, problem: Gemm) -> WarpAccesses:
    """Rung 4; the compiler merges four reads along a row of the tile of A."""
    y, x = np.divmod(THREAD, tile)
    return {
        ("global", "load", "A"): _matrix(y, x, problem.m, problem.k),
        ("global", "load", "B"): _matrix(y, x, problem.k, problem.n),
        ("global", "store", "C"): _matrix(y, x, problem.m, problem.n),
        ("shared", "store", "A"): _shared(THREAD),
        ("shared", "store", "B"): _shared(THREAD),
        ("shared", "load", "A"): _shared(y * tile, VECTOR),
        ("shared", "load", "B"): _shared(x),
    }


def coarsened_1d(bk: int, tm: int, problem: Gemm) -> WarpAccesses:
    """Rung 5; the compiler merges four reads along a row of the tile of A."""
    a_row, a_column = np.divmod(THREAD, bk)
    c_group, column = np.divmod(THREAD, 64)
    return {
        ("global", "load", "A"): _matrix(a_row, a_column, problem.m, problem.k),
        ("global", "load", "B"): _matrix(c_group, column, problem.k, problem.n),
        ("global", "store", "C"): _matrix(c_group * tm, column, problem.m, problem.n),
        ("shared", "store", "A"): _shared(THREAD),
        ("shared", "store", "B"): _shared(THREAD),
        ("shared", "load", "A"): _shared(c_group * tm * bk, VECTOR),
        ("shared", "load", "B"): _shared(column),
    }


def coarsened_2d(bk: int, problem: Gemm) -> WarpAccesses:
    """Rung 6; the compiler merges four reads along the rows of both tiles."""
    a_row, a_column = np.divmod(THREAD, bk)
    b_row, b_column = np.divmod(THREAD, 128)
    c_row, c_column = (8 * index for index in np.divmod(THREAD, 16))
    return {
        ("global", "load", "A"): _matrix(a_row, a_column, problem.m, problem.k),
        ("global", "load", "B"): _matrix(b_row, b_column, problem.k, problem.n),
        ("global", "store", "C"): _matrix(c_row, c_column, problem.m, problem.n),
        ("shared", "store", "A"): _shared(THREAD),
        ("shared", "store", "B"): _shared(THREAD),
        ("shared", "load", "A"): _shared(c_row * bk, VECTOR),
        ("shared", "load", "B"): _shared(c_column, VECTOR),
    }


def vectorized(bk: int, problem: Gemm) -> WarpAccesses:
    """Rung 7: float4 everywhere but in the transposing stores of A."""
    a_row, a_vector = np.divmod(THREAD, bk // VECTOR)
    b_row, b_vector = np.divmod(THREAD, 128 // VECTOR)
    c_row, c_column = (8 * index for index in np.divmod(THREAD, 16))
    a_column, b_column = VECTOR * a_vector, VECTOR * b_vector
    return {
        ("global", "load", "A"): _matrix(a_row, a_column, problem.m, problem.k, VECTOR),
        ("global", "load", "B"): _matrix(b_row, b_column, problem.k, problem.n, VECTOR),
        ("global", "store", "C"): _matrix(c_row, c_column, problem.m, problem.n, VECTOR),
        ("shared", "store", "A"): _shared(a_column * 128 + a_row),
        ("shared", "store", "B"): _shared(VECTOR * THREAD, VECTOR),
        ("shared", "load", "A"): _shared(c_row, VECTOR),
        ("shared", "load", "B"): _shared(c_column, VECTOR),
    }
