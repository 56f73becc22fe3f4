"""Parts of lines: gathers, stores of parts of sectors and scatters, and what L1 keeps of lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import WHERE, Bench
from toolkit.microbenchmarks.global_memory import KIB, LINE_BYTES, MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("irregular.cu")
THREADS, BLOCKS_PER_SM = 1024, 2
LOADS = 8  # of a thread in flight
TIMES = 4, 20  # the difference has no start and no end
MOST_HIT_CLOCKS = 120  # of a load, with what reads the clock
PASSES = 6
MACROS = {
    "LINES": 1,
    "SECTORS": 1,
    "WIDTH": 4,
    "READS": 0,
    "LOADS": 1,
    "SAME": 1,
    "HITS": 1,
    "MISSES": 1,
}
IN_ORDER, AT_RANDOM = 1, 2654435761  # steps between pieces


def _launch(bench: Bench, name: str, arguments: list[object], **macros: int) -> float:
    kernel = bench.kernel(SOURCE, name, "", **(MACROS | macros))
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, THREADS)
    return bench.seconds(kernel.prepared(geometry, arguments), repeats=3).value


def _gather(bench: Bench, shape: tuple[int, int], mib: int) -> Median:
    """Cycles per line and SM."""
    lines, sectors = shape
    memory = bench.shared(Memory)
    out, mask = bench.gpu.allocate(4), np.uint32(min(mib * MIB, memory.bytes) // LINE_BYTES - 1)

    def seconds(times: int) -> float:
        arguments = [out, memory.buffer, mask, np.int32(times)]
        return _launch(bench, "gather", arguments, LINES=lines, SECTORS=sectors)

    asked = (TIMES[1] - TIMES[0]) * LOADS * BLOCKS_PER_SM * THREADS // WARP_SIZE * lines
    found = [(seconds(TIMES[1]) - seconds(TIMES[0])) / asked for _ in range(3)]
    return Median.of(found).scaled(bench.clock_hz())


def _store(bench: Bench, width: int, pitch: int, mib: int, order: str, reads: int = 0) -> Median:
    """Cycles per piece and SM."""
    memory = bench.shared(Memory)
    pieces = min(mib * MIB, memory.bytes) // pitch
    step = np.uint32(IN_ORDER if order == "in_order" else AT_RANDOM)

    def seconds(count: int) -> float:
        arguments = [memory.buffer, np.uint32(count - 1), np.int32(pitch), step]
        return _launch(bench, "store_parts", arguments, WIDTH=width, READS=reads)

    half = pieces // 2
    found = [(seconds(pieces) - seconds(half)) / (pieces - half) for _ in range(3)]
    return Median.of(found).scaled(bench.clock_hz() * bench.device.sm_count)


def _reuse(bench: Bench, kib: int) -> Median:
    """Fraction of the lines that hit L1 in the last pass; all passes and groups in detail."""
    lines = kib * KIB // LINE_BYTES
    memory = bench.shared(Memory)
    memory.zero(4 * MIB)
    out = bench.gpu.allocate(8 * PASSES * lines // WARP_SIZE)
    kernel = bench.kernel(SOURCE, "reuse", "", **MACROS)
    arguments = [out, memory.buffer, *map(np.int32, (lines, PASSES, MOST_HIT_CLOCKS))]
    launch = kernel.prepared(Geometry.of(1, WARP_SIZE), arguments)
    hits = bench.noted("reuse", launch, out, (PASSES, lines // WARP_SIZE)) / WARP_SIZE
    by_pass = hits.mean(axis=1)
    return Median.of(
        by_pass[1:].tolist(),
        hits_by_pass=np.round(by_pass, 4).tolist(),
        hits_by_group_in_second_pass=np.round(hits[1], 2).tolist(),
        hits_by_group_in_last_pass=np.round(hits[-1], 2).tolist(),
    )


def _pending(bench: Bench, shape: tuple[int, int], warps: int, mib: int, on: str) -> Median:
    """Cycles per load and SM."""
    loads, same = shape
    memory = bench.shared(Memory)
    blocks = bench.blocks(on)
    out = bench.gpu.allocate(8 * blocks)
    macros = {**MACROS, "LOADS": loads, "SAME": same}
    kernel = bench.kernel(SOURCE, "pending_loads", "", **macros)
    mask = np.uint32(min(mib * MIB, memory.bytes) // 4 - 1)

    def clocks(rounds: int) -> float:
        arguments = [out, memory.buffer, mask, np.int32(rounds)]
        launch = kernel.prepared(Geometry.of(blocks, WARP_SIZE * warps), arguments)
        if mib * MIB > bench.device.l2_bytes:
            memory.flush_l2()
        return float(np.median(bench.noted("pending_loads", launch, out, (blocks,))))

    few, many = 4, 20
    clocks(many)
    found = [(clocks(many) - clocks(few)) / ((many - few) * loads * warps) for _ in range(5)]
    return Median.of(found)


def _hits_and_misses(bench: Bench, loads: tuple[int, int], on: str) -> Median:
    """Cycles of the SM for the loads of a round of one warp."""
    memory = bench.shared(Memory)
    memory.zero(32 * MIB)
    blocks, warps = bench.blocks(on), THREADS // WARP_SIZE
    out, table = bench.gpu.allocate(8 * blocks), bench.gpu.upload(np.zeros(4096, np.int32))
    macros = {**MACROS, "HITS": loads[0], "MISSES": loads[1]}
    kernel = bench.kernel(SOURCE, "hits_and_misses", "", **macros)
    mask = np.uint32(16 * MIB // LINE_BYTES - 1)

    def clocks(rounds: int) -> float:
        arguments = [out, table, memory.buffer, mask, np.int32(rounds)]
        launch = kernel.prepared(Geometry.of(blocks, THREADS), arguments)
        return float(np.median(bench.noted("hits_and_misses", launch, out, (blocks,))))

    few, many = 16, 80
    return Median.of([(clocks(many) - clocks(few)) / (many - few) / warps for _ in range(3)])


def _after_store(bench: Bench, apart: int, behind: int) -> Median:
    memory = bench.shared(Memory)
    memory.zero(4 * MIB)
    out = bench.gpu.allocate(8)
    kernel = bench.kernel(SOURCE, "load_after_store", "", **MACROS)

    def clocks(rounds: int) -> int:
        arguments = [out, memory.buffer, *map(np.int32, (apart, behind, rounds))]
        launch = kernel.prepared(Geometry.of(1, WARP_SIZE), arguments)
        return int(bench.noted("load_after_store", launch, out, (1,))[0])

    return Median.of([(clocks(320) - clocks(64)) / 256 for _ in range(5)])


def _hits(bench: Bench, warps: int, loads: int, apart: int, on: str) -> Median:
    """Cycles of a load that hits L1; the most of all SMs in detail."""
    memory = bench.shared(Memory)
    memory.zero()
    blocks = bench.blocks(on)
    out = bench.gpu.allocate(8 * blocks)
    kernel = bench.kernel(SOURCE, "hits_beside_misses", "", **{**MACROS, "LINES": loads})

    def clocks(rounds: int) -> np.ndarray[Any, Any]:
        arguments = [
            out,
            memory.buffer,
            np.uint32(memory.bytes // 8 - 1),
            *map(np.int32, (apart, rounds)),
        ]
        launch = kernel.prepared(Geometry.of(blocks, WARP_SIZE * (1 + warps)), arguments)
        return bench.noted("hits_beside_misses", launch, out, (blocks,))

    found = [np.median(clocks(320) - clocks(64)) / 256 for _ in range(5)]
    return Median.of([float(one) for one in found])


BENCHMARKS = (
    *each(
        "l1_{loads[0]}_hits_and_{loads[1]}_misses_{on}_cycles",
        "cycles per warp and SM",
        "{loads[0]} loads that hit L1 and {loads[1]} that miss it, of 32 lines each, by 32 warps "
        "on {on}",
        _hits_and_misses,
        loads=((8, 0), (0, 1), (0, 2), (8, 1), (8, 2), (4, 2), (4, 4), (2, 4), (14, 1)),
        on=WHERE,
    ),
    *each(
        "load_of_{apart}_words_apart_after_store_{behind}_behind_cycles",
        "cycles per load",
        "one warp loads words that L1 had, {apart} apart, each after a store {behind} words behind "
        "(none if negative)",
        _after_store,
        apart=(1, 32),
        behind=(-1, 0, 1, 4096),
    ),
    *each(
        "pending_{shape[0]}_loads_{shape[1]}_of_a_line_{warps}_warps_{mib}_mib_{on}_cycles",
        "cycles per load and SM",
        "{warps} warps load {shape[0]} words at a time, {shape[1]} of each line, of {mib} MiB",
        _pending,
        shape=((1, 1), (8, 1), (8, 8), (32, 1), (32, 8), (32, 32)),
        warps=(8, 32),
        mib=(16, 512),
        on=WHERE,
    ),
    *each(
        "l1_hit_beside_{warps}_warps_of_{loads}_misses_{apart}_bytes_{on}_cycles",
        "cycles per load",
        "loads of a warp that hit L1, each waits for the one before, while {warps} other warps "
        "load {loads} times {apart} bytes per lane that nobody has loaded before",
        _hits,
        warps=(1, 4, 16),
        loads=(1, 8),
        apart=(4, 128),
        on=WHERE,
    ),
    *each(
        "gather_{shape[0]}_lines_of_{shape[1]}_sectors_{mib}_mib_cycles",
        "cycles per line and SM",
        "64 warps per SM, 8 loads in flight past L1, {shape[0]} lines per load at random places "
        "of {mib} MiB, {shape[1]} sectors of each",
        _gather,
        shape=((1, 1), (4, 1), (32, 1), (16, 2), (8, 4)),
        mib=(2, 16, 512),
    ),
    *each(
        "stg_{width}_of_{pitch}_bytes_{order}_{mib}_mib_cycles",
        "cycles per piece and SM",
        "{width} bytes of each {pitch} are stored, in all {mib} MiB",
        _store,
        width=4,
        pitch=(32, 64, 128, 256),
        mib=(16, 512),
        order=("in_order", "at_random"),
    ),
    *each(
        "stg_{width}_of_{pitch}_bytes_{order}_{mib}_mib_cycles",
        "cycles per piece and SM",
        "{width} bytes of each {pitch} are stored, in all {mib} MiB",
        _store,
        width=(16, 32),
        pitch=32,
        mib=(16, 512),
        order="in_order",
    ),
    *each(
        "add_{width}_of_{pitch}_bytes_{order}_{mib}_mib_cycles",
        "cycles per piece and SM",
        "{width} bytes of each {pitch} are loaded and stored, in all {mib} MiB",
        _store,
        width=4,
        pitch=(32, 128),
        mib=(16, 512),
        order=("in_order", "at_random"),
        reads=1,
    ),
    *each(
        "l1_hits_again_{kib}_kib_lines",
        "fraction of the lines",
        "one warp reads {kib} KiB of lines in order, several times: hits in later passes",
        _reuse,
        kib=(128, 192, 224, 240, 248, 256, 264, 272, 288, 320, 384, 512),
    ),
)
