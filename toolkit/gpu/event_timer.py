"""Times of launches between two CUDA events, with a flushed or a warm L2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.geometry import Geometry

if TYPE_CHECKING:
    from toolkit.gpu.context import Gpu

# Busy until the host has queued what is timed, so that no launch gap falls between the events.
HOLD_NANOSECONDS = 50_000
HOLD_SOURCE = """
extern "C" __global__ void hold(unsigned nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
"""


class EventTimer:
    """Times launches in the context of `gpu`, which is open; raises CompileError without nvcc."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._events = gpu.driver.Event(), gpu.driver.Event()
        self._hold = gpu.load(HOLD_SOURCE, "hold", name="hold.cu").prepared(
            Geometry.of(1, 1), [np.uint32(HOLD_NANOSECONDS)]
        )
        self._filler: Any = None

    def time(self, launch: Callable[[], None], *, flush_l2: bool) -> float:
        """Seconds of one `launch` between two events.

        L2 is flushed before it, or else holds what an untimed one of the same launch left.
        """
        start, stop = self._events
        with self._gpu.launch_errors("timed launch"):
            if flush_l2:
                self.flush_l2()
            else:
                launch()
            self._hold()
            start.record()
            launch()
            stop.record()
            stop.synchronize()
        return float(stop.time_since(start)) / 1e3

    def flush_l2(self) -> None:
        """Fill L2 with zeros of its own, some time before the next launch on the default stream."""
        words = 2 * self._gpu.device.l2_bytes // 4  # twice its size: no line of before survives
        if self._filler is None:
            self._filler = self._gpu.allocate(4 * words)
        self._gpu.driver.memset_d32_async(self._filler, 0, words)

    def close(self) -> None:
        """Free the buffer that flushes L2, while the context still exists."""
        self._filler = None
