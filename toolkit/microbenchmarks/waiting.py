"""Measure waits of blocks and warps for each other: flags, grid barriers, sums in shared memory."""

from __future__ import annotations

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import FEW, MANY, REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("waiting.cu")
MACROS: dict[str, int | str] = {"FENCES": 1, "COUNT": 2, "TYPE": "float"}
for _name in ("WRITES", "READS", "BEFORE", "AFTER", "ADDS", "RETURNS", "LOADS"):
    MACROS[_name] = 0


def _per_round(
    bench: Bench, name: str, geometry: Geometry, *arguments: object, **macros: int | str
) -> Median:
    """Clocks per round of the slowest warp of the first block."""
    kernel = bench.kernel(SOURCE, name, "", **(MACROS | macros))
    warps = -(-geometry.threads_per_block // WARP_SIZE)

    def clocks(rounds: int) -> int:
        out = bench.gpu.upload(np.zeros(warps + 1, np.int64))  # some kernels note one warp only
        flags = bench.gpu.upload(np.zeros(128, np.int32))
        given = [flags if argument == "flags" else argument for argument in arguments]
        launch = kernel.prepared(geometry, [out, *given, np.int32(rounds)])
        return int(bench.noted(name, launch, out, (warps + 1,)).max())

    samples = [(clocks(MANY) - clocks(FEW)) / (MANY - FEW) for _ in range(REPEATS + 1)]
    return Median.of(samples[1:])


def _hand_over(bench: Bench, fences: int) -> Median:
    found = _per_round(bench, "hand_over", Geometry.of(2, 1), "flags", FENCES=fences)
    return found.scaled(1 / 2)


def _meet(bench: Bench, per_sm: int, threads: int) -> Median:
    geometry = Geometry.of(per_sm * bench.device.sm_count, threads)
    return _per_round(bench, "meet", geometry, "flags")


def _meet_of(bench: Bench, blocks: int) -> Median:
    return _per_round(bench, "meet", Geometry.of(blocks, WARP_SIZE), "flags")


def _meet_and_pass(bench: Bench, blocks: int, does: str) -> Median:
    words = bench.gpu.upload(np.zeros(16 * blocks, np.uint32))
    return _per_round(
        bench, "meet_and_pass", Geometry.of(blocks, 1), "flags", words, **_macros(does)
    )


def _add_and_load(bench: Bench, blocks: int, does: str) -> Median:
    found = _per_round(bench, "add_and_load", Geometry.of(blocks, 1), "flags", **_macros(does))
    return found.scaled(1 / blocks)


def _macros(does: str) -> dict[str, int | str]:
    return dict.fromkeys(does.upper().split("_"), 1) if does != "nothing" else {}


def _polls(bench: Bench, blocks: int, threads: int, apart: int) -> Median:
    flags = bench.gpu.upload(np.zeros(blocks * apart + 1, np.uint32))
    return _per_round(bench, "poll", Geometry.of(blocks, threads), flags, np.int32(apart))


def _adds_beside_polls(bench: Bench, blocks: int) -> Median:
    return _per_round(bench, "add_beside_polls", Geometry.of(blocks, 1), "flags")


def _first_sums(bench: Bench, warps: int, sums: int) -> Median:
    """Clocks of the block, its last warp included."""
    kernel = bench.kernel(SOURCE, "shared_sums", "", **MACROS)
    out = bench.gpu.allocate(8 * warps)
    arguments = [out, np.int32(0), np.int32(sums)]
    launch = kernel.prepared(Geometry.of(1, WARP_SIZE * warps), arguments)
    found = [int(bench.noted("shared_sums", launch, out, (warps,)).max()) for _ in range(REPEATS)]
    return Median.of(found[1:])


def _shared_sums(bench: Bench, warps: int, whose: str) -> Median:
    geometry = Geometry.of(1, WARP_SIZE * warps)
    is_common = np.int32(whose == "common")
    return _per_round(bench, "shared_sums", geometry, is_common).scaled(1 / warps)


def _constants(bench: Bench, count: int, warps: int) -> Median:
    geometry = Geometry.of(1, WARP_SIZE * warps)
    found = _per_round(bench, "constants_beside", geometry, np.float32(0.5), COUNT=count)
    return found.scaled(1 / count)


BENCHMARKS = (
    *each(
        "flag_{fences}_fences_cycles",
        "cycles",
        "two blocks hand a flag to and fro: one way, with 0: no fences, or 1: data and fences",
        _hand_over,
        fences=(0, 1),
    ),
    *each(
        "meeting_{blocks}_blocks_cycles",
        "cycles",
        "{blocks} blocks of one warp meet at a counter",
        _meet_of,
        blocks=(2, 16, 64),
    ),
    *each(
        "meeting_{per_sm}_per_sm_{threads}_threads_cycles",
        "cycles",
        "{per_sm} blocks per SM of {threads} threads meet at a counter",
        _meet,
        per_sm=(1, 2, 4),
        threads=(32, 256),
    ),
    *each(
        "meeting_{blocks}_blocks_cycles",
        "cycles",
        "{blocks} blocks of one warp meet at a counter",
        _meet_of,
        blocks=(1056, 2112),
    ),
    *each(
        "meeting_of_{blocks}_that_{does}_cycles",
        "cycles",
        "{blocks} threads on as many SMs meet, with these: stores, loads, fences before and after",
        _meet_and_pass,
        blocks=(2, 132),
        does=(
            "nothing",
            "before",
            "after",
            "before_after",
            "writes_before",
            "writes_before_after",
            "reads_after",
            "reads",
            "writes_reads_before_after",
        ),
    ),
    *each(
        "one_number_{does}_of_{blocks}_blocks_cycles",
        "cycles per block and round",
        "a thread of each of {blocks} blocks adds to one number (and takes it), and loads it",
        _add_and_load,
        blocks=(132, 1056),
        does=("adds", "adds_returns", "loads", "adds_loads", "adds_returns_loads"),
    ),
    *each(
        "poll_{blocks}_blocks_of_{threads}_{apart}_words_apart_cycles",
        "cycles",
        "{blocks} blocks of {threads} threads load flags that are {apart} words apart, round trip",
        _polls,
        blocks=(1, 132, 528, 2112),
        threads=(1, 32),
        apart=(0, 32),
    ),
    *each(
        "add_beside_polls_of_{blocks}_blocks_cycles",
        "cycles",
        "one thread adds to a number, round trip, that {blocks} blocks load, it included",
        _adds_beside_polls,
        blocks=(1, 2, 17, 132, 528, 2112),
    ),
    *each(
        "first_{sums}_shared_sums_of_{warps}_warps_cycles",
        "cycles",
        "a block of {warps} warps adds {sums} floats per thread to shared words of its own",
        _first_sums,
        warps=(1, 8, 32),
        sums=(1, 2, 4, 8, 16, 32),
    ),
    *each(
        "shared_sum_{warps}_warps_{whose}_cycles",
        "cycles per warp request",
        "{warps} warps add floats to 32 neighbours in shared memory ({whose})",
        _shared_sums,
        warps=(1, 2, 4, 8, 32),
        whose=("own", "common"),
    ),
    *each(
        "ffma_{count}_constants_{warps}_warps_cycles",
        "cycles per instruction of a warp",
        "{warps} warps, multiply-adds with {count} different constants",
        _constants,
        count=(64, 256, 512, 1024, 2048),
        warps=(1, 16),
    ),
)
