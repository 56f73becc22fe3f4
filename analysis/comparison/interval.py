"""The 80% interval of a predicted time, from measured launches that are like it.

`analysis.comparison.like_launches` has the launches: how busy each unit was in the prediction, the
state of L2, and the measured over the predicted time. A launch is like another if the same unit
limits both, if all units are about as busy, and if L2 was in the same state. Of the NEIGHBOURS most
alike, four fifths of the ratios lie in the interval. docs/validation.md has how often it holds on
launches that are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, hypot, log

import numpy as np
from numpy.typing import NDArray

from analysis.comparison.like_launches import COLUMNS, LAUNCHES, PAIR_SHARE
from analysis.devices import Device
from analysis.l2_state import L2State
from analysis.timing.predicted import Predicted, Resource

COVERS = 0.8
COVERED = 0.65  # of held-out launches of public programs, measured on an H200 (docs/trust.md)
# Half width of an interval of 80%, relative to the one of 95% of a mean of random blocks, which has
# 2.4 standard errors (toolkit.execution.sampling).
SHARE_OF_95 = 1.28 / 2.4
NEIGHBOURS = 18
LAUNCH = "LAUNCH"  # the column of the share of the time that the launch itself takes
OTHER_LIMITER, OTHER_STATE = 0.1, 0.15  # distance between launches that differ in that
LAUNCH_WEIGHT = 1.0  # of the share of the time that the launch itself takes
Interval = tuple[float, float]
UNITS = tuple(Resource)
# Stores that meet wait at a slice of L2 as atomic operations do, of which launches were measured.
ALIKE = {Resource.STORES: Resource.ATOMICS}
MEASURED_ON = ((9, 0),)  # compute capabilities of the devices that the launches were measured on


@dataclass(frozen=True, kw_only=True)
class MeasuredLaunch:
    """A launch that was measured: features of its prediction, and log(measured / predicted)."""

    limiter: Resource
    l2: L2State
    busy: tuple[float, ...]  #: share of the time of each of `UNITS`, and that of the launch
    error: float


def measured_launches(columns: str, text: str) -> list[MeasuredLaunch]:
    """The launches of a table, one per line; `columns` are the names of the shares in percent."""
    units = columns.split()
    found = []
    for line in text.strip().splitlines():
        limiter, l2, error, *percent = line.split()
        shares = dict(zip(units, (float(one) / 100 for one in percent), strict=True))
        busy = (shares.get(name, 0.0) for name in (*(unit.name for unit in UNITS), LAUNCH))
        found.append(
            MeasuredLaunch(
                limiter=Resource[limiter], l2=L2State(l2), busy=tuple(busy), error=float(error)
            )
        )
    return found


def table_of(launches: Iterable[MeasuredLaunch]) -> str:
    """The table of these launches, as `measured_launches` reads it."""
    lines = [
        [one.limiter.name, one.l2, f"{one.error:.3f}", *(f"{100 * x:.0f}" for x in one.busy)]
        for one in launches
    ]
    return "\n".join(sorted(" ".join(line) for line in lines))


def busy_of(
    bounds_s: Mapping[Resource, float], time_s: float, launch_s: float
) -> tuple[float, ...]:
    """Share of the time that each unit is busy, and share of the launch itself."""
    work_s = time_s - launch_s
    shares = (min(1.0, bounds_s.get(unit, 0.0) / work_s) if work_s > 0 else 0.0 for unit in UNITS)
    return (*shares, launch_s / time_s)


@dataclass(frozen=True, kw_only=True)
class LaunchArrays:
    """Launches as arrays."""

    limiters: NDArray[np.int64]
    states: NDArray[np.int64]
    busy: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, launches: Sequence[MeasuredLaunch]) -> LaunchArrays:
        return cls(
            limiters=np.array([UNITS.index(one.limiter) for one in launches]),
            states=np.array([list(L2State).index(one.l2) for one in launches]),
            busy=np.array([one.busy for one in launches]),
            errors=np.array([one.error for one in launches]),
        )

    def ends(
        self, limiter: Resource, l2: L2State, busy: Iterable[float], covers: float = COVERS
    ) -> tuple[float, float]:
        """Ends of the interval, in log(measured / predicted), of a launch like this."""
        difference = self.busy - np.fromiter(busy, np.float64)
        difference[:, -1] *= LAUNCH_WEIGHT
        distance = np.sqrt((difference**2).sum(axis=1))
        distance += OTHER_LIMITER * (self.limiters != UNITS.index(limiter))
        distance += OTHER_STATE * (self.states != list(L2State).index(l2))
        alike = np.sort(self.errors[np.argsort(distance, kind="stable")[:NEIGHBOURS]])
        return quantiles_of(alike, covers)


def quantiles_of(errors: NDArray[np.float64], covers: float = COVERS) -> tuple[float, float]:
    """Ends that the next error lies between with a chance of `covers`, if it is like these."""
    places = np.arange(1, len(errors) + 1) / (len(errors) + 1)
    low, high = np.interp([(1 - covers) / 2, (1 + covers) / 2], places, errors)
    return min(0.0, float(low)), max(0.0, float(high))


@cache
def _table() -> LaunchArrays:
    return LaunchArrays.of(measured_launches(COLUMNS, LAUNCHES))


def interval_of(predicted: Predicted, device: Device) -> Interval | None:
    """The interval in seconds; None for devices that no such launch was measured on."""
    if device.compute_capability not in MEASURED_ON or not LAUNCHES.strip():
        return None
    bounds_s = dict[Resource, float]()
    for one in predicted.bounds:
        unit = ALIKE.get(one.name, one.name)
        bounds_s[unit] = max(one.time_s, bounds_s.get(unit, 0.0))
    busy = busy_of(bounds_s, predicted.time_s, predicted.launch_s)
    limiter = ALIKE.get(predicted.limiter, predicted.limiter)
    low, high = _table().ends(limiter, predicted.l2, busy)
    return predicted.time_s * exp(low), predicted.time_s * exp(high)


def with_estimates(predicted: Predicted, half_width: float) -> Predicted:
    """The prediction with a wider interval, as its work is an estimate from random blocks.

    `half_width`: of the 95% interval of the executed instructions, relative to their number. It is
    independent of the errors of the model.
    """
    if predicted.interval_s is None:
        return predicted
    own = half_width * SHARE_OF_95
    low, high = (log(end / predicted.time_s) for end in predicted.interval_s)
    ends = (min(low, -hypot(low, own)), max(high, hypot(high, own)))
    low, high = (predicted.time_s * exp(end) for end in ends)
    return replace(predicted, interval_s=(low, high))


def change_interval(before: Predicted, after: Predicted) -> Interval | None:
    """Interval of after over before, of two versions of a kernel; None without their intervals.

    Their errors are alike: the interval has PAIR_SHARE of the width that independent errors give.
    """
    if before.interval_s is None or after.interval_s is None:
        return None
    low_before, high_before = (log(end / before.time_s) for end in before.interval_s)
    low_after, high_after = (log(end / after.time_s) for end in after.interval_s)
    change = log(after.time_s / before.time_s)
    low = change - PAIR_SHARE * hypot(low_after, high_before)
    high = change + PAIR_SHARE * hypot(high_after, low_before)
    return exp(low), exp(high)
