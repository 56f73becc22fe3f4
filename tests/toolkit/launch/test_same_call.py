"""`simulate` and `run` take the same call and give the same kind of result, or of error."""

import re
from dataclasses import replace

import numpy as np
import pytest

from analysis.errors import CompileError, InputError, LaunchError
from tests.refusals import refusal
from toolkit import simulate
from toolkit.machine_code.kernel import Kernel

SAXPY = """
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n)
{
    extern __shared__ float staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        staged[threadIdx.x] = x[i];
        y[i] += a * staged[threadIdx.x];
    }
}
"""

# A matrix product with guards, shared memory and a barrier, at a size that is no multiple of 16.
PRODUCT = """
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


@pytest.mark.parametrize("dynamic_shared_bytes", [1024, 60_000])  # more than 48 KB is asked for
def test_outputs_are_the_arrays_after_the_launch(machine, dynamic_shared_bytes):
    rng = np.random.default_rng()
    x, y = (rng.random(1000, dtype=np.float32) for _ in range(2))
    execution = machine.call(
        SAXPY,
        "saxpy",
        grid=(4,),
        block=(256,),
        dynamic_shared_bytes=dynamic_shared_bytes,
        arguments=[y, x, np.float32(2), np.int32(1000)],
    )
    np.testing.assert_allclose(execution.outputs[0], y + 2 * x, rtol=1e-6)
    np.testing.assert_array_equal(execution.outputs[1], x)
    assert execution.resources.registers_per_thread > 0


def refusal_of(machine, kind, source, kernel, *arguments):
    return refusal(
        kind, machine.call, source, kernel, grid=(1,), block=(1,), arguments=list(arguments)
    )


def test_source_that_does_not_compile_says_where(machine):
    source = '\nextern "C" __global__ void f() {\n nothing(); }'
    said = refusal_of(machine, CompileError, source, "f")
    if machine.is_silicon:
        assert re.search("line 3: does not compile: .*undefined", said)
    else:
        assert said == 'kernel.cu, line 3: identifier "nothing" is undefined'


def test_a_kernel_that_is_not_there_is_named(machine):
    said = refusal_of(machine, InputError, 'extern "C" __global__ void f() {}', "g")
    assert ("no kernel 'g'" if machine.is_silicon else "unknown kernel 'g'") in said


def test_an_illegal_access_leaves_the_next_launch_alone(machine):
    source = 'extern "C" __global__ void f(float* p, long i) { p[i] = 1.0f; }'
    said = refusal_of(machine, LaunchError, source, "f", np.zeros(1, np.float32), np.int64(1 << 40))
    assert said.startswith("f: ")
    assert ("illegal" if machine.is_silicon else "global write of 4 bytes out of bounds") in said
    said = refusal_of(machine, LaunchError, source, "f", np.zeros(1, np.float32), np.int64(1))
    assert ("1 words behind" if machine.is_silicon else "right after the end of") in said
    assert " argument 0 `p`" in said
    right = [np.zeros(1, np.float32), np.int64(0)]
    assert machine.call(source, "f", grid=(1,), block=(1,), arguments=right).outputs[0] == 1


@pytest.fixture
def launch():
    n = 101
    rng = np.random.default_rng()
    matrices = [rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(3)]
    return {
        "grid": (7, 7),
        "block": (16, 16),
        "arguments": [*matrices, np.int32(n), np.float32(-1.25)],
    }


def test_what_one_machine_ran_can_be_handed_to_the_simulator(machine, launch):
    first = machine.call(PRODUCT, "product", **launch)
    a, b, c = (matrix.astype(np.float64) for matrix in launch["arguments"][:3])
    np.testing.assert_allclose(first.outputs[2], -1.25 * (a @ b) + c, atol=1e-4)
    again = simulate(first.cubin, **launch, predict=False)
    for ours, theirs in zip(again.outputs, first.outputs, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert again.resources == first.resources
    assert again.lines  # -lineinfo is nvcc's option too
    from_bytes = simulate(
        first.cubin.image, "product", **launch, predict=False
    )  # the bytes alone are enough
    assert from_bytes.outputs[2].tobytes() == first.outputs[2].tobytes()
    found = Kernel.from_image(first.cubin.image, "product").resources
    assert replace(found, compiler=first.resources.compiler) == first.resources
