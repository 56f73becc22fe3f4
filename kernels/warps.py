"""Addresses that the 32 lanes of a rung's first warp access.

Each function repeats the index arithmetic of one kernel for threads 0 to 31 of block (0, 0) in
phase 0. tests/kernels/ compares the numbers that follow from the addresses (sectors, lines,
wavefronts per request) with hardware counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.access import AccessCounts, Operand, Operation, Pattern, Space, Tiling
from analysis.coalescing import pattern
from analysis.geometry import WARP_SIZE, ceil_div
from analysis.problem import FLOAT_BYTES, Gemm

Lanes = NDArray[np.int64]
Position = tuple[Lanes, Lanes]  # row and column

THREAD = np.arange(WARP_SIZE)
VECTOR = 4  # floats of a float4


@dataclass(frozen=True, kw_only=True)
class WarpAccess:
    """One access of a warp."""

    addresses: Lanes  #: in bytes
    active: NDArray[np.bool_]  #: lanes that take part
    instruction_bytes: int  #: per lane


WarpAccesses = dict[tuple[Space, Operation, Operand], WarpAccess]


def patterns(accesses: WarpAccesses, counts: AccessCounts) -> tuple[Pattern, ...]:
    """Pattern of each access, with the number of such requests in the launch."""

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
    """Access to `width` floats at [row][column] of a row-major matrix, inside of its extents."""
    row, column = np.broadcast_arrays(row, column)
    return WarpAccess(
        addresses=FLOAT_BYTES * (row * columns + column),
        active=(row < rows) & (column < columns),
        instruction_bytes=FLOAT_BYTES * width,
    )


def _of_matrices(
    problem: Gemm, a: Position, b: Position, c: Position, width_a: int = 1, width_b: int = 1
) -> WarpAccesses:
    """Loads of A and B, and the store of C, which is as wide as the load of B."""
    return {
        ("global", "load", "A"): _matrix(*a, problem.m, problem.k, width_a),
        ("global", "load", "B"): _matrix(*b, problem.k, problem.n, width_b),
        ("global", "store", "C"): _matrix(*c, problem.m, problem.n, width_b),
    }


def _shared(index: Lanes, width: int = 1) -> WarpAccess:
    """Access to `width` floats at `index` of a tile in shared memory."""
    return WarpAccess(
        addresses=FLOAT_BYTES * index,
        active=np.ones(WARP_SIZE, dtype=bool),
        instruction_bytes=FLOAT_BYTES * width,
    )


def _bytes(addresses: Lanes, width_bytes: int) -> WarpAccess:
    """Access to so many bytes of each lane in shared memory."""
    return WarpAccess(
        addresses=addresses,
        active=np.ones(WARP_SIZE, dtype=bool),
        instruction_bytes=width_bytes,
    )


def one_thread_per_element(
    tiling: Tiling, problem: Gemm, *, rows_along_x: bool = False
) -> WarpAccesses:
    """Rungs 1 to 3: a square block of threads, one element of C each."""
    y, x = np.divmod(THREAD, tiling.block_n)
    row, column = (x, y) if rows_along_x else (y, x)
    first = np.zeros_like(THREAD)
    inside = (row < problem.m) & (column < problem.n)  # other threads exit at once
    accesses = _of_matrices(problem, (row, first), (first, column), (row, column))
    return {
        key: WarpAccess(
            addresses=access.addresses,
            active=access.active & inside,
            instruction_bytes=access.instruction_bytes,
        )
        for key, access in accesses.items()
    }


def uncoalesced(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 2: the threads of a warp own neighbouring rows."""
    return one_thread_per_element(tiling, problem, rows_along_x=True)


def coarsened(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rungs 4 to 6: scalar copies; each thread computes a tile of C, in rung 4 one element.

    The compiler merges four reads along a row of the tile of A, and of B where a thread reads
    several columns.
    """
    a, b = np.divmod(THREAD, tiling.depth), np.divmod(THREAD, tiling.block_n)
    c_row, c_column = _own_tile(tiling)
    return {
        **_of_matrices(problem, a, b, (c_row, c_column)),
        ("shared", "store", "A"): _shared(THREAD),
        ("shared", "store", "B"): _shared(THREAD),
        ("shared", "load", "A"): _shared(c_row * tiling.depth, tiling.shared_load_a_width),
        ("shared", "load", "B"): _shared(c_column, tiling.shared_load_b_width),
    }


def vectorized(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 7: all accesses are float4, except the stores that transpose the tile of A."""
    a_row, _ = _quad_of_a(tiling)
    return _transposed(tiling, problem, a_row, _own_tile(tiling))


def conflict_free(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 8: the transposed tile is swizzled; the float4 of a thread are half a tile apart."""
    row, column = np.divmod(THREAD, tiling.block_n // tiling.thread_n)
    return _transposed(tiling, problem, _swizzled(tiling), (VECTOR * row, VECTOR * column))


def warp_tiled(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rungs 9 and 10: two bits of a lane choose its columns of C, the other three its rows."""
    return _transposed(tiling, problem, _swizzled(tiling), (VECTOR * LANE_M, VECTOR * LANE_N))


# Bits 1, 3 and 4 of a lane choose its rows, bits 0 and 2 its columns: 16-byte reads of both are
# then served two quarter-warps at a time (analysis.coalescing).
LANE_M = THREAD >> 1 & 1 | THREAD >> 2 & 6
LANE_N = THREAD & 1 | THREAD >> 1 & 2


def asynchronous(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rungs 11 and 12: asynchronous copies, of A in single floats. Otherwise as in rung 9."""
    width_a, width_b = tiling.global_widths(problem)
    a = np.divmod(width_a * THREAD, tiling.depth)
    b = np.divmod(width_b * THREAD, tiling.block_n)
    c_row, c_column = VECTOR * LANE_M, VECTOR * LANE_N
    return {
        **_of_matrices(problem, a, b, (c_row, c_column), width_a, width_b),
        ("shared", "load", "A"): _shared(c_row, VECTOR),
        ("shared", "load", "B"): _shared(c_column, VECTOR),
    }


def fragments(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 20: ldmatrix reads rows of 16 bytes of A, swizzled by the row; B is swizzled by k."""
    width_a, width_b = tiling.global_widths(problem)
    a = np.divmod(width_a * THREAD, tiling.depth)
    b = np.divmod(width_b * THREAD, tiling.block_n)
    row, piece = THREAD % 16, THREAD // 16 ^ THREAD % 8
    group, member = np.divmod(THREAD, 4)
    quad = group // 2 + group % 2 * 4 ^ member
    return {
        **_of_matrices(problem, a, b, (group, VECTOR * member), width_a, width_b),
        ("shared", "load", "A"): _shared(row * tiling.depth + VECTOR * piece, VECTOR),
        ("shared", "load", "B"): _shared(member * tiling.block_n + VECTOR * quad, VECTOR),
    }


def scaled_fragments(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 21: parts of FP16, two for each float, swizzled by the row or by k; and scales."""
    width_a, width_b = tiling.global_widths(problem)
    row, quad = np.divmod(THREAD, tiling.depth // VECTOR)
    group, member = np.divmod(THREAD, 4)
    half_row = 2 * tiling.depth  # bytes of a row of one part of A
    read_row, piece = THREAD % 16, THREAD // 16
    eight_rows = row % 8 * 8
    return {
        **_of_matrices(
            problem,
            (row, VECTOR * quad),
            (group, VECTOR * member),
            (group, VECTOR * member),
            width_a,
            width_b,
        ),
        ("shared", "store", "A"): _bytes(
            half_row * row + 16 * (quad // 2 ^ row // 2 % 4) + 8 * (quad % 2), 8
        ),
        ("shared", "store", "B"): _bytes(
            2 * tiling.block_n * group + 16 * (group % 8) + 4 * member, 4
        ),
        ("shared", "store", "scales of A"): _shared(eight_rows),
        ("shared", "store", "scales of B"): _shared(VECTOR * member, VECTOR),
        ("shared", "load", "A"): _bytes(half_row * read_row + 16 * (piece ^ read_row // 2 % 4), 16),
        ("shared", "load", "B"): _bytes(
            2 * tiling.block_n * read_row + 16 * (piece ^ read_row % 8), 16
        ),
        ("shared", "load", "scales of A"): _shared(8 * group, VECTOR),
        ("shared", "load", "scales of B"): _shared(VECTOR * member, VECTOR),
    }


def bulk(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rungs 13 to 18: rows of A are swizzled in pieces of 16 bytes, of which a lane reads one.

    Bulk copies are not accesses of a warp.
    """
    return {
        ("global", "store", "C"): _matrix(LANE_M, VECTOR * LANE_N, problem.m, problem.n, VECTOR),
        ("shared", "load", "A"): _shared(LANE_M * (32 + VECTOR), VECTOR),
        ("shared", "load", "B"): _shared(VECTOR * LANE_N, VECTOR),
    }


def realigned(tiling: Tiling, problem: Gemm) -> WarpAccesses:
    """Rung 19: C is stored in single floats if N is not a multiple of 4."""
    width = VECTOR if problem.n % VECTOR == 0 else 1
    store = _matrix(LANE_M, VECTOR * LANE_N, problem.m, problem.n, width)
    return {**bulk(tiling, problem), ("global", "store", "C"): store}


def _quad_of_a(tiling: Tiling) -> Position:
    """Row and first column of the float4 that each thread copies of the tile of A."""
    row, vector = np.divmod(THREAD, tiling.depth // VECTOR)
    return row, VECTOR * vector


def _swizzled(tiling: Tiling) -> Lanes:
    """Column of the transposed tile to which each thread copies its row of A."""
    row, column = _quad_of_a(tiling)
    rows_per_warp = WARP_SIZE * VECTOR // tiling.depth
    return row ^ column // VECTOR * rows_per_warp


def _transposed(
    tiling: Tiling, problem: Gemm, stored_row: Lanes, tile_of_c: Position
) -> WarpAccesses:
    """Copies in float4, with the tile of A transposed. `tile_of_c`: start of each thread's tile."""
    a_row, a_column = _quad_of_a(tiling)
    b_row, b_vector = np.divmod(THREAD, tiling.block_n // VECTOR)
    c_row, c_column = tile_of_c
    a, b = (a_row, a_column), (b_row, VECTOR * b_vector)
    return {
        **_of_matrices(problem, a, b, tile_of_c, VECTOR, VECTOR),
        ("shared", "store", "A"): _shared(a_column * tiling.block_m + stored_row),
        ("shared", "store", "B"): _shared(VECTOR * THREAD, VECTOR),
        ("shared", "load", "A"): _shared(c_row, VECTOR),
        ("shared", "load", "B"): _shared(c_column, VECTOR),
    }


def _own_tile(tiling: Tiling) -> Position:
    """First row and column of each thread's tile of C. Consecutive threads share rows of C."""
    row, column = np.divmod(THREAD, tiling.block_n // tiling.thread_n)
    return row * tiling.thread_m, column * tiling.thread_n
