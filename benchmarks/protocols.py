"""Protocols of times of calls that follow each other on a GPU: burst and sustained.

Burst: after an idle second, nine calls are queued behind a kernel that waits, so that they run back
to back; the median of their times. Sustained: calls one behind the other for some time; the mean
time of those of its second half, when the power limit has lowered the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

CALLS, IDLE_S = 9, 1.0
SUSTAINED_S = 1.2
BATCH_S = 0.05  # of calls between two looks at the clock
LATE_BATCHES = 2  # of which the mean is taken, at least

Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class CallQueue:
    """Functions of the library that queues the calls."""

    event: Callable[[], Any]  #: makes an event, which has a method `record`
    hold: Callable[[], object]  #: queues a kernel that keeps later ones waiting for milliseconds
    synchronize: Callable[[], object]
    milliseconds: Callable[[Any, Any], float]  #: from one event to a later one


def burst_s(call: Call, stream: CallQueue) -> float:
    """Median seconds of a call by the burst protocol. The first call is not timed."""
    call()
    stream.synchronize()
    time.sleep(IDLE_S)
    events = [stream.event() for _ in range(CALLS + 1)]
    stream.hold()
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    stream.synchronize()
    return median(stream.milliseconds(begin, end) for begin, end in pairwise(events)) / 1e3


def sustained_s(call: Call, stream: CallQueue, seconds: float = SUSTAINED_S) -> float:
    """Mean seconds of a call in the second half of a run of so many seconds."""
    calls = max(1, round(BATCH_S / burst_s(call, stream)))

    def batch() -> None:
        for _ in range(calls):
            call()
        stream.synchronize()

    return late_mean_s(batch, seconds) / calls


def late_mean_s(batch: Call, seconds: float) -> float:
    """Mean seconds of the batches that begin in the second half of a run of so many seconds.

    The run is longer if it takes that until two of them are done.
    """
    begin = time.perf_counter()
    ends: list[float] = []  # of batches; the next one begins at once
    while len(ends) <= LATE_BATCHES or ends[-1] - begin < seconds:
        batch()
        if (now := time.perf_counter()) - begin >= seconds / 2:
            ends.append(now)
    return (ends[-1] - ends[0]) / (len(ends) - 1)
