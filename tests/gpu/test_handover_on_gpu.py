"""Launches of PyCUDA, handed to the simulator through the public functions."""

from dataclasses import replace

import numpy as np
import pytest

from toolkit import run, simulate
from toolkit.machine_code.kernel import Kernel

pytestmark = pytest.mark.gpu

# A matrix product with guards, shared memory and a barrier, at a size that is no multiple of 16.
SOURCE = """
extern "C" __global__ void product(const float *a, const float *b, float *c, int n, float alpha) {
    __shared__ float row[16][16], column[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        row[threadIdx.y][threadIdx.x] =
            y < n && k + threadIdx.x < n ? a[y * n + k + threadIdx.x] : 0;
        column[threadIdx.y][threadIdx.x] =
            x < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + x] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += row[threadIdx.y][i] * column[i][threadIdx.x];
        __syncthreads();
    }
    if (x < n && y < n) c[y * n + x] = alpha * sum + c[y * n + x];
}
"""


@pytest.fixture(scope="module")
def launch():
    n = 101
    rng = np.random.default_rng()
    matrices = [rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(3)]
    return {
        "grid": (7, 7),
        "block": (16, 16),
        "arguments": [*matrices, np.int32(n), np.float32(-1.25)],
    }


@pytest.fixture(scope="module")
def measured(launch):
    return run(SOURCE, "product", **launch)


def test_the_simulator_computes_the_bits_of_silicon(launch, measured):
    simulated = simulate(measured.cubin, **launch)
    for ours, theirs in zip(simulated.outputs, measured.outputs, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert simulated.resources == measured.resources
    assert simulated.lines  # -lineinfo is nvcc's option too


def test_the_bytes_alone_are_enough(launch, measured):
    simulated = simulate(measured.cubin.image, "product", **launch)
    assert simulated.outputs[2].tobytes() == measured.outputs[2].tobytes()


def test_sizes_read_from_the_machine_code_are_the_drivers(measured):
    found = Kernel.from_image(measured.cubin.image, "product").resources
    assert replace(found, compiler=measured.resources.compiler) == measured.resources
