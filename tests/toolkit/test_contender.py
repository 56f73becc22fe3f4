"""A contender is held to its buffers, and whatever it breaks in its process it breaks alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.errors import InputError, LaunchError
from analysis.geometry import Geometry
from analysis.problem import Gemm
from kernels.registry import LADDER, Variant
from toolkit import contender
from toolkit.contender import Code, Contender, Task
from toolkit.tiles import maps_of
from toolkit.workload import Workload

L2_BYTES = 2**10  # of the made-up GPU
SHAPE = Gemm(m=4, n=8, k=4)
CODE = Code(
    source="",
    entry="product",
    name="product.cu",
    defines={},
    geometry=Geometry(grid=(1, 1, 1), block=(32, 1, 1)),
)
TASK = Task(code=CODE, problem=SHAPE, executed=SHAPE, seed=1)

# On the made-up GPU of conftest.py, in this process.


def on_fake(cuda: Any, kernel: Any, task: Task = TASK) -> Any:
    cuda.kernels["product"] = kernel
    with Contender(task) as contender:
        return contender.product()


def writes(position: int, offset_bytes: int) -> Any:
    """A kernel that writes a word so far from the start of a buffer."""

    def kernel(launch: Any) -> None:
        launch.cuda.product(launch)
        launch.cuda.memory(int(launch.arguments[position]) + offset_bytes)[:4] = 1

    return kernel


def test_a_kernel_that_stays_in_its_buffers_passes(cuda: Any) -> None:
    workload = Workload(SHAPE, 1)
    assert on_fake(cuda, cuda.product) == pytest.approx(workload.a @ workload.b)
    assert cuda.log.count("product") == contender.LAUNCHES


def test_the_product_is_cut_out_of_the_padded_one(cuda: Any) -> None:
    task = replace(TASK, problem=Gemm(m=3, n=5, k=2))
    workload = Workload(task.problem, 1)
    assert on_fake(cuda, cuda.product, task) == pytest.approx(workload.a @ workload.b)


def test_the_last_launch_must_write_what_earlier_ones_did(cuda: Any) -> None:
    def tiring(launch: Any) -> None:
        if cuda.log.count("product") < contender.LAUNCHES:
            cuda.product(launch)

    assert np.isnan(on_fake(cuda, tiring)).all()


@pytest.mark.parametrize(
    ("position", "offset_bytes", "words"),
    [
        (2, 4 * 8 * 4, "1 words behind C were overwritten, the nearest 0 bytes away"),
        (2, 4 * 8 * 4 + 400, "1 words behind C were overwritten, the nearest 400 bytes away"),
        (2, -4, "1 words in front of C were overwritten, the nearest 4 bytes away"),
        (0, 4 * 4 * 4, "1 words behind A were overwritten, the nearest 0 bytes away"),
        (1, -8, "1 words in front of B were overwritten, the nearest 8 bytes away"),
        (0, 0, "wrote to A, which is an input"),
        (1, 60, "wrote to B, which is an input"),
    ],
)
def test_a_write_beyond_its_output_is_named(
    cuda: Any, position: int, offset_bytes: int, words: str
) -> None:
    with pytest.raises(LaunchError) as raised:
        on_fake(cuda, writes(position, offset_bytes))
    assert words in str(raised.value)


def test_a_workspace_is_zeros_between_guard_bands(cuda: Any) -> None:
    held = []

    def kernel(launch: Any) -> None:
        launch.cuda.product(launch)
        workspace = launch.cuda.memory(int(launch.arguments[8]))
        held.append(workspace[:12].tolist())
        workspace[12:16] = 1

    with pytest.raises(LaunchError, match="1 words behind the workspace were overwritten"):
        on_fake(cuda, kernel, replace(TASK, code=replace(CODE, workspace_bytes=12)))
    assert held[0] == [0] * 12


@pytest.mark.parametrize("variant", LADDER, ids=lambda variant: variant.name)
def test_what_a_rung_takes_can_be_handed_to_a_child(variant: Variant) -> None:
    shape = variant.executed(Gemm(m=256, n=256, k=64))
    code = replace(
        CODE,
        maps=maps_of(variant, variant.defaults, shape),
        workspace_bytes=variant.workspace(variant.defaults, shape),
    )
    task = replace(TASK, code=code)
    assert pickle.loads(pickle.dumps(task)) == task


def test_a_fault_is_an_error(cuda: Any) -> None:
    with pytest.raises(LaunchError, match="illegal memory access"):
        on_fake(cuda, lambda launch: launch.cuda.fault())


def test_no_kernel_reads_zeros_around_its_buffers(cuda: Any) -> None:
    seen: list[float] = []

    def kernel(launch: Any) -> None:
        seen.append(launch.cuda.memory(int(launch.arguments[2]) - 4).view(np.float32)[0])

    on_fake(cuda, kernel)
    assert np.isnan(seen).all()


def test_damage_that_comes_later_is_found_too(cuda: Any) -> None:
    with Contender(TASK) as held:
        held.product()
        held.raise_damage()
        cuda.kernels["product"] = writes(2, -4)
        held.sample(True)
        with pytest.raises(LaunchError, match="in front of C were overwritten"):
            held.raise_damage()


def test_nothing_is_left_of_one_that_cannot_be_prepared(cuda: Any) -> None:
    before = cuda.free_bytes = 1000
    with pytest.raises(InputError, match="do not fit on the GPU"), Contender(TASK):
        pass
    assert cuda.free_bytes == before
    assert cuda.depth == 0


def test_its_memory_is_free_when_nothing_more_is_asked(cuda: Any) -> None:
    before = cuda.free_bytes
    with Contender(TASK) as held:
        held.product()
        assert cuda.free_bytes < before - 2 * L2_BYTES
        held.dismiss()
        assert cuda.free_bytes == before - 2 * L2_BYTES  # what flushes L2 goes with the context
    assert cuda.free_bytes == before
