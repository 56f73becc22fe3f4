"""Arguments of a rung: matrices or tensor maps of them, and a workspace if it needs one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.problem import FLOAT_BYTES, Gemm
from kernels.variant import Copies, Parameters, Reference, Role, Variant
from kernels.workspace import row_floats
from toolkit.launch.launch import Argument
from toolkit.launch.tensor_map import TensorMap

L2_PROMOTION_BYTES = 256  # what L2 fetches of DRAM at a time: two rows of a tile of A, half of B's


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
    values: dict[Role, Argument] = {"A": a, "B": b, "C": c}
    values |= {"M": np.int32(shape.m), "N": np.int32(shape.n), "K": np.int32(shape.k)}
    values |= {"alpha": np.float32(alpha), "beta": np.float32(beta)}
    if (size_bytes := variant.workspace(parameters, shape)) is not None:
        if workspace is None:
            workspace = np.zeros(max(size_bytes // FLOAT_BYTES, 1), np.float32)
        values["workspace"] = workspace
    if variant.bulk_tiles is not None:
        tiling, sharing = variant.tiling(parameters), variant.sharing
        tiles = variant.bulk_tiles(tiling)
        copies = sharing.copies(tiling, parameters, shape) if sharing else Copies()
        values["tiles of A"] = _mapped(a, tiles.a, tiles.swizzle_a, copies.a, workspace)
        values["tiles of B"] = _mapped(b, tiles.b, 0, copies.b, workspace)
    return [values[role] for role in variant.arguments]


def position_of_c(variant: Variant | Reference) -> int:
    """Position of C among the arguments of a launch."""
    return variant.arguments.index("C")


def _mapped(
    matrix: NDArray[np.float32],
    box: tuple[int, int],
    swizzle: int,
    offset: int | None,
    workspace: NDArray[np.float32] | None,
) -> TensorMap:
    """The tensor map of a matrix, or of its copy at byte `offset` of the workspace."""
    array = matrix if offset is None else workspace
    assert array is not None
    return TensorMap(
        array,
        box=box,
        swizzle=swizzle,
        l2_promotion=L2_PROMOTION_BYTES,
        shape=matrix.shape,
        pitches=None if offset is None else (FLOAT_BYTES * row_floats(matrix.shape[1]),),
        offset=offset or 0,
    )
