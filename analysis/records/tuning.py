"""Results of a tuning run: the configurations of a rung with their predicted and measured times.

A configuration goes through up to four stages: closed forms, a prediction, a sweep (few samples,
one configuration after the other), and the final (many samples of the leaders, in rounds with
cuBLAS). Each stage costs more than the one before and takes fewer configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from analysis.devices import Device
from analysis.occupancy import Occupancy, Resources
from analysis.problem import Gemm
from analysis.records.profile import Environment, Interval, Measured
from analysis.rounding import Check
from analysis.timing.predicted import Predicted

SCHEMA_VERSION = 1

# Relative to the best median of a sweep: a slower configuration is no leader. A sweep takes few
# samples, minutes apart, which determine a median to some percent. A smaller limit would lose the
# best configuration to a warm clock, a larger one would only make the final longer.
LEADING = 0.05


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Number of configurations that a constraint removed of those that earlier ones had left."""

    constraint: str
    configurations: int


@dataclass(frozen=True, kw_only=True)
class Swept:
    """Samples that the sweep took of one configuration, in this run or in an earlier one."""

    samples_s: tuple[float, ...]
    from_cache: bool

    @property
    def median_s(self) -> float:
        return median(self.samples_s)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One configuration: the last stage that it reached, and its results.

    It is "left out" if it exceeds a limit of the device or its rank is too low, and "failed" if it
    did not compile, launch or compute; `reason` says which. `estimate_s` is the time by closed
    forms. `notes` name results that could not be obtained. `is_tied` is True for the winners: the
    samples of the final show none that is faster.
    """

    label: str
    parameters: dict[str, int]
    estimate_s: float
    status: Literal["ok", "left out", "failed"] = "ok"
    reason: str | None = None
    notes: tuple[str, ...] = ()
    resources: Resources | None = None
    occupancy: Occupancy | None = None
    predicted: Predicted | None = None
    swept: Swept | None = None
    check: Check | None = None
    measured: Measured | None = None
    is_tied: bool = False

    @property
    def expected_s(self) -> tuple[bool, float]:
        """Sort key: predicted times first; without one, the estimate of closed forms."""
        if self.predicted is None:
            return True, self.estimate_s
        return False, self.predicted.time_s


@dataclass(frozen=True, kw_only=True)
class TunedShape:
    """Results at one shape; candidates in the order of their expected times.

    `combinations` counts all values of all parameters, before the constraints. `method` says how
    the times were obtained; `also_checked` are further shapes at which the winners are right;
    `notes` name results that could not be obtained.
    """

    shape: Gemm
    executed_shape: Gemm
    combinations: int
    exclusions: tuple[Exclusion, ...]
    candidates: tuple[Candidate, ...]
    method: str
    also_checked: tuple[Gemm, ...] = ()
    cublas: Measured | None = None
    notes: tuple[str, ...] = ()

    @property
    def winners(self) -> tuple[Candidate, ...]:
        """Tied candidates, the one with the best median first."""
        tied = [one for one in self.candidates if one.is_tied and one.measured]
        return tuple(sorted(tied, key=lambda one: cost(_of(one))[0]))


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Tuning run of one rung: the contents of tuning.json.

    `missing` gives the reason for each requested shape that has no result.
    """

    schema_version: int
    created: str
    command: str
    variant: str
    seed: int
    device: Device
    environment: Environment
    shapes: tuple[TunedShape, ...]
    missing: tuple[str, ...] = ()


def cost(measured: Measured) -> tuple[float, Interval | None]:
    """Time of a launch with its 95% interval, in launches of its peer, else in seconds."""
    ratio = measured.relative_to_cublas
    if ratio is None:
        return measured.median_s, measured.interval_s
    if ratio.interval is None:
        return 1 / ratio.median, None
    return 1 / ratio.median, Interval(low=1 / ratio.interval.high, high=1 / ratio.interval.low)


def tied(finals: Mapping[str, Measured]) -> frozenset[str]:
    """Labels that the samples cannot tell from the fastest: their 95% intervals overlap its own.

    Two intervals may overlap although the medians differ: this errs towards a tie. A series that is
    too short for an interval is always tied. Times are in launches of the peer if every series has
    a peer, so that a drifting clock cancels.
    """
    if not finals:
        return frozenset()
    has_peers = all(one.relative_to_cublas for one in finals.values())
    costs = {
        label: cost(one) if has_peers else (one.median_s, one.interval_s)
        for label, one in finals.items()
    }
    _, fastest = min(costs.values(), key=lambda found: found[0])
    return frozenset(label for label, (_, own) in costs.items() if _meet(own, fastest))


def leaders(swept: Mapping[str, float], most: int) -> tuple[str, ...]:
    """At most `most` labels with a median near the best one, the fastest first."""
    if not swept:
        return ()
    limit = (1 + LEADING) * min(swept.values())
    near = [label for label, time_s in swept.items() if time_s <= limit]
    return tuple(sorted(near, key=swept.__getitem__)[:most])


def _meet(one: Interval | None, other: Interval | None) -> bool:
    return one is None or other is None or one.low <= other.high


def _of(candidate: Candidate) -> Measured:
    assert candidate.measured is not None
    return candidate.measured
