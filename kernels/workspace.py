"""Layout of a workspace: flags first, then partial sums, then copies of A and B.

A block that shares a tile with other blocks stores its partial sums there, and then sets its flag.
"""

from __future__ import annotations

from analysis.access import Tiling
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.traffic.grid import TileGrid, streamed
from kernels.variant import Copies, Parameters, Words

FLAG_BYTES = 4
FLAGS_OF_A_SECTOR = 8
MOST_MEMBERS = 16  # of a group: blocks that share a tile and add their sums together
FLAGS_ALIGNMENT = 128  # bytes: the partial sums follow the flags at a multiple of it
COUNTS_BYTES = 128  # between the partial sums and the copies of A and B
ROW_FLOATS = 4  # rows of a tensor map are multiples of 16 bytes


def row_floats(columns: int) -> int:
    """Row length of a copy in the workspace, in floats."""
    return ceil_div(columns, ROW_FLOATS) * ROW_FLOATS


def _flags_and_sums_bytes(tiling: Tiling, blocks: int, *, flags_of_a_block: int = 1) -> int:
    flags = ceil_div(FLAG_BYTES * flags_of_a_block * blocks, FLAGS_ALIGNMENT) * FLAGS_ALIGNMENT
    return flags + blocks * FLOAT_BYTES * tiling.block_m * tiling.block_n


def bytes_of_workers(tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm) -> int:
    """Bytes of the workspace if workers share the tiles of an incomplete last wave."""
    return _flags_and_sums_bytes(tiling, p["workers"]) if tiles.tiles % p["workers"] else 0


def flags_of_workers(
    tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    """Flags of all workers."""
    return (Words(count=p["workers"]),)


def bytes_of_splits(tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm) -> int:
    """Bytes of the workspace if `splits` blocks share each tile."""
    if p["splits"] == 1:
        return 0
    flags, blocks = _flags_of_a_split(p["splits"]), tiles.tiles * p["splits"]
    return _flags_and_sums_bytes(tiling, blocks, flags_of_a_block=flags)


def flags_of_splits(
    tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    """Flags of all blocks."""
    return (Words(count=tiles.tiles * p["splits"] * _flags_of_a_split(p["splits"])),)


def _flags_of_a_split(splits: int) -> int:
    """Number of flags of a block: one per member of its group, one more, in whole sectors."""
    flags = 1 + max(n for n in range(1, MOST_MEMBERS + 1) if splits % n == 0)
    return ceil_div(flags, FLAGS_OF_A_SECTOR) * FLAGS_OF_A_SECTOR


def realigned_copies(tiling: Tiling, p: Parameters, problem: Gemm) -> Copies:
    """Copies of the matrices whose row length is not a multiple of `ROW_FLOATS`, A before B."""
    copies_a, copies_b = problem.k % ROW_FLOATS != 0, problem.n % ROW_FLOATS != 0
    if not copies_a and not copies_b:
        return Copies()
    begin = _flags_and_sums_bytes(tiling, p["workers"]) + COUNTS_BYTES
    behind_a = begin + copies_a * FLOAT_BYTES * problem.m * row_floats(problem.k)
    end = behind_a + copies_b * FLOAT_BYTES * problem.k * row_floats(problem.n)
    return Copies(a=begin if copies_a else None, b=behind_a if copies_b else None, end=end)


def bytes_with_copies(tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm) -> int:
    """Bytes of the workspace up to the end of the copies; without copies, those of workers."""
    copies = realigned_copies(tiling, p, problem)
    return copies.end or bytes_of_workers(tiling, p, tiles, problem)


def flags_and_counts_of_copies(
    tiling: Tiling, p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    """Flags of all workers, and counts of blocks that made copies and that found copies complete.

    The block that is last to find the copies complete resets both counts for the next launch.
    """
    flags = flags_of_workers(tiling, p, tiles, problem, is_last)
    if not realigned_copies(tiling, p, problem).end:
        return flags
    counts = _flags_and_sums_bytes(tiling, p["workers"])
    x, y, z = streamed(p["band"], p["workers"]).grid(tiles)
    known = x * y * z - 1 if is_last else 0
    return (
        *flags,
        Words(offset=counts, count=1, value=p["workers"]),
        Words(offset=counts + FLOAT_BYTES, count=1, value=known),
    )
