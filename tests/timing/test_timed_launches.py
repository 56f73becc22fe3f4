"""The launches that are timed: their kernels do, on the simulator, what their references say."""

import pytest

from analysis.traffic.grid import MAX_GRID_Y
from toolkit.execution.simulate import simulate
from toolkit.machine_code.compile import compile_cubin
from validation.corpus.case import CORPUS
from validation.corpus.compiled import compiled
from validation.timing.timed_launches import LAUNCHES, OPTIONS, SMALL, rng


def code_of(case):
    if (CORPUS / case.file).parent == CORPUS:
        return compiled(case, "sm_90")
    return compile_cubin(
        case.source, name=case.file, kernel=case.kernel, arch="sm_90", options=OPTIONS
    )


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_a_timed_kernel_does_what_its_reference_says(case):
    arguments = case.make(rng())
    execution = simulate(
        code_of(case),
        grid=case.grid,
        block=case.block,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
        arguments=arguments,
    )
    case.check(execution.outputs, arguments)


def test_launches_have_names_of_their_own():
    names = [case.name for case in LAUNCHES]
    assert len(names) == len(set(names))
    assert len({case.kernel for case in LAUNCHES}) >= 30


@pytest.mark.parametrize("case", LAUNCHES, ids=lambda case: case.name)
def test_a_launch_is_within_the_limits(case):
    assert case.grid[0] < 2**31
    assert max(case.grid[1:]) <= MAX_GRID_Y
    x, y, z = case.block
    assert x * y * z <= 1024
    cubin = compile_cubin(
        case.source, name="kernel.cu", kernel=case.kernel, arch="sm_90", options=OPTIONS
    )
    assert cubin.resources.registers_per_thread * x * y * z <= 65_536
