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
    HeldOut("h100-sxm", "other kernels", Resource.DRAM, 27, 0.14),
    HeldOut("h100-sxm", "other kernels", Resource.DOUBLE, 1, 0.04),
    HeldOut("h100-sxm", "other kernels", Resource.L1, 1, 0.094),
    HeldOut("h100-sxm", "other kernels", Resource.L2, 3, 0.221),
    HeldOut("h100-sxm", "other kernels", Resource.PRODUCTS, 1, 0.102),
    HeldOut("h100-sxm", "other kernels", Resource.LOGIC, 1, 0.035),
    HeldOut("h100-sxm", "other kernels", Resource.ISSUE, 6, 0.226),
    HeldOut("h100-sxm", "other kernels", Resource.LATENCY, 7, 0.184),
    HeldOut("h100-sxm", "other kernels", Resource.SHARED_MEMORY, 2, 0.054),
    HeldOut("h200", "ladder", Resource.L1, 8, 0.034),
    HeldOut("h200", "ladder", Resource.SHARED_MEMORY, 18, 0.041),
    HeldOut("h200", "other kernels", Resource.DRAM, 22, 0.131),
    HeldOut("h200", "other kernels", Resource.DOUBLE, 1, 0.041),
    HeldOut("h200", "other kernels", Resource.L1, 1, 0.098),
    HeldOut("h200", "other kernels", Resource.L2, 3, 0.138),
    HeldOut("h200", "other kernels", Resource.PRODUCTS, 1, 0.104),
    HeldOut("h200", "other kernels", Resource.LOGIC, 1, 0.077),
    HeldOut("h200", "other kernels", Resource.ISSUE, 7, 0.212),
    HeldOut("h200", "other kernels", Resource.LATENCY, 11, 0.148),
    HeldOut("h200", "other kernels", Resource.SHARED_MEMORY, 2, 0.053),
    HeldOut("rtx-3090", "ladder", Resource.L1, 6, 0.105),
    HeldOut("rtx-3090", "ladder", Resource.LATENCY, 1, 0.06),
    HeldOut("rtx-3090", "ladder", Resource.SHARED_MEMORY, 11, 0.113),
    HeldOut("t4", "ladder", Resource.L1, 1, 0.009),
    HeldOut("t4", "ladder", Resource.SHARED_MEMORY, 4, 0.139),
)
