"""Records of a prediction: the time, its bounds, and the steps of the gap to nominal peak."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from analysis.vocabulary import Vocabulary


class Resource(Vocabulary):
    """What can limit the time of a launch: a pipe of an SM, a memory, or waiting."""

    ISSUE = "issue"
    FP32 = "FP32"
    PRODUCTS = "integer products"
    LOGIC = "integers and logic"
    DOUBLE = "FP64"
    HALF = "half precision"
    SPECIAL = "special functions"
    SHARED_MEMORY = "shared memory"
    CONSTANTS = "constants"
    L1 = "L1"
    L2 = "L2"
    ATOMICS = "atomics at L2"
    DRAM = "DRAM"
    LATENCY = "latency"  # Little's law: work in flight over its latency


class Cause(Vocabulary):
    """Why a launch takes more time than at nominal peak."""

    PEAK = "nominal peak"
    CLOCK_UNDER_LOAD = "clock under load"
    IDLE_SMS = "idle SMs and partial wave"
    INSTRUCTIONS = "other instructions"
    PORTS = "register ports"
    WAVEFRONTS = "load/store wavefronts"
    CONFLICTS = "bank conflicts"
    LATENCY = "exposed latency"
    LAUNCH = "launch"
    # from the predicted time to the measured one
    HELD_CLOCK = "clock actually held"
    REMAINDER = "remainder"


@dataclass(frozen=True, kw_only=True)
class TimeBound:
    """Lower bound on the time of a launch from one resource alone.

    `basis` states the amount of work and the rate in words.
    """

    name: Resource
    time_s: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class GapStep:
    """One step from the time at nominal peak to the time of a launch.

    `time_s` is the time that the step adds (or removes, if negative). The first step is the time at
    nominal peak; all steps sum to the explained time.
    """

    name: Cause
    time_s: float
    detail: str


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """Time of a launch by the model of `analysis.timing.predict`, and its limiter.

    `time_s`: time that CUDA events around one launch would show at `clock_hz`, including
    `launch_s`, the time of an empty launch. `cycles`: cycles of an SM, without `launch_s`. `l2`:
    state of L2 at the start. `limiter`: the resource that is busy for the largest fraction of the
    time, `limiter_share`. `next_limiter`: the resource with the second largest fraction,
    `next_share`. `bounds`: lower bounds per resource. `gap`: steps from nominal peak to `time_s`.
    `constants`: the architecture of the constants. `basis`: what was simulated. `is_fitted`: the
    constants were fitted on this kind of device.
    """

    time_s: float
    cycles: float
    clock_hz: float
    launch_s: float
    flop_per_s: float
    l2: Literal["flushed", "warm"]
    limiter: Resource
    limiter_share: float
    next_limiter: Resource
    next_share: float
    bounds: tuple[TimeBound, ...]
    gap: tuple[GapStep, ...]
    constants: str
    basis: str
    is_fitted: bool


def from_json(text: bytes) -> Predicted:
    """A prediction from the JSON of its fields."""
    values: dict[str, Any] = json.loads(text)
    for name, kind, word in (("bounds", TimeBound, Resource), ("gap", GapStep, Cause)):
        values[name] = tuple(kind(**one | {"name": word(one["name"])}) for one in values[name])
    for name in ("limiter", "next_limiter"):
        values[name] = Resource(values[name])
    return Predicted(**values)
