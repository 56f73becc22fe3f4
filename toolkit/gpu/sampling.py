"""Repeated timing of several competitors in one run, so that a drifting clock affects all equally.

Every round times the peer (cuBLAS) once and then each competitor once. The order rotates, so that
no competitor always follows the same kernel. A competitor leaves when the 95% interval of its
median is narrow enough, or when it reaches its limit of time or samples. The peer stays until the
last competitor has left, so that each sample has a sample of the peer from the same round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from typing import Literal

from analysis.comparison.statistics import is_precise
from analysis.errors import InputError, LaunchError, ToolkitError

StoppedBy = Literal["precision", "time limit", "interrupt", "sample limit"]
Timer = Callable[[], float]

FEWEST_SAMPLES = 20  # with fewer, the interval of the median is nearly the samples' range
FOR_AN_INTERVAL = 6  # below, the median has no 95% interval: 1 - 2·2^-5 < 0.95 ≤ 1 - 2·2^-6
PATIENCE = 10  # time limits after which a series ends even so

WARM_UP_S = 0.1  # long enough for the clocks to rise from idle, short enough to wait for
WARM_UP_LAUNCHES = 3


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Limits of sampling; `precision` is half the median's 95% interval over the median.

    Raises InputError for a limit that is not positive and finite: sampling would not end.
    """

    precision: float = 0.01
    time_limit_s: float = 2.0
    max_samples: int = 1000

    def __post_init__(self) -> None:
        for name, value in (
            ("precision", self.precision),
            ("time limit in seconds", self.time_limit_s),
            ("number of samples", self.max_samples),
        ):
            if not (value > 0 and isfinite(value)):
                raise InputError(f"{name} {value} is out of range: give a positive number")


@dataclass(kw_only=True)
class Series:
    """The samples of one competitor.

    `peer_s[i]` was taken just before `samples_s[i]`; it is the shorter one where the peer failed
    midway, or Ctrl-C came between the two.
    """

    samples_s: list[float] = field(default_factory=list)
    peer_s: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    stopped_by: StoppedBy | None = None
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.stopped_by is None and self.error is None

    def take(self, timer: Timer, clock: Timer) -> None:
        """Add one sample; a launch that fails, or takes no time at all, ends the series."""
        started = clock()
        try:
            sample = timer()
        except ToolkitError as error:
            self.error = str(error)
            return
        if sample > 0 and isfinite(sample):
            self.samples_s.append(sample)
        else:
            self.error = f"sample {len(self.samples_s)} is {sample} s: the clock cannot be right"
        self.spent_s += clock() - started

    def judge(self, sampling: Sampling, *, fewest: int = 1) -> None:
        """End the series if it is precise enough or has reached a limit.

        The time limit waits for `fewest` samples, unless they take `PATIENCE` time limits.
        """
        taken = len(self.samples_s)
        if _is_asked(taken) and is_precise(self.samples_s, sampling.precision):
            self.stopped_by = "precision"
        elif taken >= sampling.max_samples:
            self.stopped_by = "sample limit"
        elif self.spent_s >= sampling.time_limit_s * (1 if taken >= fewest else PATIENCE):
            self.stopped_by = "time limit"


def warm_up(timer: Timer) -> None:
    """Launch until the clocks are up; an error here appears again in the timing."""
    started = time.perf_counter()
    with suppress(ToolkitError):
        for _ in range(WARM_UP_LAUNCHES):
            timer()
        while time.perf_counter() - started < WARM_UP_S:
            timer()


def samples_of(timer: Timer, sampling: Sampling) -> tuple[float, ...]:
    """Samples of one launch, in seconds, taken until `sampling` ends them.

    Raises LaunchError if a sample fails.
    """
    warm_up(timer)
    found, _ = interleave({"": timer}, sampling, fewest=FOR_AN_INTERVAL)
    if error := found[""].error:
        raise LaunchError(error)
    return tuple(found[""].samples_s)


def interleave(
    timers: Mapping[str, Timer],
    sampling: Sampling,
    *,
    peer: str | None = None,
    fewest: int = 1,
    on_sample: Callable[[str, Series], None] = lambda label, series: None,
    on_round: Callable[[int], None] = lambda done: None,
    usable: Callable[[], bool] = lambda: True,
    clock: Timer = time.perf_counter,
) -> tuple[dict[str, Series], bool]:
    """The series of every timer, and whether Ctrl-C ended them early.

    A timer takes one sample and returns it in seconds. `peer` names the timer that is sampled
    first in every round, for as long as another is. `on_round` hears how many rounds are done, 0
    before the first. `fewest` samples are taken whatever the time limit, as `Series.judge` says. On
    Ctrl-C the samples so far are kept, and also where `usable`, asked after each sample, says that
    no other can be taken.
    """
    all_series = {label: Series() for label in timers}
    try:
        for done in count():
            on_round(done)
            turns = _turns(all_series, peer, done)
            if not turns:
                break
            beside = all_series[peer] if peer in turns else None
            for label in turns:
                series = all_series[label]
                series.take(timers[label], clock)
                if series is not beside:
                    _pair(series, beside)
                    series.judge(sampling, fewest=fewest)
                on_sample(label, series)
                if not usable():
                    return _ended(all_series), False
            if beside and not any(s.active for s in all_series.values() if s is not beside):
                beside.judge(sampling, fewest=fewest)
    except KeyboardInterrupt:
        return _ended(all_series), True
    return all_series, False


def _ended(all_series: dict[str, Series]) -> dict[str, Series]:
    """The series, those that went on ended before their time."""
    for series in all_series.values():
        if series.active:
            series.stopped_by = "interrupt"
    return all_series


def _turns(all_series: Mapping[str, Series], peer: str | None, round_number: int) -> list[str]:
    """Labels of the series to sample in a round, in order; empty when all have ended."""
    waiting = [label for label, series in all_series.items() if series.active]
    first = [label for label in waiting if label == peer]
    others = [label for label in waiting if label != peer]
    shift = round_number % len(others) if others else 0
    return [*first, *others[shift:], *others[:shift]]


def _is_asked(taken: int) -> bool:
    """True if the precision is checked after this many samples: 20, 40, 80, 160 ...

    If it were checked after every sample, a series would stop when its interval happens to be
    narrow, and the 95% interval would then cover the median in only 91% of all series. With ever
    rarer checks it has few chances to stop too early, and at most half of its samples are more than
    necessary.
    """
    doublings, rest = divmod(taken, FEWEST_SAMPLES)
    return rest == 0 and doublings.bit_count() == 1


def _pair(series: Series, beside: Series | None) -> None:
    """Note the peer's sample of this round, where both took one."""
    if beside is not None and series.error is None and beside.error is None:
        series.peer_s.append(beside.samples_s[-1])
