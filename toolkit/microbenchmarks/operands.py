"""Operands of 64 bits, divisions of floats, and launches that end with a store."""

from __future__ import annotations

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("operands.cu")
OPERATIONS = 8  # of a round
THREADS, WARPS_PER_SCHEDULER = 1024, 8
FEW, MANY = 100, 400  # rounds
BLOCKS = (1, 132, 1056)
STORING = 256  # threads of a block that stores
SAMPLES = 15


def _clocks(bench: Bench, name: str) -> Median:
    """Clocks of a scheduler per operation, if one SM has eight warps on each."""
    kernel = bench.kernel(SOURCE, name, OPERATIONS=OPERATIONS)
    noted, sink = bench.gpu.allocate(8), bench.gpu.allocate(8)

    def clocks(rounds: int) -> int:
        launch = kernel.prepared(Geometry.of(1, THREADS), [noted, sink, np.int32(rounds)])
        return int(bench.noted(name, launch, noted, (1,))[0])

    clocks(MANY)
    samples = [(clocks(MANY) - clocks(FEW)) / (MANY - FEW) for _ in range(REPEATS)]
    return Median.of(samples).scaled(1 / (OPERATIONS * WARPS_PER_SCHEDULER))


def _end(bench: Bench, name: str, blocks: int) -> Median:
    """Seconds of a launch that stores once per thread, or not at all."""
    kernel = bench.kernel(SOURCE, name, OPERATIONS=OPERATIONS)
    out = bench.gpu.allocate(4 * blocks * STORING)
    return bench.seconds(kernel.prepared(Geometry.of(blocks, STORING), [out]), repeats=SAMPLES)


BENCHMARKS = (
    *each(
        "operands_{name}_cycles",
        "cycles per operation and scheduler",
        "{name}: on one SM, eight warps per scheduler",
        _clocks,
        name=(
            "dfma_three",
            "dfma_number",
            "dfma_two",
            "dadd_two",
            "division",
            "unchecked_division",
        ),
    ),
    *each(
        "operands_{name}_{blocks}_blocks_s",
        "seconds",
        "a launch of {blocks} blocks of 256 threads: {name}",
        _end,
        name=("no_store", "one_store"),
        blocks=BLOCKS,
    ),
)
