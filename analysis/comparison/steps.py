"""Reason why one rung is faster than another: the changes between two records, and the largest.

A rung differs from the previous one in many counts. Each is weighed by the lower bound on time from
its resource alone, as predicted. The reason is the bound that decreased the most, each decrease
weighed by the bound itself, and only if that was the highest bound: a resource that does not limit
saves no time. If the rung is slower, the reason is the bound that increased the most, in the same
way.

If the highest bound did not change, the reason is the step of the gap from nominal peak that
changed the most (`Predicted.gap`): register ports or exposed latency have no bound.
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
from analysis.timing.predicted import Cause, Resource

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
# The same for steps of the gap; the other steps have no quantity that both rungs count.
QUANTITY_OF_STEP: Mapping[str, Quantity] = MappingProxyType(
    {Cause.IDLE_SMS: "busy SMs", Cause.INSTRUCTIONS: "warp instructions"}
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
    Resource.DRAM,
)  # each SM has the other resources for itself

Basis = Literal["predicted bounds", "predicted steps"]
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

    Of a step of the gap, it is the time that `resource` adds to those named before it.
    """

    resource: str
    quantity: Quantity | None
    time_s: Ends
    is_step: bool = False

    @property
    def is_of_each_sm(self) -> bool:
        """True if an SM without a block leaves a part of the resource unused."""
        return not self.is_step and self.resource not in _SHARED_BY_ALL


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
    changes = tuple(_changes(before, after))
    weights = _weights(before, after, "bounds")
    found = Step(
        before=before.label,
        after=after.label,
        changes=changes,
        weights=weights,
        reason=None,
        price=None,
        basis="predicted bounds" if weights else None,
    )
    return _explained(found, _weights(before, after, "gap")) if found.is_worth_a_reason else found


def _explained(found: Step, steps: tuple[Weight, ...]) -> Step:
    """The step with its reason: by its bounds, or else by the steps of the gap."""
    high, low = _ends_of(found)
    reason = _largest(found.weights, high)
    if reason and _at(reason, high) == max(_at(one, high) for one in found.weights):
        return replace(found, reason=reason, price=_largest(found.weights, low))
    if not steps:
        return found
    reason = _largest_step(steps, high)
    price = _largest_step(steps, low) if reason else None
    return replace(found, weights=steps, basis="predicted steps", reason=reason, price=price)


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


def _largest_step(steps: tuple[Weight, ...], high: End) -> Weight | None:
    """The step that changed the most, if the change is a relevant part of the time."""
    most = max(steps, key=lambda one: _excess(one, high))
    time_s = sum(one.time_s.before for one in steps)
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


def _weights(before: Record, after: Record, of: Literal["bounds", "gap"]) -> tuple[Weight, ...]:
    """A weight per bound, or per step of the gap, of both predictions; none if one is missing.

    What one prediction lacks takes it no time. Steps that begin at different peaks have none.
    """
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours is None or theirs is None:
        return ()
    first, second = ({one.name: one.time_s for one in getattr(x, of)} for x in (ours, theirs))
    is_step = of == "gap"
    if is_step and ours.gap_base != theirs.gap_base:
        return ()
    return tuple(
        Weight(
            resource=name,
            quantity=QUANTITY_OF_STEP.get(name) if is_step else QUANTITY_OF[name],
            time_s=Ends(before=first.get(name, 0.0), after=second.get(name, 0.0)),
            is_step=is_step,
        )
        for name in dict.fromkeys([*first, *second])
        if is_step or name in QUANTITY_OF
    )
