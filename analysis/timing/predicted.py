"""Records of a prediction: the time, its bounds, and the parts that it is spent on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from analysis.l2_state import L2State
from analysis.timing.resources import Resource as Resource  # noqa: PLC0414 (read from here)
from analysis.vocabulary import Vocabulary


class GapCause(Vocabulary):
    """Reason for a part of the gap between a predicted and a measured time."""

    HELD_CLOCK = "clock actually held"
    REMAINDER = "remainder"


class Explanation(Vocabulary):
    """Kind of explanation of a predicted time. The time itself is the same."""

    COSTS = "costs"  # parts by effect and by source line, each from replays without it
    EFFECTS = "effects"  # parts by effect alone, in less time
    NONE = "none"  # nothing, in less time


class Effect(Vocabulary):
    """Cause of a part of the time of a launch."""

    # can be avoided
    IDLE_SMS = "idle SMs"
    CONFLICTS = "shared-memory bank conflicts"
    UNCOALESCED = "uncoalesced accesses"
    LOCAL_MEMORY = "local memory"
    ATOMICS = "atomics at L2"
    STORES = "stores to one address"
    OTHER_BLOCKS = "waiting for other blocks"
    CONSTANTS = "constants at addresses in registers"
    ONE_THREAD = "instructions of a single thread"
    DIVERGENCE = "divergent warps"
    BARRIERS = "waiting at barriers"
    COPIES = "waiting for copies to shared memory"
    PRODUCTS = "waiting for products of warpgroups"
    DRAM_LATENCY = "waiting for DRAM"
    L2_LATENCY = "waiting for L2"
    L1_LATENCY = "waiting for L1"
    SHARED_LATENCY = "waiting for shared memory"
    DEPENDENCES = "waiting for other instructions"
    REGISTER_BANKS = "register-bank conflicts"
    FETCH = "instruction fetch"
    BLOCK_START = "starting blocks"
    # at a roof
    DRAM_BANDWIDTH = "DRAM bandwidth"
    L2_BANDWIDTH = "L2 bandwidth"
    SHARED_WAVEFRONTS = "shared-memory wavefronts"
    L1_WAVEFRONTS = "L1 wavefronts"
    FP32_PIPE = "FP32 pipe"
    FP64_PIPE = "FP64 pipe"
    FP16_PIPE = "FP16 pipe"
    INTEGER_PIPE = "integer multiply pipe"
    LOGIC_PIPE = "ALU pipe"
    SPECIAL_PIPE = "special-function pipe"
    TENSOR_PIPE = "tensor cores"
    OTHER_INSTRUCTIONS = "instructions other than FP32 arithmetic"
    # the rest
    LAUNCH = "launch"
    REMAINDER = "work that does not overlap"


ROOFS = frozenset(
    effect for effect in Effect if effect.name.endswith(("_PIPE", "_BANDWIDTH", "_WAVEFRONTS"))
) | {Effect.OTHER_INSTRUCTIONS}
UNAVOIDABLE = frozenset({Effect.LAUNCH, Effect.REMAINDER})
#: What a load waits for; loads that are started earlier hide all of it.
WAITS_FOR_LOADS = frozenset({Effect.DRAM_LATENCY, Effect.L2_LATENCY, Effect.L1_LATENCY})
#: What every kernel waits for; how much of it is exposed depends on the other effects.
WAITS = WAITS_FOR_LOADS | {Effect.SHARED_LATENCY, Effect.DEPENDENCES}
ALIKE = 0.9  # of a saving: one that differs by less is about as large
IDEAL = 2 / 3  # of the saving of all waits for loads together: no edit hides all of them
NAMED = 0.02  # of the time: causes and lines below it are not named


def rank(effect: Effect, alone_s: float, together_s: float = 0.0) -> float:
    """Saving by which effects are ranked: the saving alone, of waiting a little less.

    Waiting is exposed because of other effects: those that save about as much come first. A load
    that is started earlier waits less for DRAM, L2 and L1 alike, so that what they save together
    counts too, as far as an edit may reach it.
    """
    return max(ALIKE * alone_s, IDEAL * together_s) if effect in WAITS else alone_s


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A part of the time of a launch, in seconds; all parts sum to the time.

    An effect that can be avoided costs what the time falls by if it is removed after the effects
    before it. `alone_s` is what it falls by if this effect alone is removed, `together_s` if all of
    `WAITS_FOR_LOADS` are, for one of these, without the first access of the launch. No edit hides
    that one: `first_s` is how long it waits for this memory. At a roof, the time is what a unit or
    a memory needs for the work if all of these are removed.
    """

    effect: Effect
    time_s: float
    alone_s: float
    detail: str = ""
    together_s: float = 0.0
    first_s: float = 0.0

    @property
    def most_s(self) -> float:
        """The most that removing it saves, alone or after the effects before it."""
        return max(self.time_s, self.alone_s)

    @property
    def worth_s(self) -> float:
        """The most that it saves, by which remedies are ranked.

        What is saved only after other effects counts a little less, as waiting does (`rank`).
        """
        is_later = not self.is_roof and self.alone_s < ALIKE * self.time_s
        hidden_s = max(0.0, self.most_s - self.first_s)
        if is_later:
            return max(ALIKE * hidden_s, IDEAL * self.together_s)
        return rank(self.effect, hidden_s, self.together_s)

    @property
    def is_roof(self) -> bool:
        return self.effect in ROOFS

    @property
    def is_avoidable(self) -> bool:
        return not self.is_roof and self.effect not in UNAVOIDABLE


@dataclass(frozen=True, kw_only=True)
class LineCost:
    """Time that a source line costs: what the time falls by if its instructions are left out.

    Lines are left out one after the other, the most expensive first. `file` and `line` are None for
    the time that is left then.
    """

    file: str | None
    line: int | None
    time_s: float


@dataclass(frozen=True, kw_only=True)
class TimeBound:
    """Lower bound on the time of a launch from one resource alone.

    `basis` states the amount of work and the rate in words.
    """

    name: Resource
    time_s: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class RankedCause:
    """A cause of a predicted time: what it is, its seconds, and its share of the time."""

    cause: Effect
    time_s: float
    share: float
    is_avoidable: bool  #: False at a roof, and for the launch
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """Time of a launch by the model of `analysis.timing.predict`, and its limiter."""

    time_s: float  #: as CUDA events around one launch would measure it, including `launch_s`
    cycles: float  #: of an SM, without `launch_s`
    clock_hz: float  #: SM clock
    launch_s: float  #: time of an empty launch
    flop_per_s: float  #: FLOP of the problem over `time_s`
    l2: L2State  #: at the start
    limiter: Resource  #: the resource that is busy for the largest fraction of the time
    limiter_share: float  #: that fraction
    next_limiter: Resource  #: the resource with the second largest fraction
    next_share: float  #: that fraction
    bounds: tuple[TimeBound, ...]  #: lower bounds on the time, one per resource
    constants: str  #: architecture and origin of the constants, in words
    basis: str  #: the blocks that were replayed, in words
    is_fitted: bool  #: the constants were fitted on a GPU of this architecture
    costs: tuple[Cost, ...] = ()  #: parts of `time_s` by effect; empty if not explained
    lines: tuple[LineCost, ...] = ()  #: parts of `time_s` by source line
    #: four fifths of the measured times of launches like this lie in it, in seconds; None where
    #: none like it were measured (`analysis.comparison.interval`)
    interval_s: tuple[float, float] | None = None
    #: bytes of other data that are dirty in L2 before the launch and that DRAM writes during it
    dirty_bytes: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of each part of the time."""
        return {one.effect: one.time_s for one in self.costs}

    @property
    def causes(self) -> tuple[RankedCause, ...]:
        """Parts of the time, the largest first; parts below 2% are left out.

        Work that does not overlap comes last: it is no cause that one can remove.
        """
        found = [
            RankedCause(
                cause=one.effect,
                time_s=one.time_s,
                share=one.time_s / self.time_s,
                is_avoidable=one.is_avoidable,
                detail=one.detail,
            )
            for one in self.costs
        ]
        named = [one for one in found if one.share >= NAMED]
        return tuple(sorted(named, key=lambda one: (one.cause == Effect.REMAINDER, -one.time_s)))


def from_json(text: bytes) -> Predicted:
    """Prediction whose fields were stored as JSON."""
    values: dict[str, Any] = json.loads(text)
    values["bounds"] = tuple(
        TimeBound(**one | {"name": Resource(one["name"])}) for one in values["bounds"]
    )
    values["costs"] = tuple(
        Cost(**one | {"effect": Effect(one["effect"])}) for one in values.get("costs", ())
    )
    values["lines"] = tuple(LineCost(**one) for one in values.get("lines", ()))
    for name in ("limiter", "next_limiter"):
        values[name] = Resource(values[name])
    values["l2"] = L2State(values["l2"])
    if values.get("interval_s"):
        values["interval_s"] = tuple(values["interval_s"])
    return Predicted(**values)
