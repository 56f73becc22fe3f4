"""The matrices of one workload on the GPU, for many launches of rungs and of cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.problem import FLOAT_BYTES, Gemm
from kernels.variant import Parameters, Variant
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import placed
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.matrices import Workload

Array = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Operands:
    """A, B and C on the GPU at one executed shape."""

    shape: Gemm
    a: Any
    b: Any
    c: Any


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
        """Arguments of a rung at an executed shape: C = 1·A·B + 0·C."""
        here, size_bytes = self.at(shape), variant.workspace(parameters, shape)
        a, b, c = (
            _of_shape(*extents)
            for extents in ((shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n))
        )
        buffers = [(a, here.a), (b, here.b), (c, here.c)]
        workspace = None
        if size_bytes is not None:
            workspace = _of_shape(max(size_bytes // FLOAT_BYTES, 1))
            buffers.append((workspace, self._workspace(variant.label(parameters), size_bytes)))
        arguments = rung_arguments(variant, parameters, shape, (a, b, c), workspace=workspace)
        addresses = {
            position: next(buffer for known, buffer in buffers if known is array)
            for position, array in buffers_of(arguments).items()
        }
        return placed(arguments, addresses, {})

    def _workspace(self, label: str, size_bytes: int) -> Any:
        """Zeros at first; a launch leaves its flags so, where others may have had sums."""
        key = label, size_bytes
        if key not in self._workspaces:
            self._workspaces[key] = self._gpu.upload(np.zeros(size_bytes, np.uint8))
        return self._workspaces[key]


def _of_shape(*extents: int) -> Array:
    """An array that stands for one on the GPU."""
    return np.broadcast_to(np.float32(0), extents)
