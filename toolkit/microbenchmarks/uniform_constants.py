"""Loads of constants whose address is the same for all lanes, by size of the table and warps."""

from __future__ import annotations

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("uniform_constants.cu")
LINES_OF_GROUP = 8
LINES = (8, 16, 32, 64)
LOADS = 8  # of a line
LOADED = 64  # lines that a warp loads at least
SHAPES = ((8, 1), (32, 1), (8, 5), (8, 6), (8, 8), (32, 2))  # warps, blocks per SM
WORDS = (64, 128, 256, 512, 1024, 2048)
TABLE_SHAPES = (
    *((256, blocks) for blocks in (1, 4, 5, 6, 7, 8)),
    *((1024, blocks) for blocks in (1, 2)),
    *((64, blocks) for blocks in (16, 18, 20, 24, 32)),
)  # threads, blocks per SM
DELAYS = {"together": 0, "one_by_one": 700}  # clocks between the starts of the blocks of an SM
SHOWN_SM = 0


def _clocks(bench: Bench, lines: int, shape: tuple[int, int], order: str) -> Median:
    """Clocks of the SM per line that a warp loads; in detail those of the first pass."""
    warps, per_sm = shape
    sms = bench.device.sm_count
    kernel = bench.kernel(SOURCE, "walk_lines", LOADS=LOADS, WORDS=WORDS[0])
    noted, sink = bench.gpu.allocate(16 * per_sm * sms * warps), bench.gpu.allocate(4)
    groups = lines // LINES_OF_GROUP

    def clocks(passes: int) -> float:
        """Of the median warp."""
        numbers = map(np.int32, (groups, passes, DELAYS[order], sms))
        geometry = Geometry.of(per_sm * sms, WARP_SIZE * warps)
        launch = kernel.prepared(geometry, [noted, sink, *numbers])
        found = bench.noted("walk_lines", launch, noted, (per_sm * sms * warps, 2))
        return float(np.median(found[found[:, 1] == SHOWN_SM, 0]))

    passes = -(-LOADED // lines)
    each_of_warps = 1 / (warps * per_sm * lines)
    first = clocks(1)
    samples = [(clocks(3 * passes) - clocks(passes)) / (2 * passes) for _ in range(REPEATS)]
    return Median.of(samples, first_pass=first * each_of_warps).scaled(each_of_warps)


def _table(bench: Bench, words: int, shape: tuple[int, int]) -> Median:
    """Seconds of a launch in which every thread sums a table."""
    threads, per_sm = shape
    blocks = per_sm * bench.device.sm_count
    kernel = bench.kernel(SOURCE, "sum_table", LOADS=LOADS, WORDS=words)
    out = bench.gpu.allocate(4 * blocks * threads)
    return bench.seconds(kernel.prepared(Geometry.of(blocks, threads), [out]), repeats=3)


BENCHMARKS = (
    *each(
        "uldc_{lines}_lines_{shape[0]}_warps_{shape[1]}_blocks_{order}_cycles",
        "cycles per line and SM",
        "on all SMs {shape[1]} blocks of {shape[0]} warps, which begin {order}, walk {lines} lines "
        f"of constants with {LOADS} loads per line",
        _clocks,
        lines=LINES,
        shape=SHAPES,
        order=tuple(DELAYS),
    ),
    *each(
        "uldc_table_of_{words}_words_{shape[1]}_blocks_of_{shape[0]}_s",
        "seconds",
        "every thread of {shape[1]} blocks of {shape[0]} threads per SM sums {words} constants",
        _table,
        words=WORDS,
        shape=TABLE_SHAPES,
    ),
)
