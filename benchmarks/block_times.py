"""Start and end times of the blocks of a rung on a GPU, on each SM and over all SMs.

    python -m benchmarks.block_times [--shape 8192] [RUNG ...]     # needs a GPU

Rungs are compiled with three more stores per block: its SM, and %globaltimer at its start and end.
For each wave the script prints the time between the ends of the blocks of an SM, and how early or
late SMs are, both in lifetimes of a block. It also prints the DRAM traffic that the model derives
from these times, to compare with ncu's counts of the same launch. docs/experiments.md has results.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import ToolkitError, first_line
from analysis.l2_state import L2State
from analysis.problem import Gemm, parse_shape
from analysis.traffic.block_schedule import BlockProgress
from analysis.traffic.l2 import traffic
from benchmarks.gpu_operands import GpuOperands
from kernels import LADDER
from kernels.selection import Selection, parse_selection
from kernels.variant import Variant
from toolkit.execution.plan_executor import PlanExecutor
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.gpu.context import Gpu
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.translate import translate

MADE_UP_ADDRESS = 1 << 40  # for machine code that is not launched
FEWEST = 0.5  # of all SMs, that have blocks in a wave that is shown
KERNEL = 'extern "C" __global__'
BEFORE = """
struct Seen { unsigned long long begin, end, sm; };
__device__ unsigned long long time_now()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now) :: "memory");
    return now;
}
__device__ bool is_first_thread() { return threadIdx.x + threadIdx.y + threadIdx.z == 0; }
__device__ Seen& seen()
{
    const size_t block = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    return reinterpret_cast<Seen*>(SEEN)[block];
}
"""
AT_BEGIN = """
    if (is_first_thread()) {
        unsigned sm;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        seen().sm = sm;
        seen().begin = time_now();
    }
"""
AT_END = "    if (is_first_thread()) seen().end = time_now();\n"


@dataclass(frozen=True)
class BlockTimes:
    """`begins` and `ends` of blocks in nanoseconds, and the SM of each: arrays of one length."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    sms: NDArray[np.int64]

    @property
    def lifetime(self) -> float:
        return float(max(1, np.median(self.ends - self.begins)))

    def waves(self, at_once: int) -> list[NDArray[np.float64]]:
        """End times of the blocks of each wave, in lifetimes since the first block started.

        One row per SM that ran a whole wave, which is `at_once` blocks of that SM.
        """
        found: list[list[NDArray[np.float64]]] = []
        for sm in np.unique(self.sms):
            ends = np.sort(self.ends[self.sms == sm]) - self.begins.min()
            for wave in range(len(ends) // at_once):
                if wave == len(found):
                    found.append([])
                found[wave].append(ends[wave * at_once : (wave + 1) * at_once] / self.lifetime)
        fewest = FEWEST * len(np.unique(self.sms))
        return [np.array(rows) for rows in found if len(rows) >= fewest]


def end_time_differences(waves: list[NDArray[np.float64]]) -> list[float]:
    """Time between the ends of the first and last block of a wave on an SM, averaged over SMs."""
    return [float(np.mean(wave[:, -1] - wave[:, 0])) for wave in waves]


def spread(waves: list[NDArray[np.float64]]) -> list[float]:
    """Time between the earliest and the latest SM of each wave."""
    return [float(np.ptp(wave.mean(axis=1))) for wave in waves]


def pace_beside_the_first(times: BlockTimes) -> tuple[float, float] | None:
    """Pace of the second block of two on an SM, relative to the block that runs ahead.

    The pair is the pace while both run, and the pace after the first has ended: the lifetime of a
    block alone on its SM over that of the first. None if an SM has another number of blocks.
    """
    lifetimes = times.ends - times.begins
    of_sm = [np.sort(lifetimes[times.sms == sm]) for sm in np.unique(times.sms)]
    alone = [own[0] for own in of_sm if len(own) == 1]
    pairs = np.array([own for own in of_sm if len(own) == 2])
    if not alone or len(alone) + len(pairs) < len(of_sm) or _most_at_once(times) != 2:
        return None
    (first, other), single = np.median(pairs, axis=0), np.median(alone)
    return float(1 - (other - first) / single), float(single / first)


def dram_read_bytes(
    times: BlockTimes, selection: Selection, problem: Gemm, device: Device
) -> float | None:
    """As the model of traffic has it for blocks that run at these times; None without all times."""
    variant, parameters = selection.variant, selection.parameters
    assert isinstance(variant, Variant)
    launch = RungLaunch(variant=variant, parameters=parameters, problem=problem)
    if len(times.begins) != launch.geometry.blocks:
        return None
    ladder = LadderSimulator(Workload(problem, seed=0))
    ladder.prepare_at_k(launch.executed)
    kernel = translate(compile_for(device, selection))
    asked = PlanExecutor(ladder, kernel, launch, notes=True).counted().asked(None)
    assert not isinstance(asked, str)
    durations = (times.ends - times.begins) / times.lifetime
    accesses = asked.in_time(
        (times.begins - times.begins.min()) / times.lifetime,
        BlockProgress.even(durations / np.where(asked.lifetimes > 0, asked.lifetimes, 1.0)),
    )
    return traffic(accesses, device, in_step=0.0).dram_read_bytes


def instrumented(variant: Variant) -> str:
    """The source of a rung with the stores: its kernel is the last function of the file."""
    source = variant.source
    kernel = source.index(KERNEL)
    body = source.index("{", source.index(")", source.index(variant.entry, kernel))) + 1
    end = source.rindex("}")
    return "".join(
        (source[:kernel], BEFORE, source[kernel:body], AT_BEGIN, source[body:end], AT_END, "}\n")
    )


def compiled(selection: Selection, architecture: str, address: int = MADE_UP_ADDRESS) -> Kernel:
    """The machine code that stores to an address of the GPU."""
    variant = selection.variant
    assert isinstance(variant, Variant)
    return compile_cubin(
        instrumented(variant),
        name=variant.file,
        kernel=variant.entry,
        arch=architecture,
        defines={**variant.macros(selection.parameters), "SEEN": f"{address}ull"},
    )


def block_times(gpu: Gpu, selection: Selection, operands: GpuOperands, shape: str) -> BlockTimes:
    """Start, end and SM of each block of one launch with a flushed L2, after one other launch."""
    variant, parameters = selection.variant, selection.parameters
    assert isinstance(variant, Variant)
    executed = variant.executed(parse_shape(shape))
    geometry = variant.geometry(parameters, executed)
    found = np.zeros((geometry.blocks, 3), dtype=np.uint64)
    buffer = gpu.upload(found)
    cubin = compiled(selection, gpu.device.sm_arch, int(buffer))
    kernel = gpu.load_image(cubin.image, cubin.symbol)
    launch = kernel.prepared(geometry, operands.arguments(variant, parameters, executed))
    for _ in range(2):
        gpu.timer.time(launch, l2=L2State.DIRTY)
    gpu.download(buffer, into=found)
    ended = found[found[:, 1] > 0].astype(np.int64)  # others left before they had anything to do
    return BlockTimes(begins=ended[:, 0], ends=ended[:, 1], sms=ended[:, 2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rungs", nargs="*", metavar="RUNG")
    parser.add_argument("--shape", default="8192")
    asked = parser.parse_args()
    problem = parse_shape(asked.shape)
    names = asked.rungs or [variant.name for variant in LADDER if not variant.max_extent]
    with Gpu() as gpu:
        print(f"{gpu.device.name}, {asked.shape}")
        operands = GpuOperands(gpu, Workload(problem, 0))
        for name in names:
            try:
                times = block_times(gpu, parse_selection(name), operands, asked.shape)
            except ToolkitError as error:
                print(f"{name}: {first_line(error)}")
                continue
            per_sm = _most_at_once(times)
            waves = times.waves(per_sm)
            print(f"{name}, {times.lifetime / 1e3:.1f} µs, {per_sm} at a time")
            print("    apart  " + " ".join(f"{value:.2f}" for value in end_time_differences(waves)))
            print("    spread " + " ".join(f"{value:.3f}" for value in spread(waves)))
            beside = pace_beside_the_first(times)
            if beside is not None:
                share, alone = beside
                print(f"    beside the first at {share:.2f} of its pace, alone in {alone:.2f}")
            read = dram_read_bytes(times, parse_selection(name), problem, gpu.device)
            if read is not None:
                print(f"    DRAM reads at these times {read / 1e9:.2f} GB")


def _most_at_once(times: BlockTimes) -> int:
    """The blocks that some SM runs at a time."""
    most = 1
    for sm in np.unique(times.sms):
        own = times.sms == sm
        begins, ends = np.sort(times.begins[own]), np.sort(times.ends[own])
        ended = np.searchsorted(ends, begins, side="right")
        most = max(most, int((np.arange(1, len(begins) + 1) - ended).max()))
    return most


if __name__ == "__main__":
    main()
