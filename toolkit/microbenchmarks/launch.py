"""Cost of a launch, and the order in which blocks follow each other on an SM."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

SOURCE = text("launch.cu")
PROBES: tuple[Probe, ...] = ()
THREADS = (32, 256, 1024)
SM, BEGIN, END = 0, 1, 2  # columns of the records that blocks write
BLOCK_CYCLES = 2000  # duration of a block in the benchmark of turnover
FIRST_PER_SM, HELD_CYCLES = 3, 100_000  # of blocks that are dealt: none ends before the last starts
WAVES = 16  # waves in the benchmark of turnover
EMPTY_PER_SM = 100, 500  # blocks: the difference between the two has no start


def _empty(bench: Bench, threads: int) -> Median:
    kernel = bench.kernel(SOURCE, "nothing")
    launch = kernel.prepared(Geometry.of(1, threads), [np.int32(0)])
    return bench.seconds(launch, repeats=15)


def _by_sm(
    bench: Bench, blocks: int, threads: int, cycles: int, dynamic: int = 0
) -> list[NDArray[np.int64]]:
    """Notes of the blocks: for each SM a row per block, in the order in which blocks started."""
    out = bench.gpu.allocate(24 * blocks)
    kernel = bench.kernel(SOURCE, "blocks_on_sms")
    geometry = Geometry.of(blocks, threads, dynamic)
    launch = kernel.prepared(geometry, [out, np.int32(cycles)])
    for _ in range(2):
        noted = bench.noted("blocks_on_sms", launch, out, (blocks, 3))
    rows = noted[np.lexsort((noted[:, BEGIN], noted[:, SM]))]
    return np.split(rows, np.flatnonzero(np.diff(rows[:, SM])) + 1)


def _gap(bench: Bench, threads: int) -> Median:
    """Cycles from a block's last clock to the first clock of its successor; one block per SM."""
    dynamic = bench.device.shared_bytes_per_block_optin - 1024
    gaps: list[int] = []
    overlaps = 0
    for own in _by_sm(bench, 12 * bench.device.sm_count, threads, 5000, dynamic):
        between = own[1:, BEGIN] - own[:-1, END]
        overlaps += int(np.count_nonzero(between < 0))
        gaps += between[between >= 0].tolist()
    return Median.of(
        gaps, overlaps=overlaps, deciles=np.percentile(gaps, range(0, 101, 10)).tolist()
    )


def _turnover(bench: Bench, threads: int) -> Median:
    """Cycles per block and SM of a long grid of blocks of `BLOCK_CYCLES`, above those."""
    per_sm = min(bench.device.max_threads_per_sm // threads, bench.device.max_blocks_per_sm)
    per_block = []
    for own in _by_sm(bench, WAVES * per_sm * bench.device.sm_count, threads, BLOCK_CYCLES):
        busy = int(own[:, END].max() - own[0, BEGIN])
        per_block.append(busy * per_sm / len(own) - BLOCK_CYCLES)
    return Median.of(per_block, blocks_per_sm=per_sm)


def _empty_blocks(bench: Bench, threads: int) -> Median:
    """Seconds per block of a long grid of blocks without work."""
    kernel = bench.kernel(SOURCE, "nothing")

    def seconds(waves: int) -> float:
        geometry = Geometry.of(waves * bench.device.sm_count, threads)
        return bench.seconds(kernel.prepared(geometry, [np.int32(0)]), repeats=5).value

    few, many = EMPTY_PER_SM
    found = [(seconds(many) - seconds(few)) / (many - few) for _ in range(3)]
    return Median.of(found).scaled(1 / bench.device.sm_count)


def _dealt(bench: Bench, threads: int) -> Median:
    """Most of the first three blocks per SM that one gets; in detail the SM of each block."""
    sms = bench.device.sm_count
    per_sm = min(bench.device.max_threads_per_sm // threads, bench.device.max_blocks_per_sm)
    out = bench.gpu.allocate(24 * sms * per_sm)
    kernel = bench.kernel(SOURCE, "blocks_on_sms")
    launch = kernel.prepared(Geometry.of(sms * per_sm, threads), [out, np.int32(HELD_CYCLES)])
    noted = bench.noted("blocks_on_sms", launch, out, (sms * per_sm, 3))
    first = np.bincount(noted[: FIRST_PER_SM * sms, SM], minlength=sms)
    return Median.of([float(first.max())], sms=noted[:, SM].tolist())


BENCHMARKS = (
    *each(
        "dealt_{threads}_threads_blocks",
        "blocks",
        f"the most of the first {FIRST_PER_SM} blocks per SM that one of them gets, of a launch "
        "that fills the device with blocks of {threads} threads",
        _dealt,
        threads=(64, 256),
    ),
    *each(
        "empty_kernel_{threads}_threads_s",
        "seconds",
        "one launch of one block between two events",
        _empty,
        threads=THREADS,
    ),
    *each(
        "block_gap_{threads}_threads_cycles",
        "cycles",
        "from a block's end to the next one's start, one per SM (low, high: all pairs)",
        _gap,
        threads=THREADS,
    ),
    *each(
        "block_turnover_{threads}_threads_cycles",
        "cycles per block and slot",
        f"a full SM of blocks of {BLOCK_CYCLES:,} cycles, {WAVES} waves, above those "
        "(low, high: SMs)",
        _turnover,
        threads=THREADS,
    ),
    *each(
        "empty_blocks_{threads}_threads_s",
        "s per block",
        "a long grid of blocks without work",
        _empty_blocks,
        threads=THREADS,
    ),
)
