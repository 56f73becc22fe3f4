"""Sectors that several stores fill or several loads read, and words stored at random places."""

from __future__ import annotations

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("pieces.cu")
THREADS, BLOCKS_PER_SM = 256, 8
STEP = 2654435761  # of the order of scattered words; odd
MACROS: dict[str, int | str] = {"WIDTH": 4, "PARTS": 1, "GROUP": 32, "APART": 0}


def _seconds(bench: Bench, name: str, arguments: list[object], **macros: int) -> float:
    kernel = bench.kernel(SOURCE, name, "", **(MACROS | macros))
    geometry = Geometry.of(BLOCKS_PER_SM * bench.device.sm_count, THREADS)
    return bench.seconds(kernel.prepared(geometry, arguments), repeats=3).value


def _per_sector(bench: Bench, few_s: float, many_s: float, more_bytes: int) -> float:
    """Cycles per sector and SM of what one launch does more than another."""
    return (many_s - few_s) / (more_bytes / 32) * bench.device.sm_count


def _fill(bench: Bench, shape: tuple[int, int], apart: int, mib: int) -> Median:
    width, parts = shape
    memory = bench.shared(Memory)
    pieces = mib * MIB // (width * parts)

    def seconds(count: int) -> float:
        arguments = [memory.buffer, np.uint32(count), np.uint32(1), np.uint64(0)]
        return _seconds(bench, "fill_pieces", arguments, WIDTH=width, PARTS=parts, APART=apart)

    found = [
        _per_sector(bench, seconds(pieces // 2), seconds(pieces), mib * MIB // 2) for _ in range(3)
    ]
    return Median.of(found).scaled(bench.clock_hz())


def _fill_rows(bench: Bench, shape: tuple[int, int], group: int, more: int) -> Median:
    width, parts = shape
    memory = bench.shared(Memory)
    rows, row_bytes = 256, MIB
    pieces = rows * row_bytes // (width * parts)
    macros = {"WIDTH": width, "PARTS": parts, "GROUP": group}

    def seconds(count: int) -> float:
        stride = np.uint64(row_bytes + more)
        arguments = [memory.buffer, np.uint32(count), np.uint32(rows), stride]
        return _seconds(bench, "fill_pieces", arguments, **macros)

    more_bytes = rows * row_bytes // 2
    found = [
        _per_sector(bench, seconds(pieces // 2), seconds(pieces), more_bytes) for _ in range(3)
    ]
    return Median.of(found).scaled(bench.clock_hz())


def _fill_columns(bench: Bench, shape: tuple[int, int], kib: int, more: int) -> Median:
    """Cycles per store of a lane and SM; each lane writes another row, all within L2."""
    width, parts = shape
    memory = bench.shared(Memory)
    rows, row_bytes = 256, kib * 1024
    pieces = rows * row_bytes // (width * parts)

    def seconds(count: int) -> float:
        stride = np.uint64(row_bytes + more)
        arguments = [memory.buffer, np.uint32(count), np.uint32(rows), stride]
        return _seconds(bench, "fill_pieces", arguments, WIDTH=width, PARTS=parts, GROUP=1)

    stores = pieces * parts / bench.device.sm_count
    found = [2 * (seconds(pieces) - seconds(pieces // 2)) / stores for _ in range(3)]
    return Median.of(found).scaled(bench.clock_hz())


def _read(bench: Bench, shape: tuple[int, int], mib: int) -> Median:
    width, parts = shape
    memory = bench.shared(Memory)
    out = bench.gpu.allocate(4)
    pieces = mib * MIB // (width * parts)

    def seconds(count: int) -> float:
        arguments = [out, memory.buffer, np.uint32(count)]
        return _seconds(bench, "read_pieces", arguments, WIDTH=width, PARTS=parts)

    found = [
        _per_sector(bench, seconds(pieces // 2), seconds(pieces), mib * MIB // 2) for _ in range(3)
    ]
    return Median.of(found).scaled(bench.clock_hz())


def _scatter(bench: Bench, mib: int) -> Median:
    memory = bench.shared(Memory)
    words = mib * MIB // 4
    arguments = [memory.buffer, np.uint32(words - 1), np.uint32(STEP)]
    found = [_seconds(bench, "scatter_words", arguments) / words for _ in range(3)]
    return Median.of(found)


def _gather(bench: Bench, mib: int) -> Median:
    memory = bench.shared(Memory)
    words = mib * MIB // 4
    out = bench.gpu.allocate(4)
    arguments = [out, memory.buffer, np.uint32(words - 1), np.uint32(STEP)]
    found = [_seconds(bench, "gather_words", arguments) / words for _ in range(3)]
    return Median.of(found)


SHAPES = ((4, 2), (4, 4), (8, 2), (8, 4), (16, 2))
BENCHMARKS = (
    *each(
        "stg_{shape[1]}_parts_of_{shape[0]}_bytes_{apart}_apart_{mib}_mib_cycles",
        "cycles per sector and SM",
        "{shape[1]} stores of {shape[0]} bytes fill a piece of each thread, {apart} multiply-adds "
        "before each, in all {mib} MiB",
        _fill,
        shape=((4, 1), (16, 1), *SHAPES),
        apart=(0, 4),
        mib=(16, 256),
    ),
    *each(
        "stg_{shape[1]}_parts_of_{shape[0]}_bytes_by_{group}_in_rows_of_1_mib_and_{more}_cycles",
        "cycles per sector and SM",
        "the same, {group} threads in each of 256 rows, which are 1 MiB and {more} bytes apart",
        _fill_rows,
        shape=((4, 1), (8, 1), (16, 1), (8, 2)),
        group=(1, 4, 8),
        more=(0, 2176),
    ),
    *each(
        "stg_{shape[1]}_parts_of_{shape[0]}_bytes_in_columns_of_{kib}_kib_and_{more}_cycles",
        "cycles per store of a lane and SM",
        "each lane stores to another one of 256 rows of {kib} KiB and {more} bytes",
        _fill_columns,
        shape=((4, 1), (16, 1), (8, 2)),
        kib=(64, 128),
        more=(0, 128, 4224),
    ),
    *each(
        "ldg_{shape[1]}_parts_of_{shape[0]}_bytes_{mib}_mib_cycles",
        "cycles per sector and SM",
        "{shape[1]} loads of {shape[0]} bytes read a piece of each thread, in all {mib} MiB",
        _read,
        shape=((4, 1), (16, 1), *SHAPES),
        mib=(16, 256),
    ),
    *each(
        "stg_words_at_random_{mib}_mib_s",
        "s per word",
        "every word of {mib} MiB is stored once, in an order without locality",
        _scatter,
        mib=(8, 16, 32, 64, 128, 256, 512),
    ),
    *each(
        "ldg_words_at_random_{mib}_mib_s",
        "s per word",
        "every word of {mib} MiB is loaded once, in an order without locality",
        _gather,
        mib=(8, 16, 32, 64, 128, 256, 512),
    ),
)
