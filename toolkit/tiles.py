"""The tensor maps of a rung that has whole tiles copied."""

from __future__ import annotations

import numpy as np

from analysis.problem import Gemm
from kernels.registry import Parameters, Variant
from toolkit.tensor_map import Tiling

L2_PROMOTION_BYTES = 256  # what L2 fetches of DRAM at a time: two rows of a tile of A, half of B's


def tilings(variant: Variant, parameters: Parameters, shape: Gemm) -> tuple[Tiling, Tiling] | None:
    """Those of A and B at an executed shape, None for a rung that takes pointers."""
    if variant.bulk_tiles is None:
        return None
    tiles = variant.bulk_tiles(parameters)
    return (
        _tiling((shape.m, shape.k), tiles.a, tiles.swizzle_a),
        _tiling((shape.k, shape.n), tiles.b, tiles.swizzle_b),
    )


def _tiling(shape: tuple[int, int], box: tuple[int, int], swizzle: int) -> Tiling:
    return Tiling(
        shape=shape,
        dtype=np.dtype(np.float32),
        box=box,
        swizzle=swizzle,
        l2_promotion=L2_PROMOTION_BYTES,
    )
