"""Times of launches of which a few blocks, or the first steps of blocks, are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.geometry import Geometry
from toolkit import simulate
from toolkit.execution import replayed_streams
from toolkit.execution.assumed_accesses import _step_around
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import Execution
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel

H200 = find_device("h200")
i32, f32 = np.int32, np.float32
ACCESSES = """
extern "C" __global__ void gather(float *out, const float *in, const int *from) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[from[i]];
}
extern "C" __global__ void scatter(float *out, const float *in, const int *to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[to[i]] = in[i];
}
extern "C" __global__ void look_up(float *out, const float *table, const int *from) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = table[from[i] & 1023];
}
extern "C" __global__ void columns(float *out, const int *at, int pixels, int depth) {
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < depth * pixels; i += step) {
        const int pixel = at[i % pixels], k = i / pixels;
        out[depth * pixel + k] = k;
    }
}"""
PAIRS = """
extern "C" __global__ void distances(float *out, const float *data, int rows, int columns) {
    const int a = blockIdx.x * blockDim.x + threadIdx.x;
    for (int b = a + 1; b < columns; b++) {
        float sum = 0;
        for (int r = 0; r < rows; r++) sum += data[r * columns + a] * data[r * columns + b];
        out[a * columns + b] = sum;
    }
}"""


def _kernel(name: str) -> Kernel:
    image = compile_cubin(ACCESSES, name="accesses.cu", kernel=name, arch="sm_90").image
    return Kernel.from_image(image, name)


def _found(name: str, arguments: Sequence[Any], limit_s: float) -> Execution:
    simulator = Simulator(device=H200, blocks="representative", limit_s=limit_s, outputs=False)
    return simulator.run(_kernel(name), Geometry.of(2048, 256), arguments)


@pytest.mark.parametrize(
    ("blocks", "lines", "step"),
    [
        ([0, 1, 2, 7, 8], [5, 45, 85, 85, 25], 40),  # around 100 lines
        ([0, 1, 2, 7, 8], [5, 12, 90, 33, 61], None),  # places that nothing foretells
        ([0, 2, 4, 6, 8], [0, 2, 4, 6, 8], None),  # no neighbours, which tell the step
    ],
)
def test_places_that_move_on_around_an_array(
    blocks: list[int], lines: list[int], step: float | None
) -> None:
    assert _step_around(np.array(blocks), np.array(lines), 100) == step


@pytest.mark.exhaustive  # 15 s
def test_blocks_of_a_grid_stride_loop_fill_the_same_sectors_in_turn() -> None:
    """A sector has eight values, which eight blocks store at nearly the same time."""
    pixels, depth = 1 << 15, 512
    swapped = np.arange(pixels, dtype=i32) ^ (np.random.default_rng(3).random(pixels) < 0.5)
    arguments = [np.zeros(depth * pixels, f32), swapped]
    few, every = (
        Simulator(device=H200, blocks="representative", limit_s=limit_s, outputs=False).run(
            _kernel("columns"), Geometry.of(1056, 256), [*arguments, i32(pixels), i32(depth)]
        )
        for limit_s in (0.0, 1e3)
    )
    assert few.predicted is not None
    assert every.predicted is not None
    assert "estimates from" in few.uncertainty
    assert few.predicted.time_s == pytest.approx(every.predicted.time_s, rel=0.1)


@pytest.mark.parametrize("name", ["gather", "scatter", "look_up"])
def test_a_launch_whose_accesses_depend_on_data_has_a_time_without_all_its_blocks(
    name: str,
) -> None:
    g, n = np.random.default_rng(3), 2048 * 256
    arguments = [np.zeros(n, f32), g.random(n, f32), g.permutation(n).astype(i32)]
    few, every = (_found(name, arguments, limit_s) for limit_s in (0.0, 1e3))
    assert every.uncertainty == ""
    assert few.predicted is not None
    assert every.predicted is not None
    assert "estimates from" in few.uncertainty
    assert few.predicted.time_s == pytest.approx(every.predicted.time_s, rel=0.1)


def test_blocks_that_are_too_long_are_replayed_in_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> Execution:
        n = 128
        arguments = [np.zeros(n * n, f32), np.ones(n * n, f32), i32(n), i32(n)]
        return simulate(PAIRS, grid=1, block=n, arguments=arguments, device="h200")

    whole = found().predicted
    monkeypatch.setattr(replayed_streams, "MOST_STEPS", 20_000)
    monkeypatch.setattr(replayed_streams, "CUT_STEPS", 20_000)
    cut = found().predicted
    assert whole is not None
    assert cut is not None
    assert " windows" not in whole.basis
    steps = re.search(r" with ([\d,]+) and ([\d,]+) of .* in 8 windows", cut.basis)
    assert steps is not None
    half, most = (int(number.replace(",", "")) for number in steps.groups())
    assert most == pytest.approx(2 * half, rel=0.02)
    assert cut.time_s == pytest.approx(whole.time_s, rel=0.25)
