"""Clocks for which a global load that hits L1 occupies an SM's load/store unit, by its addresses.

    python -m benchmarks.global_load_cycles > tests/analysis/recorded/global_loads_sm_90.json
    python -m benchmarks.global_load_cycles tags > tests/analysis/recorded/tag_banks_sm_90.json

One block of 32 warps chases pointers that point to themselves, so that every load hits L1 and the
unit is never idle: the cost of a load is clocks over loads. Needs a GPU. A test compares the rule
in `analysis.coalescing.global_cycles` with the recording. With `tags`, lanes read random lines of
256 MiB, each lane in its own data bank: only the time of L1's tags is left, by addresses as the
hardware sees them (`tests/analysis/tag_banks.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from toolkit.gpu.context import Gpu
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.gpu.nvcc import nvcc_version
from validation import recordings

ROUNDS = 2048  # the warps start one after another: long enough for that not to matter
UNROLLED = 4
WARPS = 32
WORDS_PER_LINE, LINE_BITS = 32, 21
BUFFER_WORDS = 33_000  # 132 KB: every pattern stays inside L1
SOURCE = """
extern "C" __global__ void __launch_bounds__(1024)
chase(const int* base, const int* offsets, long long* clocks, int* sink, int rounds)
{
    const int* p = base + offsets[threadIdx.x % 32];
    int4 v = {};
    p += *p;  // all zeros: the address never changes, and the compiler does not know
    __syncthreads();
    const long long start = clock64();
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#if WIDTH == 4
            asm volatile("ld.global.ca.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
#else
            asm volatile("ld.global.ca.b32 %0, [%1];" : "=r"(v.x) : "l"(p));
#endif
            p += v.x + v.y + v.z + v.w;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        clocks[0] = clock64() - start;
        clocks[1] = (long long)base;
    }
    sink[threadIdx.x] = int(p - base);
}
"""


def patterns(width: int) -> Iterator[tuple[str, np.ndarray]]:
    """(name, first word of every lane): strides, rows of a matrix, and random addresses."""
    lane = np.arange(32)
    for stride in (0, 1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 24, 31, 32, 33, 40, 48, 64, 65, 96, 128,
                   129, 160, 255, 256, 257, 333, 512, 1000, 1023):  # fmt: skip
        if 32 * stride * width < BUFFER_WORDS:
            yield f"stride {stride * width}", lane * stride * width
    for rows in (2, 4, 8, 16):
        row, column = np.divmod(lane, 32 // rows)
        for pitch in (32, 36, 40, 48, 64, 68, 72, 100, 128, 132, 160, 512, 1000, 1024, 1028):
            yield f"{rows} rows of pitch {pitch}", row * pitch + column * width
    rng = np.random.default_rng(1)
    for index in range(24):
        span = (64, 128, 256, 512, 1024, 4096, 16384, 32768)[index % 8]
        yield f"random in {span}", rng.integers(0, span // width, 32) * width


def cycles(gpu: Gpu, width: int, offsets: np.ndarray) -> float:
    """Clocks per load of one SM, the least of three runs."""
    return at_address(gpu, width, offsets, np.zeros(BUFFER_WORDS, np.int32))[0]


def at_address(
    gpu: Gpu, width: int, offsets: np.ndarray, zeros: np.ndarray, *, runs: int = 3
) -> tuple[float, int]:
    """Clocks per load of one SM, the least of some runs, and where the buffer was in the last."""
    launch = GpuLaunch(
        source=SOURCE,
        name="chase.cu",
        kernel="chase",
        geometry=Geometry(grid=(1, 1, 1), block=(32 * WARPS, 1, 1)),
        arguments=[
            zeros,
            offsets.astype(np.int32),
            np.zeros(2, np.int64),
            np.zeros(32 * WARPS, np.int32),
            np.int32(ROUNDS),
        ],
        defines={"WIDTH": width},
    )
    found = []
    for _ in range(runs):
        with OnGpu(task_of(launch), gpu) as held:
            found.append(held.execution().outputs[2])
    clocks = min(int(one[0]) for one in found)
    return clocks / (ROUNDS * UNROLLED * WARPS), int(found[-1][1])


def of_tags(gpu: Gpu) -> Iterator[Mapping[str, Any]]:
    """The cost of random lines; a buffer may be elsewhere in each run."""
    zeros = np.zeros(WORDS_PER_LINE << LINE_BITS, np.int32)
    for name, offsets in of_lines():
        measured, base = at_address(gpu, 1, offsets, zeros, runs=1)
        addresses = (base + 4 * offsets).tolist()
        yield {"pattern": name, "cycles": round(measured, 2), "addresses": addresses}


def of_patterns(gpu: Gpu) -> Iterator[Mapping[str, Any]]:
    for width in (1, 4):
        for name, offsets in patterns(width):
            yield {
                "pattern": name,
                "width_bytes": 4 * width,
                "cycles": round(cycles(gpu, width, offsets), 2),
                "addresses": (4 * offsets).tolist(),
            }


def of_lines() -> Iterator[tuple[str, np.ndarray]]:
    """(name, first word of every lane): lines below a power of two, and of two far groups."""
    rng, lane = np.random.default_rng(5), np.arange(32)
    for bits in range(5, LINE_BITS + 1):
        for _ in range(5):
            lines = rng.integers(0, 1 << bits, 32)
            yield f"lines below 2^{bits}", lines * WORDS_PER_LINE + lane
    for bit in range(5, LINE_BITS):
        for _ in range(3):
            lines = rng.integers(0, 32, 32) + (rng.integers(0, 2, 32) << bit)
            yield f"lines that differ in bit {bit}", lines * WORDS_PER_LINE + lane


def main() -> None:
    measure = of_tags if sys.argv[1:] == ["tags"] else of_patterns
    with Gpu() as gpu:
        about = {"device": gpu.device.name, "compiler": nvcc_version()}
        print(recordings.text_of({**about, "loads": list(measure(gpu))}), end="")


if __name__ == "__main__":
    main()
