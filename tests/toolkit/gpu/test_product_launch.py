"""A competitor is held to its buffers, and whatever it breaks in its process it breaks alone."""

import pickle
import re

import numpy as np
import pytest

from analysis.errors import InputError, LaunchError
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from kernels.selection import Selection
from tests.refusals import refusal
from tests.rungs import every_rung
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.gpu.product_launch import LAUNCHES, task_of_product
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.matrices import Workload

L2_BYTES = 2**10  # of the made-up GPU
SHAPE = parse_shape("4x8x4")
C = 2  # where it stands among the arguments of SOURCE
A_LABEL, B_LABEL, C_LABEL = (
    f"argument {k} `{name}`, float32[{shape}]"
    for k, (name, shape) in enumerate([("A", "4,4"), ("B", "4,8"), ("C", "4,8")])
)
SOURCE = """
extern "C" __global__ void product(const float* A, const float* B, float* C, int M, int N, int K,
                                   float alpha, float beta, float* workspace) {}
"""


def task_for(problem=SHAPE, workspace_bytes=0):
    """A kernel whose arguments are those of a rung."""
    a, b = Workload(problem, 1).padded(SHAPE)
    launch = GpuLaunch(
        source=SOURCE,
        name="product.cu",
        kernel="product",
        geometry=Geometry(grid=(1, 1, 1), block=(32, 1, 1)),
        arguments=[
            a,
            b,
            np.zeros((SHAPE.m, SHAPE.n), np.float32),
            *map(np.int32, (SHAPE.m, SHAPE.n, SHAPE.k)),
            np.float32(1),
            np.float32(0),
            np.zeros(workspace_bytes, np.uint8),
        ],
        inputs=(0, 1),
        unwritten=(C,),
    )
    return task_of(launch)


# On the made-up GPU of conftest.py, in this process.


def on_fake(cuda, kernel, task=None):
    cuda.kernels["product"] = kernel
    with OnGpu(task or task_for()) as held:
        return held.result(C, LAUNCHES)


def writes(position, offset_bytes):
    """A kernel that writes a word so far from the start of a buffer."""

    def kernel(launch):
        launch.cuda.product(launch)
        launch.cuda.memory(int(launch.arguments[position]) + offset_bytes)[:4] = 1

    return kernel


def test_a_kernel_that_stays_in_its_buffers_passes(cuda):
    workload = Workload(SHAPE, 1)
    assert on_fake(cuda, cuda.product) == pytest.approx(workload.a @ workload.b)
    assert cuda.log.count("product") == LAUNCHES


def test_the_last_launch_must_write_what_earlier_ones_did(cuda):
    def tiring(launch):
        if cuda.log.count("product") < LAUNCHES:
            cuda.product(launch)

    assert np.isnan(on_fake(cuda, tiring)).all()


@pytest.mark.parametrize(
    ("position", "offset_bytes", "words"),
    [
        (2, 4 * 8 * 4, f"1 words behind {C_LABEL} were overwritten, the nearest 0 bytes away"),
        (
            2,
            4 * 8 * 4 + 400,
            f"behind {C_LABEL} were overwritten, the nearest 400 bytes away",
        ),
        (2, -4, f"1 words in front of {C_LABEL} were overwritten, the nearest 4 bytes away"),
        (0, 4 * 4 * 4, f"1 words behind {A_LABEL} were overwritten, the nearest 0 bytes away"),
        (1, -8, f"1 words in front of {B_LABEL} were overwritten, the nearest 8 bytes away"),
        (0, 0, f"wrote to {A_LABEL}, which is an input"),
        (1, 60, f"wrote to {B_LABEL}, which is an input"),
    ],
)
def test_a_write_beyond_its_output_is_named(cuda, position, offset_bytes, words):
    with pytest.raises(LaunchError) as raised:
        on_fake(cuda, writes(position, offset_bytes))
    assert words in str(raised.value)


def test_a_workspace_is_zeros_between_guard_bands(cuda):
    held = []

    def kernel(launch):
        launch.cuda.product(launch)
        workspace = launch.cuda.memory(int(launch.arguments[8]))
        held.append(workspace[:12].tolist())
        workspace[12:16] = 1

    assert "1 words behind argument 8 `workspace`, uint8[12] " in refusal(
        LaunchError, on_fake, cuda, kernel, task_for(workspace_bytes=12)
    )
    assert held[0] == [0] * 12


@every_rung
def test_what_a_rung_takes_can_be_handed_to_a_child(variant):
    problem = parse_shape("255x255x63") if variant.multiple_of > 1 else parse_shape("32x32x64")
    executed = variant.executed(problem)
    selection = Selection(variant=variant, parameters=variant.defaults)
    task = pickle.loads(pickle.dumps(task_of_product(selection, problem, executed, 1)))
    launch = task.launch()
    a, b = Workload(problem, 1).padded(executed)
    arrays = buffers_of(launch.arguments)
    assert [arrays[k].tobytes() for k in launch.inputs] == [a.tobytes(), b.tobytes()]
    assert arrays[position_of_c(variant)].shape == (executed.m, executed.n)
    assert launch.source == variant.source


def test_a_fault_is_an_error(cuda):
    assert "illegal memory access" in refusal(
        LaunchError, on_fake, cuda, lambda launch: launch.cuda.fault()
    )


def test_no_kernel_reads_zeros_around_its_buffers(cuda):
    seen = []

    def kernel(launch):
        seen.append(launch.cuda.memory(int(launch.arguments[2]) - 4).view(np.float32)[0])

    on_fake(cuda, kernel)
    assert np.isnan(seen).all()


def test_damage_that_comes_later_is_found_too(cuda):
    with OnGpu(task_for()) as held:
        held.result(C, LAUNCHES)
        held.raise_damage()
        cuda.kernels["product"] = writes(2, -4)
        held.sample(True)
        with pytest.raises(LaunchError, match=re.escape(f"in front of {C_LABEL} were overwritten")):
            held.raise_damage()


def test_nothing_is_left_of_one_that_cannot_be_prepared(cuda):
    before = cuda.free_bytes = 1000
    with pytest.raises(InputError, match="do not fit on the GPU"), OnGpu(task_for()):
        pass
    assert cuda.free_bytes == before
    assert cuda.depth == 0


def test_its_memory_is_free_when_nothing_more_is_asked(cuda):
    before = cuda.free_bytes
    with OnGpu(task_for()) as held:
        held.result(C, LAUNCHES)
        assert cuda.free_bytes < before - 2 * L2_BYTES
        held.dismiss()
        assert cuda.free_bytes == before - 2 * L2_BYTES  # what flushes L2 goes with the context
    assert cuda.free_bytes == before
