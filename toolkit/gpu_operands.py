"""The matrices of one shape on the GPU, and how a rung or cuBLAS is launched on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.problem import FLOAT_BYTES, Gemm
from kernels.registry import Parameters, Variant
from toolkit.gpu import Gpu
from toolkit.tensor_map import encoded
from toolkit.tiles import Maps, maps_of
from toolkit.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Operands:
    """A, B and C on the GPU at one executed shape."""

    shape: Gemm
    a: Any
    b: Any
    c: Any


def launch_arguments(operands: Operands, maps: Maps | None, workspace: Any | None) -> list[Any]:
    """What a rung is launched with for C = 1·A·B + 0·C; `maps` tile A and B where it takes maps."""
    shape, a, b = operands.shape, operands.a, operands.b
    last = [] if workspace is None else [workspace]
    if maps is not None:
        last += [a, b] if maps.takes_rows else []
        place = None if workspace is None else int(workspace)
        a, b = (
            encoded(of.tiling, of.address(int(matrix), place))
            for of, matrix in ((maps.a, a), (maps.b, b))
        )
    sizes = map(np.int32, (shape.m, shape.n, shape.k))
    return [a, b, operands.c, *sizes, np.float32(1.0), np.float32(0.0), *last]


class GpuOperands:
    """The operands of one workload, uploaded once per executed shape."""

    def __init__(self, gpu: Gpu, workload: Workload) -> None:
        self._gpu = gpu
        self._workload = workload
        self._uploaded: dict[Gemm, Operands] = {}
        self._workspaces: dict[tuple[str, int], Any] = {}

    def at(self, shape: Gemm) -> Operands:
        """Padded with zeros where the shape is larger than the workload's; C holds anything."""
        if shape not in self._uploaded:
            a, b = self._workload.padded(shape)
            self._uploaded[shape] = Operands(
                shape=shape,
                a=self._gpu.upload(a),
                b=self._gpu.upload(b),
                c=self._gpu.allocate(FLOAT_BYTES * shape.c_elements),
            )
        return self._uploaded[shape]

    def arguments(self, variant: Variant, parameters: Parameters, shape: Gemm) -> list[Any]:
        """What a rung takes at an executed shape: C = 1·A·B + 0·C."""
        size_bytes = variant.workspace(parameters, shape)
        workspace = (
            None if size_bytes is None else self._workspace(variant.label(parameters), size_bytes)
        )
        return launch_arguments(self.at(shape), maps_of(variant, parameters, shape), workspace)

    def _workspace(self, label: str, size_bytes: int) -> Any:
        """Zeros at first; a launch leaves its flags so, where others may have had sums."""
        key = label, size_bytes
        if key not in self._workspaces:
            self._workspaces[key] = self._gpu.upload(np.zeros(size_bytes, np.uint8))
        return self._workspaces[key]
