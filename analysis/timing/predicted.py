"""What a prediction consists of: a time, the bounds behind it, and the steps of the gap to peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The least time that one resource alone needs for a launch: `time_s`, of the whole launch.

    `name` is "issue", "FP32", "shared memory", "L1", "L2", "DRAM" or "latency" (Little's law: what
    is in flight over the time that it takes). `basis` says in words how much of it at which rate.
    """

    name: str
    time_s: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class GapStep:
    """One step from the time at nominal peak to the time that a launch takes.

    `time_s` is what it adds (a negative one takes away); the first is the time at nominal peak, and
    all of them sum to the time that is explained.
    """

    name: str
    time_s: float
    detail: str


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The time of a launch by the model of `analysis.timing.predict`, and what limits it.

    `time_s` is what CUDA events around one launch would show at `clock_hz`, `launch_s` of it the
    cost of an empty launch; `cycles` are those of an SM in between. `l2` is the state of L2 at the
    start. `limiter` is the resource that is busy for the largest share of the time,
    `limiter_share`, and `next_limiter` the one behind it. `bounds` are the simple ones, `gap` the
    steps from nominal peak to `time_s`. `constants` names whose constants were used, `basis`
    what was simulated, and `is_fitted` whether constants were fitted on such a device.
    """

    time_s: float
    cycles: float
    clock_hz: float
    launch_s: float
    flop_per_s: float
    l2: Literal["flushed", "warm"]
    limiter: str
    limiter_share: float
    next_limiter: str
    next_share: float
    bounds: tuple[Bound, ...]
    gap: tuple[GapStep, ...]
    constants: str
    basis: str
    is_fitted: bool
