"""The compiler nvcc: the untouched file, and the same machine code without host code."""

import shutil

import numpy as np
import pytest

from analysis.errors import CompileError, InputError, UnavailableError, UnknownNameError
from toolkit import simulate
from toolkit.machine_code import nvcc
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.device_side import device_side
from validation.public_sources.same_code import differences

needs_nvcc = pytest.mark.skipif(
    not (shutil.which("nvcc") and shutil.which("g++")), reason="no nvcc or no g++ here"
)

SOURCE = """#include <vector>
#include <algorithm>
#include "step.h"
__constant__ float weights[4];
struct Timer { std::vector<double> laps; void lap() { laps.push_back(0); } };
template <typename T> T clamp(T x, T low, T high) { return std::max(low, std::min(x, high)); }
__device__ __noinline__ float weighted(float x, int k) { return x * weights[k & 3] + STEP; }
__global__ void first(float *x) { x[threadIdx.x] = weighted(x[threadIdx.x], threadIdx.x); }
template <int N> __global__ void second(float *x) {
    __shared__ float tile[N];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = weighted(tile[N - 1 - threadIdx.x], N);
}
int main() {
    Timer timer;
    first<<<1, 32>>>(nullptr);
    second<64><<<1, 64>>>(nullptr);
    return clamp(3, 1, 2);
}
"""
STEP = "#pragma once\n#include <iostream>\n#define STEP 0.5f\nvoid show() { std::cout << STEP; }\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "step.h").write_text(STEP, encoding="utf-8")
    return tmp_path


def compiled(source, folder=None, options=(), kernel="first"):
    options = ("-lineinfo", "--compiler=nvcc", *options)
    return compile_cubin(
        source, name="my.cu", kernel=kernel, arch="sm_90", options=options, folder=folder
    )


@pytest.mark.exhaustive  # 2 s
@needs_nvcc
def test_machine_code_is_the_same_without_host_code(folder):
    untouched, _ = nvcc.compile_with_nvcc(
        SOURCE, name="my.cu", folder=folder, arch="sm_90", options=["-lineinfo"]
    )
    side = device_side(SOURCE, name="my.cu", kernel=None, folder=folder, folders=[])
    assert len(side.left_out) == 6  # 2 includes, clamp, main; show and an include of step.h
    found = differences(untouched, side, arch="sm_90", options=["-lineinfo"])
    assert found == {"_Z5firstPf": "equal", "_Z6secondILi64EEvPf": "equal"}


@needs_nvcc
def test_nvcc_compiles_the_untouched_file(folder):
    found = compiled(SOURCE, folder)
    assert found.left_out == ()
    assert found.compiler.startswith("nvcc ")
    assert {(line.file, line.line) for line in found.lines.values()} >= {("my.cu", 8)}
    x = np.ones(32, np.float32)
    (folder / "my.cu").write_text(SOURCE, encoding="utf-8")
    by = {
        compiler: simulate(
            folder / "my.cu",
            "first",
            grid=1,
            block=32,
            arguments=[x],
            predict=False,
            compiler=compiler,
        )
        for compiler in ("nvrtc", "nvcc")
    }
    assert np.array_equal(by["nvcc"].outputs[0], by["nvrtc"].outputs[0])
    assert by["nvcc"].resources.compiler.startswith("nvcc ")


@needs_nvcc
def test_mistakes_are_one_line():
    for source, message in {
        "__global__ void k() { q = 1; r = 2; }": 'my.cu, line 1: identifier "q" is undefined '
        "(and 1 more error)",
        '\n#include "nope.h"\n': "my.cu, line 2: there is no nope.h: name its folder: "
        "--option -IFOLDER",
    }.items():
        with pytest.raises(CompileError) as caught:
            compiled(source, kernel="k")
        assert str(caught.value) == message
    with pytest.raises(InputError, match=r"-rdc=true: nvcc then makes no cubin"):
        compiled("__global__ void k() {}", options=["-rdc=true"], kernel="k")


def test_a_compiler_that_is_missing_or_unknown_is_named(monkeypatch):
    monkeypatch.setattr(nvcc, "command_path", lambda *names: None)
    with pytest.raises(UnavailableError, match=r"nvcc is not installed: pip install"):
        compiled("__global__ void k() {}", kernel="k")
    with pytest.raises(UnknownNameError, match=r"unknown compiler 'nvc': did you mean 'nvcc'"):
        compile_cubin(
            "__global__ void k() {}",
            name="my.cu",
            kernel="k",
            arch="sm_90",
            options=["--compiler=nvc"],
        )


@needs_nvcc
def test_a_host_compiler_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(nvcc.shutil, "which", lambda name: None)
    monkeypatch.setattr(nvcc, "path_of_nvcc", lambda: "nvcc")
    with pytest.raises(UnavailableError, match=r"there is no g\+\+: install it"):
        compiled("__global__ void k() {}", kernel="k")
