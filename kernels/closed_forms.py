"""What is known of one launch of a rung before it runs: who computes what, and access patterns.

Every `problem` is an executed shape (`Variant.executed`).
"""

from __future__ import annotations

import numpy as np

from analysis.access import Pattern, access_counts
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from analysis.traffic.grid import Pieces
from kernels import warps
from kernels.variant import Parameters, Variant


def tile_of_c(
    variant: Variant, parameters: Parameters, problem: Gemm, block: int
) -> tuple[range, range]:
    """The rows and columns of C that a block computes, empty for a block beyond C.

    `block` is its linear index in the grid, x fastest.
    """
    tiling, tiles = variant.tiling(parameters), variant.tile_grid(parameters, problem)
    row, column = variant.order_of(parameters).tile_of(np.array([block]), tiles)
    return (
        _part(int(row[0]), tiling.block_m, problem.m),
        _part(int(column[0]), tiling.block_n, problem.n),
    )


def _part(index: int, extent: int, end: int) -> range:
    """Part number `index` of `extent` elements each, cut off at `end`."""
    return range(min(index * extent, end), min((index + 1) * extent, end))


def pieces_of_c(variant: Variant, parameters: Parameters, problem: Gemm) -> Pieces:
    """The tiles of C that each block computes, and which phases of them."""
    phases = ceil_div(problem.k, variant.tiling(parameters).block_k or 1)
    return variant.order_of(parameters).pieces_of(variant.tile_grid(parameters, problem), phases)


def first_warp_patterns(
    variant: Variant, parameters: Parameters, problem: Gemm
) -> tuple[Pattern, ...]:
    """The access patterns of the first warp of the grid, one per access."""
    if variant.warp is None:
        return ()
    tiling = variant.tiling(parameters)
    return warps.patterns(variant.warp(tiling, problem), access_counts(tiling, problem))
