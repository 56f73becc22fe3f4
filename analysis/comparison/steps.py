"""Reason why one rung is faster than another: the changes between two records, and the largest.

A rung differs from the previous one in many counts. Each is weighed by the lower bound on time from
its resource alone: from the prediction if both records have one, else from counts over nominal
rates. The reason is the bound that decreased the most, each decrease weighed by the bound itself,
and only if that was the highest bound: a resource that does not limit saves no time. If the rung is
slower, the reason is the bound that increased the most, in the same way.

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
from analysis.devices import Device
from analysis.records.metrics import WARP_INSTRUCTIONS, ffma_share
from analysis.records.profile import Record
from analysis.roofline import LevelName, roofline
from analysis.timing.predicted import Cause, Resource

Quantity = Literal[
    "time",
    "L1 sectors",
    "shared wavefronts",
    "L2 bytes",
    "DRAM bytes",
    "warp instructions",
    "FFMA share",
    "registers per thread",
    "occupancy",
    "busy SMs",
]

# One warp instruction per cycle of each of an SM's four schedulers, sm_70 to sm_120
# (CUDA C++ Programming Guide, section "Compute Capabilities", "Architecture").
ISSUED_PER_CLOCK_PER_SM = 4

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
_OF_LEVEL: Mapping[LevelName, Resource] = MappingProxyType(
    {
        LevelName.SHARED: Resource.SHARED_MEMORY,
        LevelName.L1: Resource.L1,
        LevelName.L2: Resource.L2,
        LevelName.DRAM: Resource.DRAM,
    }
)
_SHARED_BY_ALL = (Resource.L2, Resource.DRAM)  # each SM has the other resources for itself

Basis = Literal["predicted bounds", "predicted steps", "measured counts", "simulated counts"]
End = Literal["before", "after"]
_Counted = Literal["simulated", "counted"]


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

    Predicted are the model's times, the simulator's counts and what the compiler's resources
    allow; measured are times of a clock and the hardware's counts.
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


def step(before: Record, after: Record, device: Device) -> Step:
    """Changes from one record to another, both on `device`, and the largest reason."""
    changes = tuple(_changes(before, after))
    weights, basis = _weights(before, after, device)
    found = Step(
        before=before.label,
        after=after.label,
        changes=changes,
        weights=weights,
        reason=None,
        price=None,
        basis=basis if weights else None,
    )
    return _explained(found, _steps(before, after)) if found.is_worth_a_reason else found


def _explained(found: Step, steps: tuple[Weight, ...]) -> Step:
    """The step with its reason: by its bounds, or else by the steps of the gap."""
    high, low = _ends_of(found)
    reason = _largest(found.weights, high, low)
    if reason and getattr(reason.time_s, high) == _top(found.weights, high):
        return replace(found, reason=reason, price=_largest(found.weights, low, high))
    if not steps:
        return found
    reason = _largest_step(steps, high, low)
    price = _largest_step(steps, low, high) if reason else None
    return replace(found, weights=steps, basis="predicted steps", reason=reason, price=price)


def _ends_of(found: Step) -> tuple[End, End]:
    """Ends of a step at which the quantity that explains it is high, and low."""
    tops = _top(found.weights, "before"), _top(found.weights, "after")
    is_faster = found.speedup >= 1 if found.speedup else tops[0] >= tops[1]
    return ("before", "after") if is_faster else ("after", "before")


def _top(weights: tuple[Weight, ...], end: End) -> float:
    return max((getattr(one.time_s, end) for one in weights), default=0.0)


def _difference(one: Weight, high: End, low: End) -> float:
    return float(getattr(one.time_s, high) - getattr(one.time_s, low))


def _largest(weights: tuple[Weight, ...], high: End, low: End) -> Weight | None:
    """The most important of the bounds that are higher at one end than at the other."""

    def mattering(one: Weight) -> float:
        return _difference(one, high, low) * float(getattr(one.time_s, high))

    changed = [
        one
        for one in weights
        if _difference(one, high, low)
        > NEGLIGIBLE_CHANGE * max(one.time_s.before, one.time_s.after)
    ]
    return max(changed, key=mattering, default=None)


def _largest_step(steps: tuple[Weight, ...], high: End, low: End) -> Weight | None:
    """The step that changed the most, if the change is a relevant part of the time."""
    most = max(steps, key=lambda one: _difference(one, high, low))
    time_s = sum(one.time_s.before for one in steps)
    return most if _difference(most, high, low) > NEGLIGIBLE_CHANGE * time_s else None


# What changed.


def _changes(before: Record, after: Record) -> Iterator[Change]:
    simulated = _counts(before, "simulated"), _counts(after, "simulated")
    counted = _counts(before, "counted"), _counts(after, "counted")
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


def _counters(record: Record, grade: _Counted) -> Mapping[str, int]:
    source = record.simulated if grade == "simulated" else record.counted
    return source.counters if source and record.status != "failed" else {}


def _counts(record: Record, grade: _Counted) -> dict[Quantity, float]:
    counters = _counters(record, grade)
    moved = moved_bytes(counters)
    found: dict[Quantity, float] = {}
    for level, quantity in _LEVEL_QUANTITIES.items():
        if level in moved:
            unit_bytes = 1 if "bytes" in quantity else MOVEMENTS[level].bytes_per_count
            found[quantity] = moved[level] / unit_bytes
    if WARP_INSTRUCTIONS in counters:
        found["warp instructions"] = counters[WARP_INSTRUCTIONS]
    share = ffma_share(counters)
    if share is not None:
        found["FFMA share"] = share
    return found


_LEVEL_QUANTITIES: Mapping[LevelName, Quantity] = MappingProxyType(
    {level: quantity for level, name in _OF_LEVEL.items() if (quantity := QUANTITY_OF[name])}
)


def _resources(record: Record) -> dict[Quantity, float]:
    found: dict[Quantity, float] = {}
    if record.resources:
        found["registers per thread"] = record.resources.registers_per_thread
    if record.occupancy:
        found["occupancy"] = record.occupancy.fraction
    if record.theory:
        found["busy SMs"] = record.theory.busy_sms
    return found


# Which change counts most.


def _weights(
    before: Record, after: Record, device: Device
) -> tuple[tuple[Weight, ...], Basis | None]:
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours and theirs:
        bounds = [{one.name: one.time_s for one in of.bounds} for of in (ours, theirs)]
        return _weighed(*bounds), "predicted bounds"
    counted = _bounds(before, "counted", device), _bounds(after, "counted", device)
    if all(counted):
        return _weighed(*counted), "measured counts"
    simulated = _bounds(before, "simulated", device), _bounds(after, "simulated", device)
    return _weighed(*simulated), "simulated counts" if all(simulated) else None


def _weighed(
    before: Mapping[Resource, float], after: Mapping[Resource, float]
) -> tuple[Weight, ...]:
    """Resources of both sides; a bound that one side lacks is 0."""
    if not before or not after:
        return ()
    return tuple(
        Weight(
            resource=name,
            quantity=QUANTITY_OF[name],
            time_s=Ends(before=before.get(name, 0.0), after=after.get(name, 0.0)),
        )
        for name in dict.fromkeys([*before, *after])
        if name in QUANTITY_OF
    )


def _steps(before: Record, after: Record) -> tuple[Weight, ...]:
    """The steps of both gaps from nominal peak, none where one record has no prediction."""
    ours, theirs = before.trusted_prediction, after.trusted_prediction
    if ours is None or theirs is None:
        return ()
    first, second = ({one.name: one.time_s for one in of.gap} for of in (ours, theirs))
    return tuple(
        Weight(
            resource=name,
            quantity=QUANTITY_OF_STEP.get(name),
            time_s=Ends(before=first.get(name, 0.0), after=second.get(name, 0.0)),
            is_step=True,
        )
        for name in dict.fromkeys([*first, *second])
    )


def _bounds(record: Record, grade: _Counted, device: Device) -> dict[Resource, float]:
    """Lower bound on time of every resource at its nominal rate, or else at its reached rate.

    For resources that each SM has, only SMs with a block count.
    """
    counters = _counters(record, grade)
    busy = record.theory.busy_sms / device.sm_count if record.theory else 1.0
    found: dict[Resource, float] = {}
    if WARP_INSTRUCTIONS in counters:
        per_s = busy * device.sm_count * device.boost_clock_hz * ISSUED_PER_CLOCK_PER_SM
        found[Resource.ISSUE] = counters[WARP_INSTRUCTIONS] / per_s
    moved = moved_bytes(counters)
    for level in roofline(device).levels:
        rate = level.bytes_per_s or level.measured_bytes_per_s
        if rate and level.name in moved:
            share = 1.0 if _OF_LEVEL[level.name] in _SHARED_BY_ALL else busy
            found[_OF_LEVEL[level.name]] = moved[level.name] / (share * rate)
    return found
