"""What a barrier costs the warps of a block."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Benchmark, Measured

COUNT = 32
BARRIERS = Probe(
    name="barriers",
    body="\n".join(["__syncthreads();"] * COUNT),
    opcode=r"BAR\.SYNC",
    count=COUNT,
)
PROBES = (BARRIERS,)


def _barrier(bench: Bench, warps: int, blocks_per_sm: int) -> Measured:
    blocks = 1 if blocks_per_sm == 1 else blocks_per_sm * bench.device.sm_count
    return bench.cycles(BARRIERS, warps=warps, blocks=blocks).scaled(1 / COUNT)


def _benchmarks() -> Iterator[Benchmark]:
    for warps in (1, 2, 4, 8, 16, 32):
        yield Benchmark.of(
            f"barrier_{warps}_warps_cycles",
            "cycles",
            "one block, nothing between the barriers",
            _barrier,
            warps=warps,
            blocks_per_sm=1,
        )
    for warps, blocks in ((4, 2), (4, 4), (4, 8), (8, 2), (8, 4), (8, 8), (16, 2), (32, 2)):
        yield Benchmark.of(
            f"barrier_{warps}_warps_{blocks}_blocks_cycles",
            "cycles",
            f"{blocks} blocks per SM at a time, on all SMs",
            _barrier,
            warps=warps,
            blocks_per_sm=blocks,
        )


BENCHMARKS = tuple(_benchmarks())
