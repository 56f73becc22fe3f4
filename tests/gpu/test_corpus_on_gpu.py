"""The corpus on silicon: the references that the simulator is held to are those of hardware."""

import numpy as np
import pytest

from analysis.geometry import Geometry
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.launch.launch import Launch
from validation.corpus.cases import CASES, COUNTED
from validation.corpus.compiled import alone
from validation.corpus.refused import marks

pytestmark = pytest.mark.gpu

EACH = [
    *(pytest.param(case, id=case.name, marks=marks(case)) for case in CASES),
    *(pytest.param(case, id=f"counted-{case.name}") for case in COUNTED),
]


@pytest.fixture(scope="module")
def gpu():
    from toolkit.gpu.context import Gpu

    with Gpu() as opened:
        yield opened


@pytest.mark.parametrize("case", EACH)
def test_a_kernel_does_on_silicon_what_its_reference_says(gpu, case):
    arch = gpu.device.sm_arch
    if not case.runs_on(arch):
        pytest.skip(f"needs sm_{case.minimum_capability}")
    assert gpu.alive, "an earlier kernel broke the context: run the first one that failed alone"
    seed = np.random.SeedSequence().entropy
    arguments = case.make(np.random.default_rng(seed))
    launch = Launch(
        source=case.source,
        name=case.file,
        kernel=symbol(case, arch),
        geometry=Geometry(
            grid=case.grid, block=case.block, dynamic_shared_bytes=case.dynamic_shared_bytes
        ),
        arguments=arguments,
    )
    with OnGpu(task_of(launch), gpu) as held:
        execution = held.execution()
    try:
        case.check(execution.outputs, arguments)
    except AssertionError as error:
        error.add_note(f"with numpy.random.default_rng({seed})")
        raise


def symbol(case, arch):
    """Symbol that nvcc gives the kernel: the files instantiate their templates."""
    return case.kernel if case.kernel.isidentifier() else alone(case, arch).symbol
