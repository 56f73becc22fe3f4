"""The state of a GPU while its kernels are sampled: asked between rounds, never within a sample."""

from __future__ import annotations

import time
from collections.abc import Callable

from analysis.records.profile import GpuState, Moment

# NVML answers from readings that it renews every 20 to 100 ms: more questions bring no more
# answers, and each takes the host some hundred microseconds, in which the GPU has nothing to do.
APART_S = 0.05


class Observer:
    """Moments of a GPU, told by `state` after rounds of samples; pass `after_round` on.

    Where nothing is known of the GPU there are none.
    """

    def __init__(
        self, state: Callable[[], GpuState], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._state, self._clock = state, clock
        self._began_s = self._asked_s = clock()
        self._moments: list[Moment] = []

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Moments recorded so far, in order."""
        return tuple(self._moments)

    @property
    def rounds(self) -> int:
        """Number of rounds done when the state was last read."""
        return self._moments[-1].rounds if self._moments else 0

    def after_round(self, rounds: int) -> None:
        """Ask for the state before the first round, and whenever the last answer is old."""
        now_s = self._clock()
        if self._moments and now_s - self._asked_s < APART_S:
            return
        self._asked_s = now_s
        state = self._state()
        if state != GpuState():
            moment = Moment(time_s=now_s - self._began_s, rounds=rounds, state=state)
            self._moments.append(moment)
