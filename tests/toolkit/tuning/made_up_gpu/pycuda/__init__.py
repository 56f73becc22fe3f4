"""The made-up GPU of tests/toolkit/conftest.py as an installed PyCUDA, for processes of their own.

Whoever puts the folder above on PYTHONPATH gets it. $MADE_UP_GPU is JSON: `times_s` maps settings
of macros ("BK=16") to the time of a launch, and lists of settings say what happens to them:
`does_not_compile`, `wrong` (the result), `faults` (the context is lost), `does_nothing`; all but
the first also as `wrong_at_odd_k` and so on. `compiler_log` is what nvcc prints,
`slow_to_compile_s` how long it takes, `device_name` the GPU.
"""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import toolkit.gpu.context

_CONFTEST = Path(__file__).parents[3] / "conftest.py"
_spec = importlib.util.spec_from_file_location("made_up_gpu_conftest", _CONFTEST)
assert _spec is not None
assert _spec.loader is not None
conftest = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = conftest
_spec.loader.exec_module(conftest)

SLOW_S = 2e-3


def settings_of(options):
    return {option[2:] for option in options if option.startswith("-D")}


class TunableCuda(conftest.FakeCuda):  # type: ignore[misc]
    """The same machine, that does what it is told of a configuration."""

    def __init__(self, told):
        super().__init__()
        self.told = told
        self.name = told.get("device_name", self.name)
        self.product = self.told_product

    def told_product(self, launch):
        """The product, or what $MADE_UP_GPU says of a configuration."""
        settings = settings_of(launch.options)
        times = self.told.get("times_s", {})
        time_s = min([times[one] for one in settings if one in times], default=SLOW_S)
        self.now_s += time_s - self.launch_s
        m, n, k = (int(size) for size in launch.arguments[3:6])

        def does(what):
            return self.has(what, settings) or (k % 2 and self.has(f"{what}_at_odd_k", settings))

        if does("faults"):
            self.fault()
        if self.broken or does("does_nothing"):
            return
        conftest.product(launch)
        if does("wrong"):
            launch.floats(2)[m * n - 1] += 1.0

    def has(self, what, settings):
        return bool(settings & set(self.told.get(what, [])))


def compile_source(source, *, options, **more):
    time.sleep(gpu.told.get("slow_to_compile_s", 0.0))
    if gpu.has("does_not_compile", settings_of(options)):
        raise gpu.driver.CompileError(gpu.told.get("compiler_log", "kernel.cu(7): error: no"))
    return _compile(source, options=options, **more)


gpu = TunableCuda(json.loads(os.environ.get("MADE_UP_GPU", "{}")))
driver = gpu.driver
compiler = gpu.compiler()
_compile, compiler.compile = compiler.compile, compile_source
sys.modules["pycuda.driver"], sys.modules["pycuda.compiler"] = driver, compiler
toolkit.gpu.context.read_kernel = conftest.made_up_kernel
