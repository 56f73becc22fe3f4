"""Repeated timing of several contenders in one run, so that a drifting clock hits all alike.

Every round times the peer (cuBLAS) once and then each contender once. A contender leaves when
the 95% interval of its median is narrow enough, or its time or its number of samples is spent;
the peer stays until the last has left, so each sample has a peer's sample beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from analysis.errors import LaunchError
from analysis.statistics import is_precise

StoppedBy = Literal["precision", "time limit", "interrupt", "sample limit"]
Timer = Callable[[], float]

FEWEST_SAMPLES = 20  # with fewer, the interval of the median is nearly the samples' range


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """When to stop: `precision` is half the median's 95% interval over the median."""

    precision: float = 0.01
    time_limit_s: float = 2.0
    max_samples: int = 1000


@dataclass(kw_only=True)
class Series:
    """The samples of one contender; `peer_s[i]` was taken just before `samples_s[i]`."""

    samples_s: list[float] = field(default_factory=list)
    peer_s: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    stopped_by: StoppedBy | None = None
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.stopped_by is None and self.error is None

    def take(self, timer: Timer, clock: Timer) -> None:
        """Add one sample; a launch that fails ends the series."""
        started = clock()
        try:
            self.samples_s.append(timer())
        except LaunchError as error:
            self.error = str(error)
        self.spent_s += clock() - started

    def judge(self, sampling: Sampling) -> None:
        """End the series when it has what it needs or has used what it may."""
        count = len(self.samples_s)
        if count >= FEWEST_SAMPLES and is_precise(self.samples_s, sampling.precision):
            self.stopped_by = "precision"
        elif count >= sampling.max_samples:
            self.stopped_by = "sample limit"
        elif self.spent_s >= sampling.time_limit_s:
            self.stopped_by = "time limit"


def interleave(
    timers: Mapping[str, Timer],
    sampling: Sampling,
    *,
    peer: str | None = None,
    on_sample: Callable[[str, Series], None] = lambda label, series: None,
    clock: Timer = time.perf_counter,
) -> tuple[dict[str, Series], bool]:
    """The series of every timer, and whether Ctrl-C ended them early.

    A timer takes one sample and returns it in seconds. `peer` names the timer that is sampled
    in every round. On Ctrl-C the samples so far are kept.
    """
    all_series = {label: Series() for label in timers}
    companion = all_series.get(peer) if peer is not None else None
    try:
        while any(series.active for series in all_series.values()):
            others = [label for label in timers if label != peer and all_series[label].active]
            if companion is not None and peer is not None and companion.error is None:
                companion.take(timers[peer], clock)
                on_sample(peer, companion)
            for label in others:
                series = all_series[label]
                series.take(timers[label], clock)
                if series.error is None and companion is not None and companion.error is None:
                    series.peer_s.append(companion.samples_s[-1])
                series.judge(sampling)
                on_sample(label, series)
            if companion is not None and not others:
                companion.judge(sampling)
    except KeyboardInterrupt:
        _end_early(all_series)
        return all_series, True
    return all_series, False


def _end_early(all_series: Mapping[str, Series]) -> None:
    for series in all_series.values():
        # a Ctrl-C between the two appends leaves a sample without its peer
        del series.peer_s[len(series.samples_s) :]
        if series.peer_s:
            del series.samples_s[len(series.peer_s) :]
        if series.active:
            series.stopped_by = "interrupt"
