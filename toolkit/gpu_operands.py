"""The matrices of one shape on the GPU, and how a rung or cuBLAS is launched on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.problem import FLOAT_BYTES, Gemm
from toolkit.gpu import Gpu
from toolkit.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Operands:
    """A, B and C on the GPU at one executed shape."""

    shape: Gemm
    a: Any
    b: Any
    c: Any

    @property
    def arguments(self) -> list[Any]:
        """What every rung takes: C = 1·A·B + 0·C."""
        shape = self.shape
        sizes = map(np.int32, (shape.m, shape.n, shape.k))
        return [self.a, self.b, self.c, *sizes, np.float32(1.0), np.float32(0.0)]


class GpuOperands:
    """The operands of one workload, uploaded once per executed shape."""

    def __init__(self, gpu: Gpu, workload: Workload) -> None:
        self._gpu = gpu
        self._workload = workload
        self._uploaded: dict[Gemm, Operands] = {}

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
