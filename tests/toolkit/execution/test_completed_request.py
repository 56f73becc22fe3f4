"""Launches from Python that the caller leaves open."""

import numpy as np

from analysis.errors import InputError
from tests.refusals import refusal
from toolkit import check, simulate

SCALE = """
template <int N> __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * N;
}
#ifndef __CUDACC_RTC__
int main(int argc, char **argv) {
    const int n = SIZE;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale<3><<<(n + 63) / 64, 64>>>(x, y, n);
}
#endif
"""
KNOWN, OPEN = SCALE.replace("SIZE", "1000"), SCALE.replace("SIZE", "atoi(argv[1])")


def test_the_launch_of_host_code_is_taken():
    found = simulate(KNOWN, seed=1)
    assert (found.cubin.name, found.geometry.grid) == ("scale<3>", (16, 1, 1))
    assert found.notes[0] == (
        "launched as in line 12: grid 16, block 64, x f32[1000], y f32[1000], n = 1000"
    )
    x, y = found.outputs
    assert np.array_equal(y, 3 * x)
    assert len(x) == 1000
    assert "guessed" not in found.verdict


def test_arguments_may_be_given_by_name():
    x = np.ones(1000, np.float32)
    found = simulate(KNOWN, arguments={"x": x}, block=128)
    assert found.geometry.block == (128, 1, 1)
    assert np.array_equal(found.outputs[1], 3 * x)
    assert simulate(OPEN, arguments={"n": np.int32(70)}).geometry.grid == (2, 1, 1)


def test_what_nobody_says_is_named():
    assert refusal(InputError, simulate, OPEN) == (
        "kernel.cu: line 12 launches scale<3> with values that are known only at run time: "
        "give int n: arguments={'n': ...}"
    )
    assert "unknown parameter 'm'" in refusal(InputError, simulate, KNOWN, arguments={"m": 1.0})


def test_guessed_sizes_are_said():
    text = "__global__ void k(float *x) { x[2 * threadIdx.x] = 1; }"
    found = simulate(text, grid=1, block=32)
    assert len(found.outputs[0]) == 63
    assert "Sizes of arrays are guessed." in found.verdict.splitlines()[0]
    assert found.notes[0] == "sizes guessed from addresses and guards: x f32[63]"


def test_a_check_takes_sizes_of_host_code():
    found = check(KNOWN)
    assert not found.findings
    assert found.notes[0].startswith("launched as in line 12: ")


def test_remedies_repeat_the_launch():
    call = simulate(KNOWN, seed=1).call
    assert (call["kernel"], call["grid"], call["block"]) == ("scale<3>", (16, 1, 1), (64, 1, 1))
    assert len(call["arguments"]) == 3
