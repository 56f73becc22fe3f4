"""Loads and stores together: what they share at L2 and at DRAM."""

from __future__ import annotations

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import LANES, Bench
from toolkit.microbenchmarks.global_memory import KIB, LINE_BYTES, MIB
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("mixes.cu")
THREADS, BLOCKS_PER_SM, BYTES = 256, 8, 16
IN_L2, IN_DRAM = 8, 512  # MiB of a region
CLOCKS = {"WORDS": 1, "AGAIN_STORED": 0}  # macros of `load_again`
# macros of `mix` and `mix_columns`
MIX: dict[str, int | str] = {"LOADS": 1, "STORES": 1, "PART": "unsigned"}
ROW_BYTES = 1024  # of `mix_columns`
COLUMNS = 300  # of each warp, by which two launches differ
PARTS = {1: "unsigned char", 4: "unsigned"}
MOVED = 512 * MIB  # bytes by which two launches differ


class MixBuffers:
    """A region to load from, and one to store to."""

    def __init__(self, bench: Bench) -> None:
        self.read, self.written = (bench.gpu.allocate(IN_DRAM * MIB) for _ in range(2))
        bench.gpu.fill(self.read, 0, IN_DRAM * MIB // 4)
        bench.gpu.fill(self.written, 0, IN_DRAM * MIB // 4)


def _mix(bench: Bench, shape: tuple[int, int], mib: tuple[int, int]) -> Median:
    """Seconds per byte that is loaded or stored, on all SMs."""
    loads, stores = shape
    kernel = bench.kernel(SOURCE, "mix", "", **(MIX | {"LOADS": loads, "STORES": stores}), **CLOCKS)
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, THREADS)
    regions = bench.shared(MixBuffers)
    masks = [np.uint32(of * MIB // BYTES - 1) for of in mib]
    of_round = geometry.blocks * THREADS * BYTES * (loads + stores)
    rounds = MOVED // of_round

    def seconds(times: int) -> float:
        arguments = [regions.written, regions.read, *masks, np.uint32(times * rounds)]
        return bench.seconds(kernel.prepared(geometry, arguments), repeats=3).value

    return Median.of([(seconds(2) - seconds(1)) / (rounds * of_round) for _ in range(3)])


def _mix_columns(bench: Bench, shape: tuple[int, int], width: int) -> Median:
    """Cycles of an SM for the loads and the store of a warp, on all SMs."""
    loads, stores = shape
    macros: dict[str, int | str] = {"LOADS": loads, "STORES": stores, "PART": PARTS[width]}
    kernel = bench.kernel(SOURCE, "mix_columns", "", **macros, **CLOCKS)
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, THREADS)
    regions = bench.shared(MixBuffers)
    warps = BLOCKS_PER_SM * THREADS // LANES  # of an SM

    def seconds(rounds: int) -> float:
        mask = np.uint32(IN_L2 * MIB // ROW_BYTES - 1)
        arguments = [regions.written, regions.read, mask, np.uint32(rounds)]
        return bench.seconds(kernel.prepared(geometry, arguments), repeats=3).value

    found = [(seconds(2 * COLUMNS) - seconds(COLUMNS)) / (COLUMNS * warps) for _ in range(3)]
    return Median.of(found).scaled(bench.clock_hz())


def _load_again(bench: Bench, what: str, words: int, kib: tuple[int, int]) -> Median:
    """Cycles per line that one warp loads once more, behind stores to other lines."""
    is_of_stored = what == "stored"
    kernel = bench.kernel(
        SOURCE, "load_again", "", WORDS=words, AGAIN_STORED=int(is_of_stored), **MIX
    )
    regions = bench.shared(MixBuffers)
    lines, stored = (of * KIB // LINE_BYTES for of in kib)
    out = bench.gpu.allocate(16)
    arguments = [out, regions.written, regions.read, np.uint32(lines), np.uint32(stored)]
    launch = kernel.prepared(Geometry.of(1, LANES), arguments)
    clocks = [bench.noted("load_again", launch, out, (2,))[0] / lines for _ in range(3)]
    return Median.of(clocks)


SHAPES = ((1, 0), (3, 1), (2, 1), (1, 1), (1, 2), (1, 3), (0, 1))
BENCHMARKS = (
    *each(
        "mix_{shape[0]}_loads_{shape[1]}_stores_{mib[0]}_and_{mib[1]}_mib_s",
        "s per byte",
        "{shape[0]} loads of 16 bytes from {mib[0]} MiB and {shape[1]} stores to {mib[1]} MiB per "
        "round, on all SMs",
        _mix,
        shape=SHAPES,
        mib=((IN_DRAM, IN_DRAM), (IN_DRAM, IN_L2), (IN_L2, IN_L2)),
    ),
    *each(
        "mix_{shape[0]}_loads_{shape[1]}_stores_of_{width}_bytes_in_columns_cycles",
        "cycles per warp and SM",
        "{shape[0]} loads and {shape[1]} stores of {width} bytes, lanes in 32 lines that L2 "
        "holds, by each warp of all SMs",
        _mix_columns,
        shape=((1, 0), (0, 1), (1, 1), (2, 1)),
        width=(1, 4),
    ),
    *each(
        "load_again_{what}_{kib[0]}_kib_behind_stores_of_{words}_words_to_{kib[1]}_kib_cycles",
        "cycles per line",
        "one warp loads {kib[0]} KiB, stores to {words} words of each line of {kib[1]} other KiB, "
        "and then loads the {what} lines",
        _load_again,
        what="loaded",
        words=(1, LANES),
        kib=tuple((64, stored) for stored in (0, 64, 96, 128, 160, 192, 256, 512)),
    ),
    *each(
        "load_again_{what}_{kib[0]}_kib_behind_stores_of_{words}_words_to_{kib[1]}_kib_cycles",
        "cycles per line",
        "one warp stores to {words} words of each line of {kib[1]} KiB, and then loads these",
        _load_again,
        what="stored",
        words=(1, LANES),
        kib=((16, 16), (64, 64)),
    ),
)
