"""Facts about one launch of a rung before it runs: tiles of each block, and access patterns.

Every `problem` is an executed shape (`Variant.executed`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.access import Pattern, access_counts
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from analysis.traffic.grid import Pieces
from kernels import warps
from kernels.variant import Parameters, Variant


def tiles_of_c(
    variant: Variant, parameters: Parameters, problem: Gemm, blocks: Sequence[int]
) -> list[tuple[range, range]]:
    """Rows and columns of C that each block of `blocks` stores, in order of the block index.

    `blocks` are linear indices in the grid, x fastest. Blocks that store nothing are left out.
    """
    tiling, order = variant.tiling(parameters), variant.order_of(parameters)
    owners, row, column = order.with_tiles(variant.tile_grid(parameters, problem))
    tiles = np.column_stack([row, column])[np.isin(owners, blocks)]
    m, n = tiling.block_m, tiling.block_n
    return [
        (range(i * m, min(i * m + m, problem.m)), range(j * n, min(j * n + n, problem.n)))
        for i, j in tiles.tolist()
    ]


def pieces_of_c(variant: Variant, parameters: Parameters, problem: Gemm) -> Pieces:
    """Parts of tiles of C that each block computes, with their range of K."""
    phases = ceil_div(problem.k, variant.tiling(parameters).block_k or 1)
    return variant.order_of(parameters).pieces_of(variant.tile_grid(parameters, problem), phases)


def first_warp_patterns(
    variant: Variant, parameters: Parameters, problem: Gemm
) -> tuple[Pattern, ...]:
    """Access patterns of the first warp of the grid, one per access."""
    if variant.warp is None:
        return ()
    tiling = variant.tiling(parameters)
    return warps.patterns(variant.warp(tiling, problem), access_counts(tiling, problem))
