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
    HeldOut("h100-sxm", "other kernels", Resource.DRAM, 23, 0.097),
    HeldOut("h100-sxm", "other kernels", Resource.DOUBLE, 1, 0.045),
    HeldOut("h100-sxm", "other kernels", Resource.L1, 1, 0.081),
    HeldOut("h100-sxm", "other kernels", Resource.L2, 3, 0.182),
    HeldOut("h100-sxm", "other kernels", Resource.PRODUCTS, 1, 0.096),
    HeldOut("h100-sxm", "other kernels", Resource.LOGIC, 1, 0.06),
    HeldOut("h100-sxm", "other kernels", Resource.ISSUE, 7, 0.221),
    HeldOut("h100-sxm", "other kernels", Resource.LATENCY, 10, 0.155),
    HeldOut("h100-sxm", "other kernels", Resource.SHARED_MEMORY, 2, 0.049),
    HeldOut("h200", "ladder", Resource.L1, 8, 0.037),
    HeldOut("h200", "ladder", Resource.SHARED_MEMORY, 18, 0.042),
    HeldOut("h200", "other kernels", Resource.DRAM, 16, 0.082),
    HeldOut("h200", "other kernels", Resource.DOUBLE, 1, 0.047),
    HeldOut("h200", "other kernels", Resource.L1, 1, 0.085),
    HeldOut("h200", "other kernels", Resource.L2, 8, 0.134),
    HeldOut("h200", "other kernels", Resource.PRODUCTS, 1, 0.092),
    HeldOut("h200", "other kernels", Resource.LOGIC, 1, 0.073),
    HeldOut("h200", "other kernels", Resource.ISSUE, 8, 0.182),
    HeldOut("h200", "other kernels", Resource.LATENCY, 11, 0.14),
    HeldOut("h200", "other kernels", Resource.SHARED_MEMORY, 2, 0.054),
    HeldOut("rtx-3090", "ladder", Resource.L1, 6, 0.1),
    HeldOut("rtx-3090", "ladder", Resource.LATENCY, 1, 0.073),
    HeldOut("rtx-3090", "ladder", Resource.SHARED_MEMORY, 11, 0.11),
    HeldOut("t4", "ladder", Resource.L1, 1, 0.016),
    HeldOut("t4", "ladder", Resource.SHARED_MEMORY, 4, 0.116),
)
