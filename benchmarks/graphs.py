"""Launches back to back: a CUDA graph of the same launch many times, timed as a whole.

Between launches one by one the host leaves gaps, which on small problems are longer than the work.
In a graph the GPU goes from one to the next by itself, and caches hold what the last one left.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint32, c_uint64, c_void_p
from types import TracebackType

from toolkit.gpu.driver import driver

_NON_BLOCKING = 1  # cuda.h, CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: libraries may allocate while they are captured


class GraphTimer:
    """A stream whose launches become graphs; a context manager in a CUDA context."""

    def __enter__(self) -> GraphTimer:
        stream, self._events = c_void_p(), (c_void_p(), c_void_p())
        driver().call("cuStreamCreate", byref(stream), c_uint32(_NON_BLOCKING))
        for event in self._events:
            driver().call("cuEventCreate", byref(event), c_uint32(0))
        self.stream = int(stream.value or 0)
        self._graphs: list[c_void_p] = []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            return  # the context may be gone, and takes all with it
        self.release()
        for event in self._events:
            driver().call("cuEventDestroy_v2", event)
        driver().call("cuStreamDestroy_v2", c_void_p(self.stream))

    def release(self) -> None:
        """Destroy all graphs: their timers must not be called any more."""
        for graph in self._graphs:
            driver().call("cuGraphExecDestroy", graph)
        self._graphs.clear()

    def synchronize(self) -> None:
        """Wait for all that was launched on the stream."""
        driver().call("cuStreamSynchronize", c_void_p(self.stream))

    def timer(self, launch: Callable[[], None], repeats: int) -> Callable[[], float]:
        """A function that says how many seconds one of `repeats` launches in a row takes.

        `launch` must launch on this stream.
        """
        graph, executable = c_void_p(), c_void_p()
        stream = c_void_p(self.stream)
        driver().call("cuStreamBeginCapture_v2", stream, c_int(_RELAXED))
        for _ in range(repeats):
            launch()
        driver().call("cuStreamEndCapture", stream, byref(graph))
        driver().call("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        driver().call("cuGraphDestroy", graph)
        self._graphs.append(executable)
        start, stop = self._events

        def seconds() -> float:
            driver().call("cuEventRecord", start, stream)
            driver().call("cuGraphLaunch", executable, stream)
            driver().call("cuEventRecord", stop, stream)
            driver().call("cuEventSynchronize", stop)
            milliseconds = c_float()
            driver().call("cuEventElapsedTime", byref(milliseconds), start, stop)
            return milliseconds.value / 1e3 / repeats

        return seconds
