"""Errors of predicted times of held-out launches, by device and limiter.

`python -m benchmarks.errors_by_limiter` writes the table below: do not edit it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.timing.resources import Resource

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
    HeldOut("h100-sxm", "other kernels", Resource.DRAM, 23, 0.094),
    HeldOut("h100-sxm", "other kernels", Resource.DOUBLE, 1, 0.068),
    HeldOut("h100-sxm", "other kernels", Resource.L1, 2, 0.066),
    HeldOut("h100-sxm", "other kernels", Resource.L2, 3, 0.182),
    HeldOut("h100-sxm", "other kernels", Resource.PRODUCTS, 1, 0.089),
    HeldOut("h100-sxm", "other kernels", Resource.LOGIC, 1, 0.079),
    HeldOut("h100-sxm", "other kernels", Resource.ISSUE, 6, 0.223),
    HeldOut("h100-sxm", "other kernels", Resource.LATENCY, 9, 0.169),
    HeldOut("h100-sxm", "other kernels", Resource.SHARED_MEMORY, 3, 0.035),
    HeldOut("h200", "ladder", Resource.L1, 8, 0.036),
    HeldOut("h200", "ladder", Resource.SHARED_MEMORY, 18, 0.057),
    HeldOut("h200", "other kernels", Resource.DRAM, 15, 0.093),
    HeldOut("h200", "other kernels", Resource.DOUBLE, 1, 0.066),
    HeldOut("h200", "other kernels", Resource.L1, 2, 0.077),
    HeldOut("h200", "other kernels", Resource.L2, 6, 0.129),
    HeldOut("h200", "other kernels", Resource.PRODUCTS, 1, 0.09),
    HeldOut("h200", "other kernels", Resource.LOGIC, 1, 0.067),
    HeldOut("h200", "other kernels", Resource.ISSUE, 7, 0.191),
    HeldOut("h200", "other kernels", Resource.LATENCY, 13, 0.136),
    HeldOut("h200", "other kernels", Resource.SHARED_MEMORY, 3, 0.044),
    HeldOut("rtx-3090", "ladder", Resource.L1, 6, 0.1),
    HeldOut("rtx-3090", "ladder", Resource.LATENCY, 1, 0.075),
    HeldOut("rtx-3090", "ladder", Resource.SHARED_MEMORY, 11, 0.098),
    HeldOut("t4", "ladder", Resource.L1, 1, 0.007),
    HeldOut("t4", "ladder", Resource.SHARED_MEMORY, 4, 0.105),
)
