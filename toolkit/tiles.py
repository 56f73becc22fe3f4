"""What a rung is launched with: matrices or tensor maps of them, and a workspace where it asks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.problem import Gemm
from kernels.registry import Parameters, Variant
from toolkit.executor import Argument
from toolkit.tensor_map import TensorMap, Tiling

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


def rung_arguments(
    variant: Variant,
    parameters: Parameters,
    shape: Gemm,
    matrices: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> list[Argument]:
    """The arguments for `simulate` and `run` of C = alpha·A·B + beta·C at an executed shape.

    `matrices` are A of shape (M, K), B of (K, N) and C of (M, N), already padded.
    """
    a, b, c = matrices
    operands: list[Argument] = [a, b]
    if variant.bulk_tiles is not None:
        tiles = variant.bulk_tiles(parameters)
        operands = [_mapped(a, tiles.a, tiles.swizzle_a), _mapped(b, tiles.b, tiles.swizzle_b)]
    sizes = [np.int32(extent) for extent in (shape.m, shape.n, shape.k)]
    workspace = variant.workspace(parameters, shape)
    last: list[Argument] = [] if workspace is None else [np.zeros(max(workspace, 1), np.uint8)]
    return [*operands, c, *sizes, np.float32(alpha), np.float32(beta), *last]


def _mapped(matrix: NDArray[np.float32], box: tuple[int, int], swizzle: int) -> TensorMap:
    return TensorMap(matrix, box=box, swizzle=swizzle, l2_promotion=L2_PROMOTION_BYTES)
