"""Reason why one rung is faster than another: the changes between two records, and the largest.

The reason is the part of the predicted time that changed the most (`Predicted.costs`): all parts of
a time add up to it, and so do their changes to the change of the time.

If one of the times is not explained by parts, the reason is the lower bound on time that changed
the most, each change weighed by the bound itself, and only if that was the highest bound: a
resource that does not limit saves no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, get_args

from analysis.comparison.hierarchy import MOVEMENTS, moved_bytes
from analysis.comparison.statistics import NEGLIGIBLE_CHANGE
from analysis.records.metrics import WARP_INSTRUCTIONS
from analysis.records.profile import Counted, Record, Simulated
from analysis.roofline import LevelName
from analysis.timing.predicted import Effect, Resource

Quantity = Literal[
    "time",
    "L1 sectors",
    "shared wavefronts",
    "L2 bytes",
    "DRAM bytes",
    "warp instructions",
    "occupancy",
    "busy SMs",
]

# Quantity of each bound, None if it is the same for all rungs of one product.
QUANTITY_OF: Mapping[str, Quantity | None] = MappingProxyType(
    {
        Resource.ISSUE: "warp instructions",
        Resource.FP32: None,
        Resource.SHARED_MEMORY: "shared wavefronts",
        Resource.L1: "L1 sectors",
        Resource.L2: "L2 bytes",
        Resource.DRAM: "DRAM bytes",
        Resource.LATENCY: "occupancy",
    }
)
# The same for parts of the time; the others have no quantity that both rungs count.
QUANTITY_OF_PART: Mapping[str, Quantity] = MappingProxyType(
    {
        Effect.IDLE_SMS: "busy SMs",
        Effect.OTHER_INSTRUCTIONS: "warp instructions",
        Effect.SHARED_WAVEFRONTS: "shared wavefronts",
        Effect.CONFLICTS: "shared wavefronts",
        Effect.L1_WAVEFRONTS: "L1 sectors",
        Effect.UNCOALESCED: "L1 sectors",
        Effect.L2_BANDWIDTH: "L2 bytes",
        Effect.DRAM_BANDWIDTH: "DRAM bytes",
    }
)
_OF_LEVEL: Mapping[LevelName, Quantity] = MappingProxyType(
    {
        LevelName.SHARED: "shared wavefronts",
        LevelName.L1: "L1 sectors",
        LevelName.L2: "L2 bytes",
        LevelName.DRAM: "DRAM bytes",
    }
)
_SHARED_BY_ALL = (
    Resource.L2,
    Resource.ATOMICS,
    Resource.STORES,
    Resource.DRAM,
)  # each SM has the other resources for itself

Basis = Literal["predicted parts", "predicted bounds"]
End = Literal["before", "after"]


@dataclass(frozen=True, kw_only=True)
class Ends:
    """A number of the rung before and of the rung after."""

    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        """After over before, None if before is 0."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True, kw_only=True)
class Change:
    """One quantity of both rungs: by prediction and by measurement, as far as both rungs have it.

    Predicted numbers are the model's times, the simulator's counts, and the occupancy that the
    compiler's resources allow. Measured numbers are times of a clock and the hardware's counts.
    """

    quantity: Quantity
    predicted: Ends | None
    measured: Ends | None

    @property
    def best(self) -> Ends | None:
        """The measured numbers, or else the predicted ones."""
        return self.measured or self.predicted


@dataclass(frozen=True, kw_only=True)
class Weight:
    """The time that one resource alone needs, in both rungs, and the quantity that it is for.

    If it is a part of the time, it is what the effect `resource` costs.
    """

    resource: str
    quantity: Quantity | None
    time_s: Ends
    is_part: bool = False

    @property
    def is_of_each_sm(self) -> bool:
        """True if an SM without a block leaves a part of the resource unused."""
        return not self.is_part and self.resource not in _SHARED_BY_ALL


@dataclass(frozen=True, kw_only=True)
class Step:
    """From one rung to the next.

    `speedup`: time before over time after, by both grades. `reason`: the resource that explains the
    direction of the change of time. `price`: the resource with the largest opposite change. Both
    are None if there is none. `weights`: the candidates for both. `basis`: origin of the weights.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    weights: tuple[Weight, ...]
    reason: Weight | None
    price: Weight | None
    basis: Basis | None

    def change(self, quantity: Quantity) -> Change | None:
        return next((one for one in self.changes if one.quantity == quantity), None)

    @property
    def predicted_speedup(self) -> float | None:
        return _speedup(self.change("time"), "predicted")

    @property
    def measured_speedup(self) -> float | None:
        return _speedup(self.change("time"), "measured")

    @property
    def speedup(self) -> float | None:
        """Measured speedup, or else the predicted one."""
        return self.measured_speedup or self.predicted_speedup

    @property
    def is_worth_a_reason(self) -> bool:
        """True if a grade has a changed time, or if no grade has a time."""
        known = [one for one in (self.predicted_speedup, self.measured_speedup) if one]
        return not known or any(abs(one - 1) > NEGLIGIBLE_CHANGE for one in known)


def _speedup(time: Change | None, grade: Literal["predicted", "measured"]) -> float | None:
    ends: Ends | None = getattr(time, grade) if time else None
    return ends.before / ends.after if ends and ends.after else None


def step(before: Record, after: Record) -> Step:
    """Changes from one record to another on the same device, and the largest reason.

    There is no reason unless both times were predicted.
    """
    changes, parts = tuple(_changes(before, after)), _parts(before, after)
    weights = parts or _bounds(before, after)
    found = Step(
        before=before.label,
        after=after.label,
        changes=changes,
        weights=weights,
        reason=None,
        price=None,
        basis="predicted parts" if parts else "predicted bounds" if weights else None,
    )
    if not found.is_worth_a_reason:
        return found
    return _by_parts(found) if parts else _by_bounds(found)


def _by_parts(found: Step) -> Step:
    """The step with its reason: the part that changed the most."""
    high, low = _ends_of(found)
    reason = _largest_part(found.weights, high)
    price = _largest_part(found.weights, low) if reason else None
    return replace(found, reason=reason, price=price)


def _by_bounds(found: Step) -> Step:
    """The step with its reason by bounds, if there is one."""
    high, low = _ends_of(found)
    reason = _largest(found.weights, high)
    if reason and _at(reason, high) == max(_at(one, high) for one in found.weights):
        return replace(found, reason=reason, price=_largest(found.weights, low))
    return found


def _ends_of(found: Step) -> tuple[End, End]:
    """Ends of a step at which the quantity that explains it is high, and low."""
    return ("after", "before") if found.speedup and found.speedup < 1 else ("before", "after")


def _at(one: Weight, end: End) -> float:
    return one.time_s.before if end == "before" else one.time_s.after


def _excess(one: Weight, high: End) -> float:
    """Time at one end beyond the time at the other one."""
    increase = one.time_s.after - one.time_s.before
    return increase if high == "after" else -increase


def _largest(weights: tuple[Weight, ...], high: End) -> Weight | None:
    """The most important of the bounds that are higher at one end than at the other."""
    changed = [one for one in weights if _excess(one, high) > NEGLIGIBLE_CHANGE * _at(one, high)]
    return max(changed, key=lambda one: _excess(one, high) * _at(one, high), default=None)


def _largest_part(parts: tuple[Weight, ...], high: End) -> Weight | None:
    """The part that changed the most, if the change is a relevant part of the time."""
    most = max(parts, key=lambda one: _excess(one, high))
    time_s = sum(one.time_s.before for one in parts)
    return most if _excess(most, high) > NEGLIGIBLE_CHANGE * time_s else None


# What changed.


def _changes(before: Record, after: Record) -> Iterator[Change]:
    simulated = _counts(before, before.simulated), _counts(after, after.simulated)
    counted = _counts(before, before.counted), _counts(after, after.counted)
    resources = _resources(before), _resources(after)
    for quantity in _QUANTITIES:
        if quantity == "time":
            ends = _predicted_times(before, after), _measured_times(before, after)
        else:
            ends = (
                _ends(quantity, *simulated) or _ends(quantity, *resources),
                _ends(quantity, *counted),
            )
        if any(ends):
            yield Change(quantity=quantity, predicted=ends[0], measured=ends[1])


_QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
_Counts = Mapping[Quantity, float]


def _ends(quantity: Quantity, before: _Counts, after: _Counts) -> Ends | None:
    if quantity not in before or quantity not in after:
        return None
    return Ends(before=before[quantity], after=after[quantity])


def _predicted_times(before: Record, after: Record) -> Ends | None:
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours is None or theirs is None or ours.l2 != theirs.l2:
        return None
    return Ends(before=ours.time_s, after=theirs.time_s)


def _measured_times(before: Record, after: Record) -> Ends | None:
    ours, theirs = before.trusted, after.trusted
    if ours is None or theirs is None or (ours.clock, ours.l2) != (theirs.clock, theirs.l2):
        return None
    return Ends(before=ours.median_s, after=theirs.median_s)


def _counts(record: Record, source: Simulated | Counted | None) -> dict[Quantity, float]:
    counters = source.counters if source and record.status != "failed" else {}
    moved = moved_bytes(counters)
    found: dict[Quantity, float] = {}
    for level, quantity in _OF_LEVEL.items():
        if level in moved:
            unit_bytes = 1 if "bytes" in quantity else MOVEMENTS[level].bytes_per_count
            found[quantity] = moved[level] / unit_bytes
    if WARP_INSTRUCTIONS in counters:
        found["warp instructions"] = counters[WARP_INSTRUCTIONS]
    return found


def _resources(record: Record) -> dict[Quantity, float]:
    found: dict[Quantity, float] = {}
    if record.occupancy:
        found["occupancy"] = record.occupancy.fraction
    if record.theory:
        found["busy SMs"] = record.theory.busy_sms
    return found


# Which change counts most.


def _parts(before: Record, after: Record) -> tuple[Weight, ...]:
    """A weight per part of both predicted times; none if one is not known by its parts."""
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours is None or theirs is None or not (ours.costs and theirs.costs):
        return ()
    return _weights(ours.parts, theirs.parts, QUANTITY_OF_PART, is_part=True)


def _bounds(before: Record, after: Record) -> tuple[Weight, ...]:
    """A weight per bound of both predictions; none if one is missing."""
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours is None or theirs is None:
        return ()
    return _weights(
        {one.name: one.time_s for one in ours.bounds if one.name in QUANTITY_OF},
        {one.name: one.time_s for one in theirs.bounds if one.name in QUANTITY_OF},
        QUANTITY_OF,
        is_part=False,
    )


def _weights(
    first: Mapping[str, float],
    second: Mapping[str, float],
    quantities: Mapping[str, Quantity | None] | Mapping[str, Quantity],
    *,
    is_part: bool,
) -> tuple[Weight, ...]:
    """A weight per name. What one prediction lacks takes it no time."""
    return tuple(
        Weight(
            resource=name,
            quantity=quantities.get(name),
            time_s=Ends(before=first.get(name, 0.0), after=second.get(name, 0.0)),
            is_part=is_part,
        )
        for name in dict.fromkeys([*first, *second])
    )
