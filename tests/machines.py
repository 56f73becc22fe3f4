"""Machines that run a kernel of a test: the simulator and, with `-m gpu`, the GPU that is here.

A test that takes `machine` runs on both, and asserts the same of both. Where it is parametrised
itself, `GPU` is the parameter for the GPU, and the architecture, such as "sm_86", that for the
simulator: `@pytest.mark.parametrize("machine", ["sm_75", "sm_86", GPU], indirect=True)`.
"""

from functools import partial

import pytest

GPU = pytest.param("gpu", marks=pytest.mark.gpu)


class OnSimulator:
    """The simulator, with code of NVRTC for one architecture."""

    is_silicon = False

    def __init__(self, arch):
        from toolkit.execution.simulate import simulate
        from toolkit.execution.simulator import Simulator

        self.arch = arch
        self.call = partial(simulate, arch=arch, predict=False)
        self._run = Simulator(arch=arch).run

    @property
    def device(self):
        from analysis.devices import DEVICES

        return next(one for one in DEVICES.values() if one.sm_arch == self.arch)

    def execution(self, launch, code=None):
        """Execution of a launch; `code`, if given, returns its machine code for an architecture."""
        from toolkit.machine_code.compile import compile_cubin

        cubin = (
            code(self.arch)
            if code
            else compile_cubin(
                launch.source,
                name=launch.name,
                kernel=launch.kernel,
                arch=self.arch,
                defines=launch.defines,
                options=launch.options,
            )
        )
        return self._run(cubin, launch.geometry, launch.arguments)


class OnSilicon:
    """A GPU that is open, with code of nvcc; `call` has a process and a context of its own."""

    is_silicon = True

    def __init__(self, opened):
        from toolkit.gpu.launch import run

        self._opened = opened
        self.call = run

    @property
    def device(self):
        return self._opened().device

    @property
    def arch(self):
        return self.device.sm_arch

    def execution(self, launch, code=None):
        """Execution of a launch, compiled from its source."""
        from toolkit.gpu.launch import OnGpu, task_of

        gpu = self._opened()
        assert gpu.alive, "an earlier kernel broke the context: run the first one that failed alone"
        with OnGpu(task_of(launch), gpu) as held:
            return held.execution()


@pytest.fixture(scope="module")
def gpu():
    from toolkit.gpu.context import Gpu

    with Gpu() as opened:
        yield opened


@pytest.fixture
def silicon(request):
    """The GPU that is here, opened when it is first needed."""
    return OnSilicon(partial(request.getfixturevalue, "gpu"))


@pytest.fixture(params=["sm_90", GPU])
def machine(request):
    """The simulator of an architecture, or the GPU that is here."""
    if request.param == "gpu":
        return request.getfixturevalue("silicon")
    return OnSimulator(request.param)
