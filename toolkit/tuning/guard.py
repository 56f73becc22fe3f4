"""What stands between Kernel Tuner and the GPU while it sweeps: an observer, one per worker.

Kernel Tuner stops at the first configuration that does not compile or computes something wrong, and
times kernels whose operands are still in L2. With this observer such a configuration becomes a
failed one and the sweep goes on, and L2 is flushed before every sample, as it is wherever the
toolkit measures.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import cached_property
from time import perf_counter
from typing import Any

from kernel_tuner.observers import OutputObserver
from kernel_tuner.util import RuntimeFailedConfig

from analysis.errors import first_line
from toolkit.gpu.nvcc import compile_error
from toolkit.profiling.on_gpu import WARM_UP_S
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.matrices import Reference, Workload, wrong_result
from toolkit.tuning.request import BEGINS, FAILS, Request, key_of

# Of the result, held against float64 for every configuration; the winners are checked on all rows.
CHECKED_ROWS = 64


class Guard(OutputObserver):  # type: ignore[misc]  # Kernel Tuner has no types
    """Compiles, checks and flushes for Kernel Tuner's PyCUDA backend."""

    def __init__(self, request: Request, options: Mapping[str, object]) -> None:
        self._request = request
        self._wrong: str | None = None
        self._worst_ratio: float | None = None

    def register_device(self, dev: Any) -> None:
        """Take over compiling; called once the backend holds its context."""
        import pycuda.driver as cuda
        from pycuda.compiler import SourceModule

        self.dev, self._cuda = dev, cuda
        # Kernel Tuner compiles relocatable code, for kernels that launch kernels. What is tuned
        # must be compiled as it is launched later.
        dev.source_mod = SourceModule
        dev.compile = self._compiling(dev.compile)
        attributes = cuda.Context.get_device().get_attributes()
        l2_bytes = attributes[cuda.device_attribute.L2_CACHE_SIZE]
        self._words = 2 * l2_bytes // 4  # twice its size: no line of before survives
        self._filler = cuda.mem_alloc(4 * self._words)

    def _compiling(self, compile_instance: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Kernel Tuner's compilation, which answers None where there is nothing to launch."""

        def compiled(instance: Any) -> Any:
            own = self._request.own(instance.params)
            print(BEGINS, key_of(own), flush=True)
            try:
                function = compile_instance(instance)
                self._allow_shared(function, self._request.geometry(own).dynamic_shared_bytes)
            except self._cuda.CompileError as error:
                self._stop_where_disk_is_full(str(error.stderr))
                return self._failed(own, str(compile_error(self._request.rung.file, error.stderr)))
            except self._cuda.Error as error:
                return self._failed(own, f"cannot be loaded: {first_line(error)}")
            return function

        return compiled

    def _allow_shared(self, function: Any, dynamic_shared_bytes: int) -> None:
        if dynamic_shared_bytes:
            attribute = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            function.set_attribute(attribute, dynamic_shared_bytes)

    def _failed(self, own: Mapping[str, int], reason: str) -> None:
        print(FAILS, key_of(own), reason, flush=True)

    def _stop_where_disk_is_full(self, log: str) -> None:
        """A compiler that has no room says nothing about the configuration."""
        if "No space left on device" in log:
            raise OSError(errno.ENOSPC, "No space left on device", "the compiler's files")

    def register_configuration(self, params: Mapping[str, int]) -> None:
        """Before the first sample: raise the clocks, which fall while nvcc works."""
        self._own = self._request.own(params)
        started = perf_counter()
        while perf_counter() - started < WARM_UP_S:
            self.before_start()
            self._cuda.Context.synchronize()

    def before_start(self) -> None:
        """Flush L2; Kernel Tuner waits for that before it starts the clock."""
        self._cuda.memset_d32_async(self._filler, 0, self._words)

    def process_output(self, answer: Any, result: Any) -> None:
        """Hold C against float64; C was poisoned before."""
        problem, c = self._request.problem, result[position_of_c(self._request.rung)]
        check = self._reference.check(c[: problem.m, : problem.n])
        self._worst_ratio, self._wrong = check.worst_ratio, wrong_result(check)

    def get_results(self) -> dict[str, object]:
        """What goes into the cache beside the times: the worst error in units of its bound."""
        found: dict[str, object] = {"worst_ratio": self._worst_ratio}
        if self._wrong is not None:
            self._failed(self._own, self._wrong)
            found["__error__"] = RuntimeFailedConfig()
        return found

    @cached_property
    def _reference(self) -> Reference:
        return Workload(self._request.problem, self._request.seed).reference(CHECKED_ROWS)
