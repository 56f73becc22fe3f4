"""The 80% interval of a predicted time, from measured launches that are like it.

`analysis.comparison.like_launches` has the launches: how busy each unit was in the prediction, the
state of L2, and the measured over the predicted time. A launch is like another if the same unit
limits both, if all units are about as busy, and if L2 was in the same state. Four fifths of the
ratios of the NEIGHBOURS most alike say how wide the interval is. It is wider where launches like
it are rare.

The model was developed on these launches. So all widths are multiplied by HELD_OUT, which comes
from launches that were held out when they were predicted: 80% of them lie in their interval then
(benchmarks/held_out_widths.py). docs/validation.md has how often intervals hold on launches that
the widths do not come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import exp, hypot, log, log1p

import numpy as np
from numpy.typing import NDArray

from analysis.comparison.like_launches import (
    COLUMNS,
    HELD_OUT,
    LAUNCHES,
    PAIR_SHARE,
    USUAL_DISTANCE,
)
from analysis.devices import Device
from analysis.l2_state import L2State
from analysis.timing.predicted import Predicted, Resource

COVERS = 0.8
COVERED = 0.80  # of public launches that the widths do not come from (docs/validation.md)
# Half width of an interval of 80%, relative to the one of 95% of a mean of random blocks, which has
# 2.4 standard errors (toolkit.execution.sampling).
SHARE_OF_95 = 1.28 / 2.4
# These numbers were chosen by how often intervals hold for launches that the widths do not come
# from (docs/decisions/0171-widths-from-held-out-launches.md).
NEIGHBOURS = 60
RARE = 5  # launches are rare where this neighbour is far
RARITY = 2.0  # weight of its distance
LEAST_SIDE = 0.35  # of the width, on each side of the predicted time
LAUNCH = "LAUNCH"  # the column of the share of the time that the launch itself takes
OTHER_LIMITER, OTHER_STATE = 0.1, 0.15  # distance between launches that differ in that
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
    """The launches of a table; `columns` are the names of the shares in percent.

    A launch begins with its limiter and state of L2, or has those of the line above. Bars separate
    launches of one line.
    """
    units = columns.split()
    found = []
    limiter = l2 = ""
    for line in text.strip().replace("|", "\n").splitlines():
        words = line.split()
        if words[0] in Resource.__members__:
            limiter, l2, *words = words
        if not words:
            continue
        error, *percent = words
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
    usual: float | None = None  #: `usual_distance`, if it is known

    @classmethod
    def of(cls, launches: Sequence[MeasuredLaunch], usual: float | None = None) -> LaunchArrays:
        return cls(
            usual=usual,
            limiters=np.array([UNITS.index(one.limiter) for one in launches]),
            states=np.array([list(L2State).index(one.l2) for one in launches]),
            busy=np.array([one.busy for one in launches]),
            errors=np.array([one.error for one in launches]),
        )

    def ends(
        self, limiter: Resource, l2: L2State, busy: Iterable[float], covers: float = COVERS
    ) -> tuple[float, float]:
        """Ends in log(measured / predicted) for one more of these launches, like this one."""
        distance = self._distance(
            UNITS.index(limiter), list(L2State).index(l2), np.fromiter(busy, np.float64)
        )
        near = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        low, high = quantiles_of(np.sort(self.errors[near]), covers)
        far = float(distance[near[min(RARE, len(near)) - 1]]) / self.usual_distance
        wider = (1 + RARITY * far) / (1 + RARITY)
        return wider * low, wider * high

    def _distance(self, limiter: int, state: int, busy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance of each launch from one with these features."""
        distance: NDArray[np.float64] = np.sqrt(((self.busy - busy) ** 2).sum(axis=1))
        distance += OTHER_LIMITER * (self.limiters != limiter)
        distance += OTHER_STATE * (self.states != state)
        return distance

    @cached_property
    def usual_distance(self) -> float:
        """Median over the launches of the distance to the neighbour number RARE of each."""
        if self.usual is not None:
            return self.usual
        each = zip(self.limiters, self.states, self.busy, strict=True)
        distances = [np.sort(self._distance(*one)) for one in each]
        last = min(RARE, len(distances) - 1)  # the first one is the launch itself
        return float(np.median([one[last] for one in distances])) or 1.0


def quantiles_of(errors: NDArray[np.float64], covers: float = COVERS) -> tuple[float, float]:
    """Ends that the next error lies between with a chance of `covers`, if it is like these.

    They are at least LEAST_SIDE of their distance from 0, as a launch may not share what these have
    in common.
    """
    places = np.arange(1, len(errors) + 1) / (len(errors) + 1)
    ends = np.interp([(1 - covers) / 2, (1 + covers) / 2], places, errors)
    low, high = min(0.0, float(ends[0])), max(0.0, float(ends[1]))
    least = LEAST_SIDE * (high - low)
    return min(low, -least), max(high, least)


def merged(bounds_s: Iterable[tuple[Resource, float]]) -> dict[Resource, float]:
    """Bounds by unit, of which those ALIKE are one."""
    found = dict[Resource, float]()
    for name, time_s in bounds_s:
        unit = ALIKE.get(name, name)
        found[unit] = max(time_s, found.get(unit, 0.0))
    return found


@cache
def _table() -> LaunchArrays:
    return LaunchArrays.of(measured_launches(COLUMNS, LAUNCHES), USUAL_DISTANCE)


def interval_of(predicted: Predicted, device: Device) -> Interval | None:
    """The interval in seconds; None for devices that no such launch was measured on."""
    if device.compute_capability not in MEASURED_ON or not LAUNCHES.strip():
        return None
    bounds_s = merged((one.name, one.time_s) for one in predicted.bounds)
    busy = busy_of(bounds_s, predicted.time_s, predicted.launch_s)
    limiter = ALIKE.get(predicted.limiter, predicted.limiter)
    low, high = (HELD_OUT * end for end in _table().ends(limiter, predicted.l2, busy))
    return predicted.time_s * exp(low), predicted.time_s * exp(high)


def with_estimates(predicted: Predicted, half_width: float, longer: float = 0.0) -> Predicted:
    """The prediction with a wider interval, as its work is an estimate from random blocks.

    `half_width`: of the 95% interval of the executed instructions, relative to their number.
    `longer`: by how much the longest block may exceed the longest one that was executed, relative
    to it, if the launch takes as long as that. Both are independent of the errors of the model.
    """
    if predicted.interval_s is None:
        return predicted
    own = half_width * SHARE_OF_95
    low, high = (log(end / predicted.time_s) for end in predicted.interval_s)
    ends = (min(low, -hypot(low, own)), max(high, hypot(high, own, log1p(longer))))
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
