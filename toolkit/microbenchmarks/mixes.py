"""Loads and stores together: what they share at L2 and at DRAM."""

from __future__ import annotations

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import MIB
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Measured, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("mixes.cu")
THREADS, BLOCKS_PER_SM, BYTES = 256, 8, 16
IN_L2, IN_DRAM = 8, 512  # MiB of a region
MOVED = 512 * MIB  # bytes by which two launches differ


class Regions:
    """A region to load from, and one to store to."""

    def __init__(self, bench: Bench) -> None:
        self.read, self.written = (bench.gpu.allocate(IN_DRAM * MIB) for _ in range(2))
        bench.gpu.fill(self.read, 0, IN_DRAM * MIB // 4)
        bench.gpu.fill(self.written, 0, IN_DRAM * MIB // 4)


def _mix(bench: Bench, shape: tuple[int, int], mib: tuple[int, int]) -> Measured:
    """Seconds per byte that is loaded or stored, on all SMs."""
    loads, stores = shape
    kernel = bench.kernel(SOURCE, "mix", LOADS=loads, STORES=stores)
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, THREADS)
    regions = bench.shared(Regions)
    masks = [np.uint32(of * MIB // BYTES - 1) for of in mib]
    of_round = geometry.blocks * THREADS * BYTES * (loads + stores)
    rounds = MOVED // of_round

    def seconds(times: int) -> float:
        arguments = [regions.written, regions.read, *masks, np.uint32(times * rounds)]
        return bench.seconds(kernel.prepared(geometry, arguments), repeats=3).value

    return Measured.of([(seconds(2) - seconds(1)) / (rounds * of_round) for _ in range(3)])


SHAPES = ((1, 0), (3, 1), (2, 1), (1, 1), (1, 2), (1, 3), (0, 1))
BENCHMARKS = tuple(
    each(
        "mix_{shape[0]}_loads_{shape[1]}_stores_{mib[0]}_and_{mib[1]}_mib_s",
        "s per byte",
        "{shape[0]} loads of 16 bytes from {mib[0]} MiB and {shape[1]} stores to {mib[1]} MiB per "
        "round, on all SMs",
        _mix,
        shape=SHAPES,
        mib=((IN_DRAM, IN_DRAM), (IN_DRAM, IN_L2), (IN_L2, IN_L2)),
    )
)
