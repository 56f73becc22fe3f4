"""Cycle-level model of one streaming multiprocessor: the time that recorded streams of warps take.

`run` replays the streams of some blocks on a model of an SM in C (`sm.h` lists its files): four
in-order schedulers that follow the control bits, units with their throughput, register banks, the
load/store unit, L1, and a share of L2 and DRAM. It is pure: values in, values out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError
from analysis.layout import dtype_of
from analysis.library import loaded
from analysis.native_threads import NativeThreads

SCHEDULERS = 4
NO_SCOREBOARD = 7
UNLIMITED = 1 << 40
INFINITE = float("inf")
# `argument` of a product of a warpgroup, as in machine.h
PRODUCT_OF_REGISTERS, PRODUCT_ENDS_GROUP = 32, 64
# the same of a barrier of a block
BARRIER_WARPS_SHIFT, BARRIER_ARRIVES = 4, 1024
LINE_BYTES = 128
BANKS = 2
CODE_WAYS = 4  # of the instruction cache
CODE_LINE = 8  # instructions in a line of code
SPACE_BIT, SPACES = 57, 128  # of a line's number: which repetition of a block it belongs to
MOST_QUEUED = 32  # as in machine.h
READS_BYTES = 4096 * 64  # ROWS * STATES of sm.h


class Unit(IntEnum):
    """Unit that executes an instruction, as machine.h numbers it."""

    CONTROL, FMA, FMA_HEAVY, FMA_WIDE, HALF, ALU, FP64, XU, UNIFORM, LSU = range(10)
    CONVERT_64 = 10  # from and to 64 bits: before `with_clocks` says which pipe does it
    TENSOR, TENSOR_SHORT, TENSOR_DOUBLE = range(11, 14)


class Kind(IntEnum):
    """Kind of an instruction in the model, as machine.h numbers it."""

    PLAIN, SHARED_LOAD, SHARED_STORE, LOAD, STORE, ATOMIC = range(6)
    COPY, COPY_GROUP, WAIT_GROUP, BARRIER, BRANCH, EXIT = range(6, 12)
    MBARRIER_BEGIN, MBARRIER_ARRIVE, MBARRIER_WAIT = range(12, 15)
    BULK_LOAD, BULK_STORE, BULK_GROUP = range(15, 18)
    CONSTANT, MATRIX_LOAD, FENCE = range(18, 21)
    PRODUCT, PRODUCT_WAIT, PRODUCT_FENCE = range(21, 24)
    UNIFORM_CONSTANT = 24


# Reasons why a scheduler issues nothing in a clock.
LOST = (
    "register banks",
    "write-back",
    "fixed latency",
    "unit busy",
    "load/store queue",
    "shared latency",
    "global latency",
    "arithmetic latency",
    "barrier",
    "instruction fetch",
    "products of warpgroups",
    "no warp",
)

INSTRUCTION = dtype_of(
    "u1 stall yields write_barrier read_barrier wait unit kind registers; i2 source[3]; "
    "u1 reuse operands; u2 banks argument; u1 skipped; u2 latency pipe_clocks free_clocks",
    align=True,
)
COMMON, IN_L2, FLAG, CONSTANT, LOCAL = (np.uint64(1 << bit) for bit in (63, 62, 61, 60, 59))
# An instruction, or, with the flag RUN, `clocks` instructions from `pc` on without memory requests.
STEP = dtype_of("u4 pc; u2 clocks; u1 lines flags")
RUN = 4
_STREAM = dtype_of("u8 first_step steps first_line")
_JOB = dtype_of("u4 first_stream warps; u8 space")
_RESULT = dtype_of(
    f"u8 clocks issued unit_busy[{len(Unit)}] l2_read_bytes l2_write_bytes l1_misses "
    f"lost[{len(LOST)}]; f8 lsu_busy shared_busy bypass_busy product_reads write_clocks "
    "lookup_clocks constant_busy written_slots; u8 unfinished marked"
)


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Constants of an SM that its architecture determines, in clocks of the SM (docs/timing.md).

    analysis/hardware/machines has their values. machine.h describes them, under the same names.
    """

    bank_count: int
    global_queue: int
    operand_clocks: int
    register_latency: int
    #: Latency of LDS: clocks from its issue to the dependent instruction, of 32 bits without bank
    #: conflicts; also of STS, SHFL, LDSM and mbarriers. Read by analysis/sm/load_store.c, by
    #: analysis/sm/mbarriers.c for a bulk copy that fetches nothing, and by
    #: toolkit/execution/in_time.py for blocks that wait for each other. analysis/timing/effects.py
    #: sets it to 2, for the time without waiting for shared memory.
    shared_latency: int
    l1_latency: int
    l2_latency: int
    dram_latency: int
    atomic_latency: int
    shared_atomic_latency: int
    constant_latency: int
    constant_word_latency: int
    constant_miss_latency: int
    fence_clocks: int
    barrier_latency: int
    barrier_per_warp: int
    branch_clocks: int
    block_start: int
    block_interval: int
    fetch_latency: int
    fetch_clocks: int
    integers_share: int
    fma_halves: int
    products_in_flight: int
    product_latency: int
    product_latency_of_registers: int
    product_register_clocks: int
    product_release: int
    group_fence_clocks: int
    proxy_fence_clocks: int
    request_clocks: float
    load_clocks: float
    sector_clocks: float
    bypass_clocks: float
    store_line_bytes: float
    whole_line_bytes: float
    part_bytes: float
    l2_line_bytes: float
    lookup_clocks: float
    write_slots: float
    barrier_unit_clocks: float
    constant_clocks: float
    constant_clocks_of_one: float
    least_constant_clocks: float
    constant_line_clocks: float
    product_column_clocks: float
    least_product_clocks: float
    least_beside_products: float
    idle_beside_products: float
    miss_clocks: float
    l2_bytes_per_clock: float
    write_bytes_per_clock: float
    dram_scatter: float
    dram_spread: float


@dataclass(frozen=True, kw_only=True)
class Machine(Numbers):
    """One SM that runs a launch: its numbers, and its share of L1, L2 and DRAM in the launch.

    Bandwidths are this SM's share. `dram_share` and `dram_write_share`: bytes of DRAM work per byte
    read and written at L2. `local_read_from`: bytes that the SM moves between two accesses to a
    line of local memory from which on L2 may have lost it, `local_read_all` from which on it has;
    `local_written_from` and `local_written_all` from which on DRAM has written it in between.
    `local_bytes`: local memory of the resident blocks, the most that these bytes count as.
    `filled_share`: fraction of the bytes read from L2 that come from DRAM, `stores_filled_share`:
    bytes of DRAM per byte stored, for sectors that are stored in part. `dram_start`: clocks from
    the first request until DRAM serves it. `waiting_share`: fraction of the requests that wait for
    DRAM, on average `dram_scatter` clocks more per line, and up to `dram_spread` clocks more if
    DRAM is always busy. `flag_clocks`: clocks from the first poll of a flag until the flags of
    other blocks are set. A run records when `mark` instructions were issued or left out, and may
    end there.
    """

    slots: int
    first_start: int
    l1_lines: int
    code_lines: int
    flag_clocks: int = 0
    free_memory: int = 0
    free_conflicts: int = 0
    free_copies: int = 0
    stops_at_mark: int = 0
    end_clocks: int = 0
    code_is_cached: int = 0
    wavefront_clocks: float
    merged_share: float = 1.0
    l2_reach_bytes: float = 0.0
    dram_start: float = 0.0
    dram_bytes_per_clock: float
    dram_share: float = 0.0
    filled_share: float = 0.0
    stores_filled_share: float = 0.0
    dram_write_share: float = 0.0
    local_bytes: float = 0.0
    local_read_from: float = INFINITE
    local_read_all: float = INFINITE
    local_written_from: float = INFINITE
    local_written_all: float = INFINITE
    waiting_share: float = 0.0
    most_clocks: int = UNLIMITED
    mark: int = UNLIMITED

    def __post_init__(self) -> None:
        allowed = {
            "slots": range(1, 1 << 16),
            "global_queue": range(2, MOST_QUEUED + 1),
            "l1_lines": range(1, 1 << 24),
            "bank_count": (0, BANKS),
            "code_lines": range(0, 1 << 24, CODE_WAYS),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name} = {getattr(self, name)} is not one of {values}")


_NATIVE: dict[str, type[ctypes.c_uint32 | ctypes.c_double]] = {
    "int": ctypes.c_uint32,
    "float": ctypes.c_double,
}


class _Machine(ctypes.Structure):
    _fields_ = tuple(
        (f.name, ctypes.c_uint64 if f.default == UNLIMITED else _NATIVE[str(f.type)])
        for f in fields(Machine)
    )


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Instructions that the warps of some blocks executed, warp after warp.

    `steps` (STEP) and `lines` (a line's number << 4 | its sectors) of warp w begin at
    `first_step[w]` and `first_line[w]`. The lines include words that describe bulk copies and
    barriers in shared memory (`toolkit/sass/core`). Block b has the warps from `first_warp[b]` to
    `first_warp[b + 1]`. Lines with the mark `COMMON` are the same in each repetition of a block,
    lines with `IN_L2` were written by other blocks, and lines with `FLAG` hold flags of other
    blocks.
    """

    steps: NDArray[Any]
    lines: NDArray[np.uint64]
    first_step: NDArray[np.uint64]
    first_line: NDArray[np.uint64]
    first_warp: NDArray[np.int64]

    @property
    def blocks(self) -> int:
        return len(self.first_warp) - 1

    @property
    def executed(self) -> int:
        """Number of warp instructions of all blocks."""
        runs = self.steps["clocks"][self.steps["flags"] & RUN > 0]
        return len(self.steps) - len(runs) + int(runs.sum(dtype=np.int64))

    @property
    def code_lines(self) -> int:
        """Number of lines of code with an instruction that is executed."""
        steps = self.steps
        more = np.where(steps["flags"] & RUN > 0, steps["clocks"], 1) - 1
        first, last = steps["pc"] // CODE_LINE, (steps["pc"] + more) // CODE_LINE
        length = int(last.max(initial=0)) + 2
        begun = np.bincount(first, minlength=length) - np.bincount(last + 1, minlength=length)
        return int((np.cumsum(begun) > 0).sum())

    def with_common(self) -> Streams:
        """Copy with a mark on each line that all blocks access (part of a table, not of a tile).

        Blocks that access nothing do not count.
        """
        numbers = self.numbers
        first = self.first_line[self.first_warp[1:-1]].astype(np.int64)
        per_block = [np.unique(part) for part in np.split(numbers, first) if len(part)]
        if len(per_block) < 2:
            return self
        common = reduce(partial(np.intersect1d, assume_unique=True), per_block)
        marks = np.where(np.isin(numbers, common), COMMON, np.uint64(0))
        return replace(self, lines=self.lines | marks)

    @property
    def numbers(self) -> NDArray[np.uint64]:
        """Numbers of the lines, without marks."""
        return (self.lines & ~(COMMON | IN_L2 | FLAG)) >> np.uint64(4)

    @property
    def local_bytes_per_block(self) -> float:
        """Bytes of local memory that an average block accesses, in whole lines."""
        numbers = self.numbers[self.lines & LOCAL > 0]
        return LINE_BYTES * len(np.unique(numbers)) / self.blocks

    def with_mark(self, mark: np.uint64, numbers: NDArray[Any]) -> Streams:
        """Copy with `mark` on the lines with these numbers."""
        lines = np.where(np.isin(self.numbers, numbers), self.lines | mark, self.lines)
        return replace(self, lines=lines)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """Results of a run on one SM: clocks, start and end of each block, and busy clocks of units.

    `shared_busy` is a part of `load_store_busy`. `bypass_busy` is that of copies past
    L1. `product_reads` are clocks of shared memory in which products of warpgroups read it, past
    the load/store unit. `written_slots` are the issue slots that registers written by loads take.

    `marked`: when the `mark` of the machine was reached, or the end if it was not. `lost`: clocks
    of the four schedulers without issue, by reason (`LOST`).
    """

    clocks: int
    marked: int
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    issued: int
    unit_busy: dict[Unit, int]
    load_store_busy: float
    shared_busy: float
    bypass_busy: float
    product_reads: float
    l2_read_bytes: int
    l2_write_bytes: int
    l1_misses: int
    write_clocks: float
    lookup_clocks: float
    constant_busy: float
    written_slots: float
    lost: dict[str, int] = field(default_factory=dict)


def run(
    code: NDArray[Any],
    streams: Streams,
    jobs: Sequence[int],
    machine: Machine,
    begun: list[Any] | None = None,
) -> Ran:
    """Run blocks one after another, with `machine.slots` resident blocks.

    `jobs`: indices of blocks of `streams`; a repeated block gets lines of its own. If blocks differ
    in warps, the largest block decides which warps share a scheduler. Raises UnavailableError
    without the native code, MemoryError, and ValueError if warps wait for each other forever.
    The run appends its machine to `begun`, so that `end_runs` can end it.
    """
    (ran,) = run_parts(code, streams, jobs, machine, [len(jobs)], begun)
    return ran


def run_parts(
    code: NDArray[Any],
    streams: Streams,
    jobs: Sequence[int],
    machine: Machine,
    numbers: Sequence[int],
    begun: list[Any] | None = None,
) -> tuple[Ran, ...]:
    """Run the first n of `jobs` for each n in `numbers`: optionally a smaller n, then all of them.

    The smaller n is at least `machine.slots`. It takes little additional time, because both runs
    are the same until a block ends. It requires blocks with equal numbers of warps. `begun` is as
    for `run`.
    """
    *fewer, count = numbers
    assert count == len(jobs)
    assert len(fewer) < 2
    assert all(machine.slots <= number < count for number in fewer)
    assert not (fewer and machine.stops_at_mark)
    assert code.dtype == INSTRUCTION
    assert streams.steps.dtype == STEP
    warps = np.zeros(len(streams.first_step), dtype=_STREAM)
    warps["first_step"], warps["first_line"] = streams.first_step, streams.first_line
    warps["steps"] = np.diff(streams.first_step, append=np.uint64(len(streams.steps)))
    table = np.zeros(count, dtype=_JOB)
    seen: dict[int, int] = {}
    for row, block in zip(table, jobs, strict=True):
        row["first_stream"] = streams.first_warp[block]
        row["warps"] = streams.first_warp[block + 1] - streams.first_warp[block]
        row["space"] = seen.get(block, 0) % SPACES << SPACE_BIT
        seen[block] = seen.get(block, 0) + 1
    assert not fewer or len(set(table["warps"].tolist())) == 1
    results = np.zeros(2, dtype=_RESULT)
    starts, ends = (np.zeros((2, count), dtype=np.uint64) for _ in range(2))
    values = {f.name: getattr(machine, f.name) for f in fields(machine)}
    native = _Machine(**values)
    if begun is not None:
        begun.append(native)
    code, steps, lines = (np.ascontiguousarray(x) for x in (code, streams.steps, streams.lines))
    reads = _reads()  # held: another thread may have made the one that is kept
    failed = _library().sm_run(
        ctypes.byref(native),
        reads.ctypes.data,
        code.ctypes.data,
        len(code),
        *(x.ctypes.data for x in (steps, lines, warps, table)),
        count,
        *(fewer or [0]),
        *(x.ctypes.data for x in (results, starts, ends)),
    )
    if failed:
        raise MemoryError("the timing model does not fit into this machine's memory")
    of_all, of_fewer = (
        _read(*found, number)
        for found, number in zip(
            zip(results, starts, ends, strict=True), (count, *(fewer or [0])), strict=True
        )
    )
    return (of_fewer, of_all) if fewer else (of_all,)


def side_by_side(
    jobs: Iterable[Callable[[], Any]], threads: int, begun: Sequence[Any]
) -> list[Any]:
    """Results of the jobs, run in threads. After an error or Ctrl-C, `begun` runs end at once."""
    with NativeThreads(threads, lambda: end_runs(begun)) as pool:
        futures = [pool.submit(job) for job in jobs]
        return [future.result() for future in futures]


def end_runs(begun: Sequence[Any]) -> None:
    """End the runs in `begun` that go on; these raise ValueError."""
    for native in begun:
        native.most_clocks = 0


def _read(row: Any, starts: NDArray[np.uint64], ends: NDArray[np.uint64], jobs: int) -> Ran:
    if row["unfinished"]:
        raise ValueError(f"the modelled SM stopped after {row['clocks']:,} clocks")
    return Ran(
        starts=starts[:jobs],
        ends=ends[:jobs],
        unit_busy={unit: int(row["unit_busy"][unit]) for unit in Unit},
        load_store_busy=float(row["lsu_busy"]),
        lost={name: int(row["lost"][k]) for k, name in enumerate(LOST)},
        **{name: row[name].item() for name in _AS_THE_MODEL_HAS_THEM},
    )


_IN_PARTS = {"unit_busy", "lost"}
_AS_THE_MODEL_HAS_THEM = {f.name for f in fields(Ran)} & set(_RESULT.names or ()) - _IN_PARTS


@cache
def _library() -> ctypes.CDLL:
    folder = Path(__file__).parent
    library = loaded(folder.with_name("_cycles.so"), folder, "the timing model's native code")
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    library.sm_run.argtypes = [
        *[pointer] * 3, number, *[pointer] * 4, *[number] * 2, *[pointer] * 3,
    ]  # fmt: skip
    library.sm_reads.argtypes = [pointer]
    return library


@cache
def _reads() -> NDArray[np.uint8]:
    """Table of what instructions read from register banks in which clocks; all runs share it."""
    table = np.empty(READS_BYTES, dtype=np.uint8)
    _library().sm_reads(table.ctypes.data)
    return table
