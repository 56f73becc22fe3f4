"""Atomic operations and stores that meet in L2, and loads of constants by different words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import FEW, MANY, ONE_SM, REPEATS, SCHEDULERS, WHERE, Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("contention.cu")
KINDS = ("u32", "f32")
RETURNED = ("cas", "atom")  # the same, whose old values come back
STORES = ("st", "st_beside_loads")  # the second between loads of other lines
LOADED_BYTES, PIECE_BYTES = 128 * MIB, 512  # of all loads, and of one of a warp
STORED = "word", "line"  # patterns
WARPS, BLOCKS_PER_SM = 32, 2  # of a block, which fill an SM of 64 warps
REQUESTS = 16, 48  # of a warp: the difference between the two has no start and no end
NOBODY = -1
Rows = Sequence[Sequence[int]]  # byte that each lane adds to

# What the lanes of a warp add to, and how many operations on sectors that is for L2.
PATTERNS: dict[str, tuple[list[int], int]] = {
    "word": ([0], 1),
    "line": ([4 * lane for lane in range(WARP_SIZE)], 4),
    "lanes": ([0] * WARP_SIZE, WARP_SIZE),
    "sectors": ([32 * lane for lane in range(WARP_SIZE)], WARP_SIZE),
}
SHOWN = {
    "word": "one lane of each warp adds to the same word",
    "line": "the lanes of each warp add to the words of the same line; per sector",
    "lanes": "all lanes of all warps add to the same word",
    "sectors": "the lanes of each warp add to words of 32 neighbouring sectors; per sector",
}
LINES, PITCH = 24, 1024  # of a walk: lines of different slices
GRANULE = 256  # bytes, which one slice has
IN_A_ROW = 120  # places without a new slice, after which all slices are known
PLACES_BYTES = 8 * MIB
ALIKE = 0.75  # of the time of one address, above which two addresses are in one slice


def _seconds(
    bench: Bench,
    kind: str,
    rows: Rows,
    times: int,
    *,
    by_warp: int = 0,
    by_request: int = 0,
    repeats: int = REPEATS,
) -> float:
    """Median time of a launch in which each warp makes `times` requests."""
    offsets = np.full((len(rows), WARP_SIZE), NOBODY, np.int32)
    for row, given in zip(offsets, rows, strict=True):
        row[: len(given)] = given
    kernel = bench.kernel(SOURCE, "add", KIND=(*KINDS, *RETURNED, *STORES).index(kind), CHAINS=1)
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, WARP_SIZE * WARPS)
    numbers = map(np.int32, (len(rows), by_warp, by_request, times))
    memory = bench.shared(Memory)
    loaded = [np.uint64(int(memory.buffer) + MIB), np.int32(LOADED_BYTES // PIECE_BYTES)]
    arguments = [memory.buffer, bench.gpu.upload(offsets), *numbers, *loaded]
    return bench.seconds(kernel.prepared(geometry, arguments), repeats=repeats).value


def _requests(bench: Bench) -> int:
    """Warps of a launch."""
    return BLOCKS_PER_SM * bench.device.sm_count * WARPS


def _per_operation(bench: Bench, kind: str, pattern: str) -> float:
    lanes, operations = PATTERNS[pattern]
    few, many = (_seconds(bench, kind, [lanes], times) for times in REQUESTS)
    return (many - few) / (REQUESTS[1] - REQUESTS[0]) / _requests(bench) / operations


def _operation(bench: Bench, kind: str, pattern: str) -> Median:
    return Median.of([_per_operation(bench, kind, pattern) for _ in range(3)])


def _store(bench: Bench, pattern: str, *, kind: str) -> Median:
    return _operation(bench, kind, pattern).scaled(PATTERNS[pattern][1])


def _walk(bench: Bench) -> Median:
    """Lines at which L2 works at a time, if all warps add to `LINES` lines in the same order."""
    rows = [[PITCH * line + 4 * lane for lane in range(WARP_SIZE)] for line in range(LINES)]
    of_a_line = 4 * _per_operation(bench, "f32", "line")
    serial = LINES * _requests(bench) * of_a_line

    def busy(by_warp: int) -> float:
        empty, walk = (
            _seconds(bench, "f32", rows, times, by_warp=by_warp, by_request=1)
            for times in (0, LINES)
        )
        return serial / (walk - empty)

    found = Median.of([busy(0) for _ in range(REPEATS)])
    return found.with_detail(lines_if_warps_begin_anywhere=busy(1))


def _slice_bytes(bench: Bench) -> Median:
    """Bytes of L2 per slice. Two addresses are of one slice if additions to both take longer."""
    generator = np.random.default_rng(0)
    places = GRANULE * generator.permutation(PLACES_BYTES // GRANULE)
    known, since = list[int](), 0

    def seconds(*places: int) -> float:
        rows = [[place] for place in places]
        return _seconds(bench, "u32", rows, REQUESTS[0], by_warp=1, repeats=3)

    for place in places.tolist():
        of_one = seconds(place)
        if all(seconds(place, other) < ALIKE * of_one for other in known):
            known.append(place)
            since = 0
        else:
            since += 1
        if since == IN_A_ROW:
            break
    return Median.of([bench.device.l2_bytes / len(known)], slices=len(known))


def _clocks(bench: Bench, words: int, chains: int, warps: int, idle: int = 0) -> Median:
    """Clocks of a load of so many words, in the warps of which none has a bit of `idle`."""
    kernel = bench.kernel(SOURCE, "load", KIND=0, CHAINS=chains)
    offsets = bench.gpu.upload(np.arange(WARP_SIZE, dtype=np.int32) % words)
    out = bench.gpu.allocate(16 * warps)
    busy = [warp for warp in range(warps) if not warp & idle]

    def clocks(rounds: int) -> int:
        launch = kernel.prepared(
            Geometry.of(1, WARP_SIZE * warps), [out, offsets, np.int32(rounds), np.int32(idle)]
        )
        return int(bench.noted("load", launch, out, (warps, 2))[busy, 0].max())

    samples = [
        (clocks(MANY) - clocks(FEW)) / (MANY - FEW) / (8 * chains) for _ in range(REPEATS + 1)
    ]
    return Median.of(samples[1:])


def _latency(bench: Bench, words: int) -> Median:
    return _clocks(bench, words, 1, 1)


def _rate(bench: Bench, words: int) -> Median:
    return _clocks(bench, words, 4, 32).scaled(1 / 32)


def _rate_of_one(bench: Bench, words: int) -> Median:
    idle = SCHEDULERS - 1
    return _clocks(bench, words, 4, 32, idle).scaled(SCHEDULERS / 32)


def _of_rounds(bench: Bench, entry: str, geometry: Geometry, *arguments: int) -> list[float]:
    """Clocks of a round of 8 loads, without those of the start and the end, of some repeats."""
    kernel = bench.kernel(SOURCE, entry, KIND=0, CHAINS=1)
    warps = geometry.threads_per_block // WARP_SIZE or 1
    out = bench.gpu.allocate(16 * warps)

    def clocks(rounds: int) -> int:
        launch = kernel.prepared(geometry, [out, *map(np.int32, (*arguments, rounds))])
        return int(bench.noted(entry, launch, out, (warps, 2))[:, 0].max())

    return [(clocks(MANY) - clocks(FEW)) / (MANY - FEW) for _ in range(REPEATS + 1)][1:]


def _miss_latency(bench: Bench) -> Median:
    """Clocks that a load takes longer where its line is not in the cache of the SM."""
    alone = Geometry.of(1, 1)
    few, many = (_of_rounds(bench, "walk", alone, size) for size in (CACHED, WALKED))
    return Median.of(many).less(median(few)).scaled(1 / 8)


def _line_rate(bench: Bench, where: str) -> Median:
    blocks = 1 if where == ONE_SM else bench.device.sm_count
    found = _of_rounds(bench, "lines", Geometry.of(blocks, WARP_SIZE * WARPS))
    return Median.of(found).scaled(1 / (8 * WARPS * WARP_SIZE))


# Bytes that stay in the SM's cache of constants, and bytes that do not, which the first rounds
# bring into the caches behind it.
CACHED, WALKED = 1024, 4096
WORDS = (1, 2, 8, 32)
BENCHMARKS = (
    *(
        one
        for pattern, how in SHOWN.items()
        for one in each(
            "red_{kind}_{pattern}_s",
            "s per operation",
            how,
            _operation,
            kind=KINDS,
            pattern=(pattern,),
        )
    ),
    *(
        one
        for pattern, how in SHOWN.items()
        for one in each(
            "{kind}_{pattern}_s",
            "s per operation",
            how.replace("add", "swap or add"),
            _operation,
            kind=RETURNED,
            pattern=(pattern,),
        )
    ),
    *each(
        "st_{pattern}_s",
        "s per request of a warp",
        "all warps store to one {pattern}",
        partial(_store, kind="st"),
        pattern=STORED,
    ),
    *each(
        "st_{pattern}_beside_loads_s",
        "s per request of a warp",
        "all warps store to one {pattern}, between loads of other lines",
        partial(_store, kind="st_beside_loads"),
        pattern=STORED,
    ),
    *each(
        "red_walk_lines",
        "lines",
        f"all warps add to {LINES} lines, {PITCH} bytes apart, in the same order: lines at which "
        "L2 works at a time",
        _walk,
    ),
    *each(
        "l2_bytes_per_slice",
        "bytes",
        "L2 by its slices: additions to two addresses of one slice take twice as long",
        _slice_bytes,
    ),
    *each(
        "ldc_{words}_words_latency_cycles",
        "cycles",
        "one warp, {words} words of constants, each address is what the load before gave",
        _latency,
        words=WORDS,
    ),
    *each(
        "ldc_{words}_words_cycles",
        "cycles per warp access and SM",
        "32 warps, {words} words of constants",
        _rate,
        words=WORDS,
    ),
    *each(
        "ldc_{words}_words_one_scheduler_cycles",
        "cycles per warp access",
        "8 warps of one scheduler, {words} words of constants",
        _rate_of_one,
        words=WORDS,
    ),
    *each(
        "ldc_miss_latency_cycles",
        "cycles",
        "one thread walks 4 KiB of constants line by line, or 1 KiB: the difference per load",
        _miss_latency,
    ),
    *each(
        "ldc_line_{where}_cycles",
        "cycles per line and SM",
        "32 warps on {where}, 32 lines per load at random places of all constants",
        _line_rate,
        where=WHERE,
    ),
)
