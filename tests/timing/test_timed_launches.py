"""The launches that are timed: their kernels leave, on the simulator, what they left on a GPU."""

import pytest

from analysis.traffic.grid import MAX_GRID_Y
from tests.cubins import cubin_of
from tests.sampling import sampled
from toolkit.execution.simulate import simulate
from toolkit.machine_code.kernel import Kernel
from validation.timing.declared import OPTIONS, rng
from validation.timing.timed_launches import LAUNCHES, TIMED

IMAGES = {}


def code_of(source, kernel):
    """Machine code of a kernel, of an image that all kernels of its file share."""
    if source not in IMAGES:
        IMAGES[source] = cubin_of(source, kernel, options=OPTIONS).image
    return Kernel.from_image(IMAGES[source], kernel)


@pytest.mark.parametrize(
    "timed",
    sampled([pytest.param(x, id=x.key) for x in TIMED], key=lambda timed: timed.small_case.source),
)
def test_a_timed_kernel_leaves_what_it_left_on_a_gpu(timed):
    case = timed.small_case
    arguments = case.make(rng())
    execution = simulate(
        code_of(case.source, case.kernel),
        grid=case.grid,
        block=case.block,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
        arguments=arguments,
        predict=False,
    )
    case.check(execution.outputs, arguments)


def test_launches_have_names_of_their_own():
    names = [case.name for case in LAUNCHES]
    assert len(names) == len(set(names))
    assert len({case.kernel for case in LAUNCHES}) >= 30


@pytest.mark.parametrize(
    "case", sampled([pytest.param(x, id=x.name) for x in LAUNCHES], key=lambda case: case.source)
)
def test_a_launch_is_within_the_limits(case):
    assert case.grid[0] < 2**31
    assert max(case.grid[1:]) <= MAX_GRID_Y
    x, y, z = case.block
    assert x * y * z <= 1024
    assert code_of(case.source, case.kernel).resources.registers_per_thread * x * y * z <= 65_536
