"""Times of launches between two CUDA events, with a clean, a dirty or a warm L2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.geometry import Geometry
from analysis.l2_state import L2State

if TYPE_CHECKING:
    from toolkit.gpu.context import Gpu

# Busy until the host has queued what is timed, so that no launch gap falls between the events. With
# 50 µs all launches of up to 50 µs took 1.6 µs longer on one host with an H200.
HOLD_NANOSECONDS = 200_000
OTHER_BYTES = 256 * 2**20  # of other data that are read or written, at least
READERS = Geometry.of(1056, 256)
SOURCE = """
extern "C" __global__ void read_all(const uint4 *data, unsigned count, unsigned *found)
{
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    {
        uint4 words = data[i];
        sum ^= words.x ^ words.y ^ words.z ^ words.w;
    }
    if (sum) *found = sum;
}

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
        self._code = gpu.load(SOURCE, "hold", name="timer.cu")
        self.hold_for(HOLD_NANOSECONDS)
        self._filler: Any = None

    def hold_for(self, nanoseconds: int) -> None:
        """Keep the GPU busy for this time before each timed launch."""
        #: Launches the kernel behind which the host queues what is timed.
        self.hold = self._code.prepared(Geometry.of(1, 1), [np.uint32(nanoseconds)])

    def time(self, launch: Callable[[], None], *, l2: L2State) -> float:
        """Seconds of one `launch` between two events, after it found L2 in this state."""
        start, stop = self._events
        with self._gpu.launch_errors("timed launch"):
            if l2 is L2State.WARM:
                launch()
            else:
                self.fill_l2(l2)
            self.hold()
            start.record()
            launch()
            stop.record()
            stop.synchronize()
        return float(stop.time_since(start)) / 1e3

    def fill_l2(self, l2: L2State = L2State.DIRTY) -> None:
        """Fill L2 with zeros of its own, some time before the next launch on the default stream.

        They are written or, if L2 is to be clean, read.
        """
        # at least twice the size of L2: no line of before survives
        size = max(OTHER_BYTES, 2 * self._gpu.device.l2_bytes)
        words = size // 4
        is_new = self._filler is None
        if is_new:
            self._filler = self._gpu.allocate(size)
        if is_new or l2 is not L2State.CLEAN:
            self._gpu.driver.memset_d32_async(self._filler, 0, words)
        if l2 is L2State.CLEAN:
            found = int(self._filler) + size - 4  # is never written: all words are zeros
            reader = self._code.of_same_module("read_all")
            reader.prepared(READERS, [self._filler, np.uint32(words // 4), found])()

    def close(self) -> None:
        """Free the buffer that fills L2, while the context still exists."""
        self._filler = None
