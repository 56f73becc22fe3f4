"""The made-up GPU of tests/toolkit/conftest.py as an installed PyCUDA, for processes of their own.

Whoever puts the folder above on PYTHONPATH gets it. $MADE_UP_GPU is JSON: `times_s` maps a macro's
setting ("BK=16") to the time of a launch, `does_not_compile` lists settings, `wrong` those whose
result is wrong, `faults` those that take the context down; `compiler_log` is what nvcc prints.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

_CONFTEST = Path(__file__).parents[3] / "conftest.py"
_spec = importlib.util.spec_from_file_location("made_up_gpu_conftest", _CONFTEST)
assert _spec is not None
assert _spec.loader is not None
conftest: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = conftest
_spec.loader.exec_module(conftest)

SLOW_S = 2e-3


class TunableCuda(conftest.FakeCuda):  # type: ignore[misc]
    """The same machine, with what Kernel Tuner's backend calls beside what the toolkit does."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__()
        self.told = told
        self._complete(self.driver)

    def settings(self, source: str) -> set[str]:
        """The macros that a source begins with: Kernel Tuner puts them there."""
        return {f"{name}={value}" for name, value in re.findall(r"#define (\w+) (\d+)\n", source)}

    def has(self, what: str, settings: set[str]) -> bool:
        return bool(settings & set(self.told.get(what, [])))

    def seconds(self, settings: set[str]) -> float:
        times = self.told.get("times_s", {})
        return min([times[one] for one in settings if one in times], default=SLOW_S)

    def _complete(self, driver: Any) -> None:
        cuda = self
        attributes = dict(driver.Device(0).get_attributes(), MAX_THREADS_PER_BLOCK=1024)
        attributes |= {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0}
        driver.Device.get_attributes = lambda self: dict(attributes)
        driver.Context.get_device = staticmethod(lambda: driver.Device(0))
        driver.PointerHolderBase = object
        cuda.depth += 1  # an allocation needs a context
        driver.DeviceAllocation = type(driver.mem_alloc(1))
        cuda.depth -= 1
        driver.Stream = type("Stream", (), {})
        driver.get_version = lambda: (13, 0, 0)
        driver.memset_d8 = lambda buffer, value, size: cuda.memory(int(buffer)).fill(value)

        class Event(driver.Event):  # type: ignore[misc]
            def record(self, stream: Any = None) -> None:
                super().record()

            def query(self) -> bool:
                cuda.check()
                return True

        driver.Event = Event


class SourceModule:
    """A compiled source."""

    def __init__(self, source: str, *, options: list[str], **more: Any) -> None:
        self.settings = gpu.settings(source)
        assert "-std=c++17" in options
        if gpu.has("does_not_compile", self.settings):
            raise gpu.driver.CompileError(gpu.told.get("compiler_log", "kernel.cu(7): error: no"))

    def get_function(self, name: str) -> Function:
        return Function(name, self.settings)


class Function:
    num_regs = 40

    def __init__(self, name: str, settings: set[str]) -> None:
        self.name, self.settings = name, settings

    def __call__(self, *arguments: Any, grid: Any, block: Any, **more: Any) -> None:
        gpu.check()
        gpu.now_s += gpu.seconds(self.settings)
        if gpu.has("faults", self.settings):
            gpu.fault()
        gpu.product(conftest.FakeLaunch(gpu, grid, block, arguments, []))
        if gpu.has("wrong", self.settings):
            gpu.memory(int(arguments[2])).view("float32")[-1] += 1.0


gpu = TunableCuda(json.loads(os.environ.get("MADE_UP_GPU", "{}")))
driver = gpu.driver
compiler: Any = types.ModuleType("pycuda.compiler")
compiler.SourceModule = compiler.DynamicSourceModule = SourceModule
sys.modules["pycuda.driver"], sys.modules["pycuda.compiler"] = driver, compiler
