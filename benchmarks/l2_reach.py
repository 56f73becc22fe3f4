"""Constants of the model of traffic, counted by ncu: data that L2 keeps, SMs that share a fetch.

    python -m benchmarks.l2_reach     # needs a GPU and Nsight Compute; a minute

The caches are flushed before each launch. Counted are: the fraction of data read four times that
comes from DRAM again (each part by the same SM, or by another one each time); the fraction of
written data that reaches DRAM before the launch ends (alone, and followed by reads); and the
requests at L2 if one to all SMs of a GPC read the same data at once. docs/experiments.md has the
results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.coalescing import SECTOR_BYTES
from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from toolkit.gpu.context import Gpu
from toolkit.gpu.nsight_compute.replay_process import profiled
from validation.counters import counting

MIB, QUAD_BYTES = 2**20, 16
READS, WRITES = "dram__bytes_read.sum", "dram__bytes_write.sum"
ASKED = "lts__t_sectors_srcunit_tex_op_read.sum"
ROUNDS = 4
ELSEWHERE = 37  # SMs further each time
MOST_MIB = 80
SHARED_MIB = 1
WHOLE_SM_BYTES = 160 * 2**10  # of shared memory, so that an SM has room for one block
MODULE = "benchmarks.l2_reach"
SOURCE = """
__device__ float sum_of(const float4* from, size_t quads)
{
    float sum = 0;
    for (size_t i = threadIdx.x; i < quads; i += blockDim.x) {
        const float4 one = __ldcg(from + i);
        sum += one.x + one.w;
    }
    return sum;
}

extern "C" __global__ void read_in_turn(
    const float4* from, unsigned long long quads, int rounds, int step, float* out)
{
    const size_t part = quads / gridDim.x;
    float sum = 0;
    for (int round = 0; round < rounds; round++)
        sum += sum_of(from + (blockIdx.x + round * step) % gridDim.x * part, part);
    if (sum == 0.5f) *out = sum;
}

extern "C" __global__ void write_then_read(
    float4* to, unsigned long long written, const float4* from, unsigned long long read, float* out)
{
    const size_t part = written / gridDim.x;
    for (size_t i = threadIdx.x; i < part; i += blockDim.x)
        to[blockIdx.x * part + i] = make_float4(1, 2, 3, 4);
    const size_t others = read / gridDim.x;
    if (sum_of(from + blockIdx.x * others, others) == 0.5f) *out = 1;
}

extern "C" __global__ void read_together(
    const float4* from, int quads, const int* is_chosen, int* arrived, int all, float* out)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (!is_chosen[sm]) return;
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < all) {}
    }
    float sum = 0;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        __syncthreads();
        sum += __ldcg(from + i).x;
    }
    if (sum == 0.5f) *out = sum;
}
"""


@dataclass(frozen=True)
class Pattern:
    """A launch: what it is called, and what its kernel is given."""

    kernel: str
    numbers: tuple[int, ...]


def patterns() -> Iterator[Pattern]:
    """All but those that read together: sizes in MiB."""
    for mib in range(24, 66, 2):
        for step in (0, ELSEWHERE):
            yield Pattern("read_in_turn", (mib, step))
    for mib in (*range(16, 60, 4), MOST_MIB):
        yield Pattern("write_then_read", (mib, 0))
    for mib in range(12, 60, 4):
        yield Pattern("write_then_read", (8, mib))


# Under ncu.


def launch_all(choices: Sequence[Sequence[int]]) -> None:
    """Launch every pattern or, where there are choices of SMs, what they read together."""
    with Gpu() as gpu:
        sms = gpu.device.sm_count
        geometry = Geometry(
            grid=(sms, 1, 1), block=(1024, 1, 1), dynamic_shared_bytes=WHOLE_SM_BYTES
        )
        first, second = (gpu.allocate(MOST_MIB * MIB) for _ in range(2))
        out = gpu.allocate(QUAD_BYTES)

        def launch(kernel: str, *arguments: object) -> None:
            loaded = gpu.load(SOURCE, kernel, name="l2_reach.cu")
            ready = loaded.prepared(geometry, list(arguments))
            with gpu.launch_errors(kernel), profiled(gpu):
                ready()

        def quads(mib: int) -> np.uint64:
            return np.uint64(mib * MIB // QUAD_BYTES)

        for pattern in () if choices else patterns():
            one, other = pattern.numbers
            if pattern.kernel == "read_in_turn":
                launch(pattern.kernel, first, quads(one), np.int32(ROUNDS), np.int32(other), out)
            else:
                launch(pattern.kernel, first, quads(one), second, quads(other), out)
        for chosen in choices:
            is_chosen = gpu.upload(np.isin(np.arange(sms), chosen).astype(np.int32))
            arrived, all_of_them = gpu.upload(np.zeros(1, np.int32)), np.int32(len(chosen))
            few = np.int32(quads(SHARED_MIB))
            launch("read_together", first, few, is_chosen, arrived, all_of_them, out)


def counted(choices: Sequence[Sequence[int]] = ()) -> list[counting.Counters]:
    """Counters of ncu for each of these launches, run by this program as its child."""
    text = json.dumps([list(chosen) for chosen in choices])
    launches = len(choices) or len(list(patterns()))
    metrics = READS, WRITES, ASKED
    found = counting.counted(metrics, MODULE, "--choices", text, launches=launches)
    return [counters for _, counters in found]


# What is printed.


def print_reach() -> None:
    found = dict(zip(patterns(), counted(), strict=True))
    print("\nread four times: the share of what is read again that comes from DRAM")
    print("  MiB  by the same SM  by others")
    for mib in sorted({p.numbers[0] for p in found if p.kernel == "read_in_turn"}):
        shares = [
            (found[Pattern("read_in_turn", (mib, step))][READS] / MIB - mib) / mib / (ROUNDS - 1)
            for step in (0, ELSEWHERE)
        ]
        print(f"{mib:5}  {shares[0]:14.3f}  {shares[1]:9.3f}")
    print("\nwritten, then others read: MiB written to DRAM before the launch ends")
    print("written  read  to DRAM  left")
    for pattern, values in found.items():
        if pattern.kernel == "write_then_read":
            (written, read), out = pattern.numbers, values[WRITES] / MIB
            print(f"{written:7}  {read:4}  {out:7.2f}  {written - out:4.1f}")


def print_merging(sms: int) -> None:
    def fetches(choices: Sequence[Sequence[int]]) -> list[float]:
        return [values[ASKED] * SECTOR_BYTES / MIB / SHARED_MIB for values in counted(choices)]

    pairs = [[0, sm] for sm in range(1, sms)]
    gpc = [0, *(pair[1] for pair, times in zip(pairs, fetches(pairs), strict=True) if times < 1.5)]
    choices = [gpc[:n] for n in range(1, len(gpc) + 1)] + [list(range(sms))]
    print(f"\nSMs that share a fetch with SM 0: {' '.join(map(str, gpc))}")
    print("so many SMs read the same at once: times that L2 is asked for it")
    for chosen, times in zip(choices, fetches(choices), strict=True):
        print(f"{len(chosen):5}  {times:.2f}")


def main() -> None:
    """Print both, or be the program that ncu runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choices", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    try:
        if asked.choices is not None:
            launch_all(asked.choices)
            return
        with Gpu() as gpu:
            device = gpu.device
        print(f"{device.name}: {device.l2_bytes // MIB} MiB of L2")
        print_reach()
        print_merging(device.sm_count)
    except ToolkitError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
