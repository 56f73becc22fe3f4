"""What a rung is launched with: matrices or tensor maps of them, and a workspace where it asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.problem import FLOAT_BYTES, Gemm
from kernels.registry import Copies, Parameters, Variant, row_floats
from toolkit.executor import Argument
from toolkit.tensor_map import TensorMap, Tiling

C = 2  # where C stands among the arguments
L2_PROMOTION_BYTES = 256  # what L2 fetches of DRAM at a time: two rows of a tile of A, half of B's


@dataclass(frozen=True, kw_only=True)
class MapOf:
    """How a tensor map tiles A or B, or its copy at byte `offset` of the workspace."""

    tiling: Tiling
    offset: int | None

    def address(self, matrix: int, workspace: int | None) -> int:
        """Where the mapped array is, given where the matrix and the workspace are."""
        if self.offset is None:
            return matrix
        assert workspace is not None
        return workspace + self.offset


@dataclass(frozen=True, kw_only=True)
class Maps:
    """The tensor maps of A and B; `takes_rows`: the rung takes the matrices themselves too."""

    a: MapOf
    b: MapOf
    takes_rows: bool


def maps_of(variant: Variant, parameters: Parameters, shape: Gemm) -> Maps | None:
    """Those at an executed shape, None for a rung that takes pointers."""
    if variant.bulk_tiles is None:
        return None
    tiles = variant.bulk_tiles(parameters)
    copies = Copies(a=None, b=None)
    if variant.copies is not None:
        copies = variant.copies(parameters, shape)
    return Maps(
        a=_map((shape.m, shape.k), tiles.a, tiles.swizzle_a, copies.a),
        b=_map((shape.k, shape.n), tiles.b, tiles.swizzle_b, copies.b),
        takes_rows=variant.copies is not None,
    )


def _map(shape: tuple[int, int], box: tuple[int, int], swizzle: int, offset: int | None) -> MapOf:
    tiling = Tiling(
        shape=shape,
        dtype=np.dtype(np.float32),
        box=box,
        swizzle=swizzle,
        l2_promotion=L2_PROMOTION_BYTES,
        pitches=None if offset is None else (FLOAT_BYTES * row_floats(shape[1]),),
    )
    return MapOf(tiling=tiling, offset=offset)


def rung_arguments(
    variant: Variant,
    parameters: Parameters,
    shape: Gemm,
    matrices: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    workspace: NDArray[np.float32] | None = None,
) -> list[Argument]:
    """The arguments for `simulate` and `run` of C = alpha·A·B + beta·C at an executed shape.

    `matrices` are A of shape (M, K), B of (K, N) and C of (M, N), already padded. The `workspace`,
    of a rung that takes one, is zeros if it is left out.
    """
    a, b, c = matrices
    operands: list[Argument] = [a, b]
    last: list[Argument] = []
    if (size_bytes := variant.workspace(parameters, shape)) is not None:
        if workspace is None:
            workspace = np.zeros(max(size_bytes // FLOAT_BYTES, 1), np.float32)
        last = [workspace]
    if (maps := maps_of(variant, parameters, shape)) is not None:
        operands = [_mapped(of, x, *last) for of, x in ((maps.a, a), (maps.b, b))]
        last += [a, b] if maps.takes_rows else []
    sizes = [np.int32(extent) for extent in (shape.m, shape.n, shape.k)]
    return [*operands, c, *sizes, np.float32(alpha), np.float32(beta), *last]


def _mapped(of: MapOf, matrix: NDArray[np.float32], workspace: Argument | None = None) -> TensorMap:
    array = matrix if of.offset is None else workspace
    assert isinstance(array, np.ndarray)
    return TensorMap(
        array,
        box=of.tiling.box,
        swizzle=of.tiling.swizzle,
        l2_promotion=of.tiling.l2_promotion,
        shape=of.tiling.shape,
        pitches=of.tiling.pitches,
        offset=of.offset or 0,
    )
