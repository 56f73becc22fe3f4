"""Records of a prediction: the time, its bounds, and the steps of the gap to nominal peak."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from analysis.vocabulary import Vocabulary


class Resource(Vocabulary):
    """Resource that can limit the time of a launch: a pipe of an SM, a memory, or latency."""

    ISSUE = "issue"
    FP32 = "FP32"
    PRODUCTS = "integer products"
    LOGIC = "integers and logic"
    DOUBLE = "FP64"
    HALF = "half precision"
    SPECIAL = "special functions"
    SHARED_MEMORY = "shared memory"
    L1 = "L1"
    L2 = "L2"
    DRAM = "DRAM"
    LATENCY = "latency"  # Little's law: work in flight over its latency


class Cause(Vocabulary):
    """Reason for a part of the time beyond that at nominal peak."""

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
    """Time of a launch by the model of `analysis.timing.predict`, and its limiter."""

    time_s: float  #: as CUDA events around one launch would measure it, including `launch_s`
    cycles: float  #: of an SM, without `launch_s`
    clock_hz: float  #: SM clock
    launch_s: float  #: time of an empty launch
    flop_per_s: float  #: FLOP of the problem over `time_s`
    l2: Literal["flushed", "warm"]  #: state of L2 at the start
    limiter: Resource  #: the resource that is busy for the largest fraction of the time
    limiter_share: float  #: that fraction
    next_limiter: Resource  #: the resource with the second largest fraction
    next_share: float  #: that fraction
    bounds: tuple[TimeBound, ...]  #: lower bounds on the time, one per resource
    gap: tuple[GapStep, ...]  #: steps from nominal peak to `time_s`
    constants: str  #: architecture and origin of the constants, in words
    basis: str  #: the blocks that were replayed, in words
    is_fitted: bool  #: the constants were fitted on a GPU of this architecture


def from_json(text: bytes) -> Predicted:
    """Prediction whose fields were stored as JSON."""
    values: dict[str, Any] = json.loads(text)
    for name, kind, word in (("bounds", TimeBound, Resource), ("gap", GapStep, Cause)):
        values[name] = tuple(kind(**one | {"name": word(one["name"])}) for one in values[name])
    for name in ("limiter", "next_limiter"):
        values[name] = Resource(values[name])
    return Predicted(**values)
