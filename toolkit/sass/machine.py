"""Run a bound launch on the native core: blocks in, counts out."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from threading import current_thread, main_thread
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.cycles import Streams
from analysis.errors import LaunchError
from analysis.geometry import Geometry
from toolkit.sass import core
from toolkit.sass.isa.registry import ConstantWord, Lowered
from toolkit.sass.space import LOCAL_WINDOW, SHARED_WINDOW, Buffer, allocation_table
from toolkit.sass.streams import joined

UNLIMITED = 1 << 62

# Work is handed out in pieces, so that progress shows and Ctrl-C is heard.
_PIECES_PER_WORKER = 16

# After a fault the pieces before it are still finished, so that the same block is blamed each
# time, unless they take too long.
_PATIENCE_S = 1.0

# kinds of fault, as core.h numbers them
(
    OK,
    OUT_OF_BOUNDS,
    MISALIGNED,
    DEADLOCK,
    LIMIT,
    CANCELLED,
    BAD_TARGET,
    TRAP,
    UNIMPLEMENTED,
    NO_MEMORY,
    WRITE_TO_CONSTANT,
) = range(11)
SPACES = ("global", "shared", "local", "constant")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A matrix whose lines are kept as if its rows lay `kept_pitch` bytes apart, not `pitch`."""

    address: int
    size_bytes: int
    pitch: int
    kept_pitch: int


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A program with everything that a launch adds to it."""

    lowered: Lowered
    architecture: int
    geometry: Geometry
    banks: Mapping[int, NDArray[np.uint8]]
    buffers: Sequence[Buffer]
    shared_base: int
    shared_bytes: int
    local_bytes: int
    in_order: bool  # blocks one after the other: their atomics then always meet in one order
    most_touches: int = 0  # to note of each worker's blocks; 0: none
    most_steps: int = 0  # to keep of each worker's warps; 0: none
    spread: Spread | None = None
    most_requests: int = 0  # to note of each instruction, in each worker; 0: none


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why the core stopped, in its own numbers; `instruction` is an index into the program.

    `waiting` threads are at that instruction where it is a deadlock.
    """

    kind: int
    instruction: int
    space: int
    width_bytes: int
    address: int
    block: int
    warp: int
    lane: int
    is_store: bool
    waiting: int = 0


class FaultError(LaunchError):
    """A kernel that the core stopped. `fault` says where; who knows the program words it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"the simulated kernel stopped: {fault}")
        self.fault = fault


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The touches of some blocks (`core.TOUCH`), and how many sectors their warps wrote.

    A sector that several warps write counts as often; what one warp writes of it again does not.
    """

    touches: NDArray[Any]
    written_by_warps: int


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of some blocks: counts per instruction, and reads of unwritten shared memory.

    `touched` is what each block touched of global memory, None where that was not asked for or
    was more than the bound launch allows; so with `streams`, what each warp executed, and with
    `requests`, the first ones of each instruction (`core.REQUEST`).
    """

    counts: NDArray[Any]
    unwritten_reads: int
    first_unwritten: Fault | None
    touched: Touched | None = None
    streams: Streams | None = None
    requests: NDArray[Any] | None = None


def run_blocks(
    bound: Bound,
    blocks: Sequence[range],
    *,
    max_instructions: int | None = None,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> list[Run]:
    """Execute the blocks of each range of linear indices; one Run per range, in order.

    `advance` is told how many blocks are done, now and then. Raises FaultError, and LaunchError
    where there is not enough memory. On KeyboardInterrupt the core stops within milliseconds.
    """
    cores = 1 if bound.in_order else workers or available_cores()
    with _launched(bound) as launch:
        if len(blocks) == 1:
            return [_run_range(launch, bound, blocks[0], cores, max_instructions, advance)]
        with ThreadPoolExecutor(min(cores, len(blocks))) as pool:
            try:
                futures = [
                    pool.submit(_run_range, launch, bound, chosen, 1, max_instructions, advance)
                    for chosen in blocks
                ]
                return [future.result() for future in futures]
            except BaseException:
                launch.cancel = 1
                pool.shutdown(cancel_futures=True)
                raise


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_range(
    launch: core.Launch,
    bound: Bound,
    chosen: range,
    workers: int,
    max_instructions: int | None,
    advance: Callable[[int], None],
) -> Run:
    workers = min(workers, len(chosen))
    length = len(bound.lowered.program)
    counts = np.zeros((workers, length), dtype=core.COUNT)
    budget = UNLIMITED if max_instructions is None else max_instructions
    handles = [_new_worker(launch, row, budget) for row in counts]
    try:
        _drive(launch, handles, chosen, advance)
        faults = [_faults(handle) for handle in handles]
        touched = _touched(handles) if bound.most_touches else None
        streams = _streams(handles) if bound.most_steps else None
        requests = _requests(handles) if bound.most_requests else None
    finally:
        for handle in handles:
            core.library().core_free_worker(handle)
    failed = [fault for fault, _, _ in faults if fault.kind not in (OK, CANCELLED)]
    if failed:
        raise FaultError(min(failed, key=lambda fault: fault.block))
    unwritten = [first for _, first, reads in faults if reads]
    return Run(
        counts=_total(counts),
        unwritten_reads=sum(reads for _, _, reads in faults),
        first_unwritten=min(unwritten, key=lambda fault: fault.block, default=None),
        touched=touched,
        streams=streams,
        requests=requests,
    )


def _touched(handles: Sequence[int]) -> Touched | None:
    """A copy of what the workers noted, None where one of them lost some."""
    found, written_by_warps = [], 0
    for handle in handles:
        count, written = ctypes.c_uint64(), ctypes.c_uint64()
        address = core.library().core_touches(handle, ctypes.byref(count), ctypes.byref(written))
        if address is None:
            return None
        size = count.value * core.TOUCH.itemsize
        found.append(np.frombuffer(ctypes.string_at(address, size), dtype=core.TOUCH))
        written_by_warps += written.value
    return Touched(touches=np.concatenate(found), written_by_warps=written_by_warps)


def _streams(handles: Sequence[int]) -> Streams | None:
    """What the workers' warps executed, None where some of it was lost."""
    found = []
    for handle in handles:
        steps = _array(handle, "core_steps", core.STEP)
        if steps is None:
            return None
        segments = _array(handle, "core_segments", core.SEGMENT)
        lines = _array(handle, "core_lines", np.dtype("u8"))
        assert segments is not None
        found.append((steps, segments, np.zeros(0, dtype="u8") if lines is None else lines))
    return joined(found)


def _requests(handles: Sequence[int]) -> NDArray[Any] | None:
    found = [_array(handle, "core_requests", core.REQUEST) for handle in handles]
    kept = [one for one in found if one is not None]
    return np.concatenate(kept) if kept else None


def _array(handle: int, function: str, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    count = ctypes.c_uint64()
    address = getattr(core.library(), function)(handle, ctypes.byref(count))
    if address is None:
        return None
    return np.frombuffer(ctypes.string_at(address, count.value * dtype.itemsize), dtype=dtype)


def _total(counts: NDArray[Any]) -> NDArray[Any]:
    total = np.zeros(counts.shape[1], dtype=core.COUNT)
    for name in core.COUNT.names or ():
        total[name] = counts[name].sum(axis=0)
    return total


def _new_worker(launch: core.Launch, counts: NDArray[Any], budget: int) -> int:
    handle = core.library().core_new_worker(ctypes.byref(launch), counts.ctypes.data, budget)
    if not handle:
        raise LaunchError("the simulation does not fit into this machine's memory")
    return int(handle)


def _drive(
    launch: core.Launch, handles: Sequence[int], chosen: range, advance: Callable[[int], None]
) -> None:
    """Let the workers take pieces of the range until none is left, or one has failed."""
    pieces = _pieces(chosen, len(handles))
    alone = len(handles) == len(chosen) == 1
    if alone and current_thread() is not main_thread():  # which would not hear of Ctrl-C
        core.library().core_run(handles[0], chosen.start, chosen.stop, chosen.step)
        advance(1)
        return
    with ThreadPoolExecutor(len(handles)) as pool:
        running: dict[Future[int], tuple[int, int]] = {}
        idle = list(handles)
        patience_ends = inf
        try:
            while True:
                while idle and (piece := next(pieces, None)) is not None:
                    handle = idle.pop()
                    future = pool.submit(_run_piece, handle, piece)
                    running[future] = handle, len(piece)
                if not running:
                    return
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                if monotonic() > patience_ends:
                    launch.cancel = 1
                for future in done:
                    handle, blocks = running.pop(future)
                    if future.result():
                        pieces = iter(())
                        patience_ends = min(patience_ends, monotonic() + _PATIENCE_S)
                    idle.append(handle)
                    advance(blocks)
        except BaseException:
            launch.cancel = 1
            raise


def _run_piece(handle: int, piece: range) -> int:
    return int(core.library().core_run(handle, piece.start, piece.stop, piece.step))


def _pieces(chosen: range, workers: int) -> Iterator[range]:
    size = max(1, len(chosen) // (workers * _PIECES_PER_WORKER))
    return (chosen[first : first + size] for first in range(0, len(chosen), size))


def _faults(handle: int) -> tuple[Fault, Fault, int]:
    fault, unwritten, reads = core.Fault(), core.Fault(), ctypes.c_uint64()
    core.library().core_faults(
        handle, ctypes.byref(fault), ctypes.byref(unwritten), ctypes.byref(reads)
    )
    return _fault(fault), _fault(unwritten), reads.value


def _fault(raw: core.Fault) -> Fault:
    return Fault(
        kind=raw.kind,
        instruction=raw.pc,
        space=raw.space,
        width_bytes=raw.width,
        address=raw.address,
        block=raw.block,
        warp=raw.warp,
        lane=raw.lane,
        is_store=bool(raw.is_store),
        waiting=raw.waiting,
    )


@contextmanager
def _launched(bound: Bound) -> Iterator[core.Launch]:
    """The launch as the core reads it; what it points to lives as long as the context."""
    program = np.ascontiguousarray(bound.lowered.program)
    values = [_value(entry, bound.banks) for entry in bound.lowered.pool]
    pool = _aligned(np.repeat(np.array(values, dtype=np.uint32), core.LANES))
    table = allocation_table(bound.buffers)
    launch = core.Launch(
        program=program.ctypes.data,
        length=len(program),
        slots=bound.lowered.slots,
        pool=pool.ctypes.data,
        allocations=table.ctypes.data,
        allocation_count=len(bound.buffers),
        architecture=bound.architecture,
        grid=bound.geometry.grid,
        block=bound.geometry.block,
        shared_base=bound.shared_base,
        shared_bytes=bound.shared_bytes,
        local_bytes=bound.local_bytes,
        first_ur=bound.lowered.first_uniform,
        shared_window=SHARED_WINDOW,
        local_window=LOCAL_WINDOW,
        most_touches=bound.most_touches,
        most_steps=bound.most_steps,
        most_requests=bound.most_requests,
    )
    if bound.spread is not None:
        launch.spread_base, launch.spread_bytes = bound.spread.address, bound.spread.size_bytes
        launch.spread_from, launch.spread_to = bound.spread.pitch, bound.spread.kept_pitch
    for number, data in bound.banks.items():
        launch.banks[number] = core.Bank(data.ctypes.data, data.nbytes)
    yield launch
    del program, pool, table


def _value(entry: int | ConstantWord, banks: Mapping[int, NDArray[np.uint8]]) -> int:
    """A pool entry's value in this launch; a word beyond its bank reads as zero."""
    if isinstance(entry, int):
        return entry
    bank = banks.get(entry.bank)
    if bank is None or entry.offset + 4 > bank.nbytes:
        return 0
    return int(bank[entry.offset : entry.offset + 4].view("<u4")[0])


def _aligned(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A copy that begins on a cache line."""
    room = np.empty(words.size + 16, dtype=np.uint32)
    start = (-room.ctypes.data % 64) // 4
    copy = room[start : start + words.size]
    copy[:] = words
    return copy


def linear(index: Iterable[int], grid: tuple[int, int, int]) -> int:
    """The linear index of block (x, y, z)."""
    x, y, z = index
    return x + grid[0] * (y + grid[1] * z)
