"""What is read from a cubin, against what ptxas prints when it makes one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from toolkit import compile as compilation
from toolkit.cubin import KernelSizes, kernel_sizes, kernel_symbols

# Uses little; uses static shared memory; keeps 64 values alive in at most 64 registers;
# indexes an array by a value that only the launch knows, which needs local memory.
SOURCE = """
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }

extern "C" __global__ void shared(float* x) {
    __shared__ float tile[100];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[99 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(1024, 1) spilling(float* x) {
    float value[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) value[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; i++) x[(63 - i) * 1024 + threadIdx.x] = value[i] * value[(i + 7) % 64];
}

extern "C" __global__ void indexed(float* x, int n) {
    float value[40];
    for (int i = 0; i < 40; i++) value[i] = x[i];
    for (int i = 0; i < n; i++) value[i * n % 40] += 1.0f;
    x[n] = value[n];
}
"""
KERNELS = ["indexed", "plain", "shared", "spilling"]
CAPABILITIES = [75, 80, 86, 90, 100, 120]


def printed_sizes(log: str) -> dict[str, KernelSizes]:
    """What `ptxas -v` prints of each kernel."""
    sizes = {}
    for part in log.split("Compiling entry function '")[1:]:

        def number(pattern: str, part: str = part) -> int:
            match = re.search(pattern, part)
            return int(match[1]) if match else 0

        sizes[part.split("'")[0]] = KernelSizes(
            registers_per_thread=number(r"Used (\d+) registers"),
            static_shared_bytes=number(r"(\d+) bytes smem"),
            local_bytes=number(r"(\d+) bytes stack frame"),
        )
    return sizes


def read_sizes(image: bytes, capability: int) -> dict[str, KernelSizes]:
    symbols = kernel_symbols(image)
    return {symbol: kernel_sizes(image, symbol, capability=capability) for symbol in symbols}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_sizes_are_those_that_ptxas_prints_inside_nvrtc(capability: int) -> None:
    request = compilation._Request(
        source=SOURCE,
        name="my.cu",
        kernel="",
        options=(f"--gpu-architecture=sm_{capability}", "--ptxas-options=-v"),
        compiler="",
    )
    with compilation._program(request) as program:
        compilation._run_compiler(program, request)
        image, log = compilation._image(program), compilation._log(program)
    printed = printed_sizes(log)
    assert sorted(printed) == KERNELS
    assert read_sizes(image, capability) == printed
    assert printed["shared"].static_shared_bytes == 400  # 100 floats
    assert printed["indexed"].local_bytes == 160  # 40 floats


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc to compare with")
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_sizes_are_those_that_ptxas_prints_inside_nvcc(capability: int, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    command = f"nvcc -cubin -arch=sm_{capability} -Xptxas -v -lineinfo -o k.cubin k.cu".split()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this nvcc does not make sm_{capability}")
    image = (tmp_path / "k.cubin").read_bytes()
    assert read_sizes(image, capability) == printed_sizes(done.stderr)


def test_a_device_function_is_no_kernel() -> None:
    source = SOURCE + "__device__ __noinline__ void function(float* x) { *x = 1.0f; }\n"
    options = ("-rdc=true",)  # keeps functions that no kernel calls
    cubin = compilation.compile_cubin(
        source, name="my.cu", kernel="plain", arch="sm_86", options=options
    )
    assert b".text._Z8functionPf" in cubin.image
    assert sorted(kernel_symbols(cubin.image)) == KERNELS


def test_a_kernel_that_is_not_there_is_an_error() -> None:
    image = compilation.compile_cubin(SOURCE, name="my.cu", kernel="plain", arch="sm_86").image
    with pytest.raises(KeyError):
        kernel_sizes(image, "absent", capability=86)
