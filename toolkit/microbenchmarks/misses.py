"""What loads that L1 cannot serve cost a block that waits for them together: by lines and warps."""

from __future__ import annotations

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import REPEATS, Bench
from toolkit.microbenchmarks.global_memory import Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Measured, each

PROBES: tuple[Probe, ...] = ()
REGION_BYTES = 8 << 20
PITCH = 2048  # of lines that one load touches
FEW, MANY = 16, 64  # rounds
WARPS = (1, 4, 8, 16)
STORES = (1, 4)  # of each lane to shared memory, per round
LINES = (4, 16, 32)  # of a load; 4 lie side by side, of each of the others a sector is read
SOURCE = text("misses.cu")


def offsets(lines: int) -> list[int]:
    """In bytes: where each of 32 lanes begins to read, then how far apart warps are, and rounds."""
    if lines == 4:
        return [*(16 * lane for lane in range(WARP_SIZE)), 512, 16 * 512]
    lanes = WARP_SIZE // lines
    places = [lane // lanes * PITCH + lane % lanes * 16 for lane in range(WARP_SIZE)]
    return [*places, lines * PITCH, 32]


def _clocks(bench: Bench, lines: int, warps: int, stores: int) -> Measured:
    """Of a round, until the last warp is through."""
    kernel = bench.kernel(SOURCE, "rounds", STORES=stores)
    memory = bench.shared(Memory).zero(REGION_BYTES)
    places = bench.gpu.upload(np.array(offsets(lines), np.int32))
    out = bench.gpu.allocate(8 * warps)
    geometry = Geometry.of(1, WARP_SIZE * warps)
    samples = []
    for _ in range(REPEATS):
        spans = []
        for turns in (FEW, MANY):
            launch = kernel.prepared(geometry, [memory, places, np.int32(turns), out])
            spans.append(int(bench.noted("rounds", launch, out, (warps,)).max()))
        samples.append((spans[1] - spans[0]) / (MANY - FEW))
    return Measured.of(samples)


def _measure(bench: Bench, lines: int) -> Measured:
    found = {
        (stores, warps): _clocks(bench, lines, warps, stores)
        for stores in STORES
        for warps in WARPS
    }
    by_warps = {
        stores: {str(warps): found[stores, warps].value for warps in WARPS} for stores in STORES
    }
    return found[1, 8].with_detail(
        cycles_by_warps=by_warps[1], cycles_by_warps_with_4_stores=by_warps[4]
    )


BENCHMARKS = tuple(
    each(
        "missed_lines_{lines}_cycles",
        "cycles per round",
        "8 warps (others: detail) load {lines} lines each from L2, store a word per lane "
        "to shared memory, and wait for each other",
        _measure,
        lines=LINES,
    )
)
