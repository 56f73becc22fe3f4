"""How fast kernels are executed on the CPU, every block and every counter, beside plain libraries.

    python -m benchmarks.simulator_speed [--repeats 3]

Per kernel: seconds of `simulate(..., blocks="all")` with a compiled kernel in the cache, thread
instructions per second, and how many times longer that is than NumPy or SciPy need for the same
result on the same cores, timed in the same run. Medians; the process's peak memory last.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.linalg.blas import sgemm

from analysis.problem import parse_shape
from kernels import Variant, find
from toolkit import simulate
from toolkit.launch.launch import Execution
from toolkit.rungs.arguments import rung_arguments
from toolkit.sass.machine import available_cores

TRANSPOSE = """
extern "C" __global__ void transpose(float *out, const float *in, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""


def rung(name: str, size: str) -> tuple[Callable[[], Execution], Callable[[], object]]:
    """A rung of the ladder at a shape, and the same product by BLAS."""
    variant, problem = find(name), parse_shape(size)
    assert isinstance(variant, Variant)
    rng = np.random.default_rng()
    a = rng.random((problem.m, problem.k), dtype=np.float32)
    b = rng.random((problem.k, problem.n), dtype=np.float32)
    c = np.full((problem.m, problem.n), np.nan, dtype=np.float32)
    geometry = variant.geometry(variant.defaults, problem)
    arguments = rung_arguments(variant, variant.defaults, problem, (a, b, c))

    def simulated() -> Execution:
        return simulate(
            variant.source,
            variant.entry,
            grid=geometry.grid,
            block=geometry.block,
            arguments=arguments,
            defines=variant.macros(variant.defaults),
            arch="sm_90",
        )

    return simulated, lambda: sgemm(1.0, b.T, a.T)


def transpose(n: int) -> tuple[Callable[[], Execution], Callable[[], object]]:
    matrix = np.random.default_rng().random((n, n), dtype=np.float32)

    def simulated() -> Execution:
        return simulate(
            TRANSPOSE,
            "transpose",
            grid=(n // 32, n // 32),
            block=(32, 8),
            arguments=[np.empty_like(matrix), matrix, np.int32(n)],
            arch="sm_90",
        )

    return simulated, lambda: np.ascontiguousarray(matrix.T)


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    cases = {
        "vectorized, 1024³": (*rung("vectorized", "1024"), "BLAS sgemm"),
        "coarsened-2d, 1024³": (*rung("coarsened-2d", "1024"), "BLAS sgemm"),
        "tiled, 1024³": (*rung("tiled", "1024"), "BLAS sgemm"),
        "naive-coalesced, 1024³": (*rung("naive-coalesced", "1024"), "BLAS sgemm"),
        "naive-uncoalesced, 1024³": (*rung("naive-uncoalesced", "1024"), "BLAS sgemm"),
        "transpose, 4096²": (*transpose(4096), "NumPy"),
    }
    print(f"{available_cores()} cores, sm_90, medians of {repeats}")
    print(f"{'kernel':26}{'s':>7}{'G thread instructions/s':>26}   times longer than")
    for name, (simulated, peer, peer_name) in cases.items():
        counters = simulated().counters  # warm: compiled, translated
        mine, theirs = [], []
        for _ in range(repeats):
            mine.append(seconds(simulated))
            theirs.append(seconds(peer))
        rate = counters["smsp__thread_inst_executed.sum"] / median(mine) / 1e9
        ratio = median(mine) / median(theirs)
        print(f"{name:26}{median(mine):7.2f}{rate:26.2f}   {ratio:,.0f} {peer_name}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {peak / 2**20 if sys.platform != 'darwin' else peak / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
