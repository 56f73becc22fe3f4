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


HELD_OUT: tuple[HeldOut, ...] = ()
