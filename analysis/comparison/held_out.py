"""Errors of predicted times of held-out launches, by device and limiter.

`python -m benchmarks.errors_by_limiter` writes the table below: do not edit it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.timing.predicted import Resource

Kernels = Literal["ladder", "other kernels"]


@dataclass(frozen=True)
class HeldOut:
    """Mean of |predicted / measured - 1| over launches on which nothing was fitted.

    `device` is a key of `DEVICES`; `limiter` is that of the predictions. L2 was flushed.
    """

    device: str
    kernels: Kernels
    limiter: Resource
    launches: int
    mean_error: float


HELD_OUT: tuple[HeldOut, ...] = (
    HeldOut("h100-sxm", "other kernels", Resource.DRAM, 27, 0.141),
    HeldOut("h100-sxm", "other kernels", Resource.DOUBLE, 1, 0.043),
    HeldOut("h100-sxm", "other kernels", Resource.L1, 1, 0.094),
    HeldOut("h100-sxm", "other kernels", Resource.L2, 3, 0.219),
    HeldOut("h100-sxm", "other kernels", Resource.PRODUCTS, 1, 0.109),
    HeldOut("h100-sxm", "other kernels", Resource.LOGIC, 1, 0.061),
    HeldOut("h100-sxm", "other kernels", Resource.ISSUE, 6, 0.224),
    HeldOut("h100-sxm", "other kernels", Resource.LATENCY, 7, 0.183),
    HeldOut("h100-sxm", "other kernels", Resource.SHARED_MEMORY, 2, 0.053),
    HeldOut("h200", "ladder", Resource.L1, 8, 0.034),
    HeldOut("h200", "ladder", Resource.SHARED_MEMORY, 18, 0.04),
    HeldOut("h200", "other kernels", Resource.DRAM, 22, 0.134),
    HeldOut("h200", "other kernels", Resource.DOUBLE, 1, 0.044),
    HeldOut("h200", "other kernels", Resource.L1, 1, 0.105),
    HeldOut("h200", "other kernels", Resource.L2, 3, 0.157),
    HeldOut("h200", "other kernels", Resource.PRODUCTS, 1, 0.102),
    HeldOut("h200", "other kernels", Resource.LOGIC, 1, 0.109),
    HeldOut("h200", "other kernels", Resource.ISSUE, 7, 0.209),
    HeldOut("h200", "other kernels", Resource.LATENCY, 11, 0.142),
    HeldOut("h200", "other kernels", Resource.SHARED_MEMORY, 2, 0.052),
    HeldOut("rtx-3090", "ladder", Resource.L1, 6, 0.106),
    HeldOut("rtx-3090", "ladder", Resource.LATENCY, 1, 0.098),
    HeldOut("rtx-3090", "ladder", Resource.SHARED_MEMORY, 11, 0.119),
    HeldOut("t4", "ladder", Resource.L1, 1, 0.005),
    HeldOut("t4", "ladder", Resource.SHARED_MEMORY, 4, 0.14),
)
