"""The made-up GPU of tests/toolkit/conftest.py as an installed PyCUDA, for processes of their own.

Whoever puts the folder above on PYTHONPATH gets it. $MADE_UP_GPU is JSON: `times_s` maps settings
of macros ("BK=16") to the time of a launch, and lists of settings say what happens to them:
`does_not_compile`, `wrong` (the result), `faults` (the context is lost), `does_nothing`; all but
the first also as `wrong_at_odd_k` and so on. `compiler_log` is what nvcc prints,
`slow_to_compile_s` how long it takes, `device_name` the GPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import toolkit.gpu.context

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
        self.name = told.get("device_name", self.name)
        self.product = self.told_product
        self._complete(self.driver)

    def told_product(self, launch: Any) -> None:
        """What a kernel does that the toolkit compiled, with its macros among the options."""
        settings = {option[2:] for option in launch.options if option.startswith("-D")}
        self.now_s += self.seconds(settings) - self.launch_s
        self.launch(launch, settings)

    def launch(self, launch: Any, settings: set[str]) -> None:
        """The product, or what $MADE_UP_GPU says of a configuration."""
        is_odd = int(launch.arguments[5]) % 2 == 1

        def does(what: str) -> bool:
            return self.has(what, settings) or (is_odd and self.has(f"{what}_at_odd_k", settings))

        if does("faults"):
            self.fault()
        if self.broken or does("does_nothing"):
            return
        conftest.product(launch)
        if does("wrong"):
            launch.floats(2)[-1] += 1.0

    def settings(self, source: str) -> set[str]:
        """The macros that Kernel Tuner puts before a source; its own defaults follow."""
        told, is_kernel_tuners, _ = source.partition("#line 1\n")
        found = re.findall(r"#define (\w+) (\d+)\n", told) if is_kernel_tuners else []
        return {f"{name}={value}" for name, value in found}

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
        time.sleep(gpu.told.get("slow_to_compile_s", 0.0))
        assert "-std=c++17" in options
        if gpu.has("does_not_compile", self.settings):
            raise gpu.driver.CompileError(gpu.told.get("compiler_log", "kernel.cu(7): error: no"))

    def get_function(self, name: str) -> Function:
        return Function(name, self.settings)


class Function:
    num_regs = 40
    dynamic = 49_152  # bytes of shared memory, where nobody asked for more

    def __init__(self, name: str, settings: set[str]) -> None:
        self.name, self.settings = name, settings

    def set_attribute(self, attribute: str, value: int) -> None:
        assert attribute == "dynamic"
        self.dynamic = value

    def __call__(
        self, *arguments: Any, grid: Any, block: Any, shared: int = 0, **more: Any
    ) -> None:
        gpu.check()
        if shared > self.dynamic:
            raise gpu.driver.LogicError("cuLaunchKernel failed: invalid argument")
        is_cold = gpu.log[-1:] == [
            "fill 0x0"
        ]  # what a launch left in L2 halves the next one's time
        gpu.log.append(self.name)
        gpu.now_s += gpu.seconds(self.settings) * (1.0 if is_cold else 0.5)
        gpu.launch(conftest.FakeLaunch(gpu, grid, block, arguments, []), self.settings)


gpu = TunableCuda(json.loads(os.environ.get("MADE_UP_GPU", "{}")))
driver = gpu.driver
compiler: Any = gpu.compiler()
compiler.SourceModule = compiler.DynamicSourceModule = SourceModule
sys.modules["pycuda.driver"], sys.modules["pycuda.compiler"] = driver, compiler
toolkit.gpu.context.read_kernel = conftest.made_up_kernel
