"""Run a bound launch on the native core: blocks in, counts out."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from math import inf
from threading import Event, current_thread, main_thread
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import LaunchError
from analysis.native_threads import NativeThreads
from analysis.sm import Streams
from toolkit.launch.host_resources import available_cores
from toolkit.sass.accesses import RecordedAccesses, recorded_accesses
from toolkit.sass.atomics import Atomics, recorded_atomics, recorded_stores
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.constant_pool import pool_of
from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import Fault
from toolkit.sass.module_variables import CONSTANT_BANK
from toolkit.sass.origins import Origins, origins_of
from toolkit.sass.printed import NOTHING_PRINTED, PrintedRecords, printed_records, text_of
from toolkit.sass.space import HEAP_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, allocation_table
from toolkit.sass.streams import Recorded, joined

UNLIMITED = 1 << 62

# Work is handed out in pieces, so that progress shows and Ctrl-C is heard.
_PIECES_PER_WORKER = 16

# After a fault the pieces before it are still finished, so that the same block is blamed each
# time, unless they take too long.
_PATIENCE_S = 1.0
MOST_APART = 128  # blocks whose counts are kept apart at a time: of a large kernel, 1 MB each
MOST_COMPARED = 3  # the last counts that differed, with which new ones are compared
_POLL_S = 0.2  # how often finished blocks are told

# kinds of fault, as core.h numbers them
OK, OUT_OF_BOUNDS, MISALIGNED, DEADLOCK, LIMIT, CANCELLED, BAD_TARGET, TRAP = range(8)
UNIMPLEMENTED, NO_MEMORY, WRITE_TO_CONSTANT, ARRIVALS, NO_TENSOR_MAP = range(8, 13)
BAD_FREE, PARTIAL_WARP, NO_TEXTURE, SURFACE_BOUNDS, SURFACE_MISALIGNED = range(13, 18)
DESCRIPTOR, PARTIAL_GROUP = range(18, 20)
SPACES = ("global", "shared", "local", "constant")


class FaultError(LaunchError):
    """Error of a kernel that the core stopped. `fault` has the place; callers add the words."""

    def __init__(self, fault: Fault, printed: PrintedRecords = NOTHING_PRINTED) -> None:
        super().__init__(f"fault {fault.kind} stopped the kernel at {fault.instruction}")
        self.fault, self.printed = fault, text_of(printed)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Result of executing some blocks: counts per instruction, reads of unwritten shared memory.

    `accesses` are the accesses of each block to global memory, `requests` the first one of each
    instruction, in the block with the lowest index (`core.REQUEST`; of several runs the first has
    those of all). Each is None if not requested, `accesses` also if there were more than the bound
    launch allows. `atomics` and `stores` are the atomic operations on global memory and the stores
    to it, requested with the accesses. `recorded` is what the warps of each worker executed.
    `origins` are those of the last block, if they were followed. `work` holds the number of
    instructions of each block in order (`core.WORK`), None if not requested.
    """

    counts: NDArray[Any]
    unwritten_reads: int
    first_unwritten: Fault | None
    accesses: RecordedAccesses | None = None
    atomics: Atomics | None = None
    stores: Atomics | None = None
    recorded: Sequence[Recorded] = ()
    requests: NDArray[Any] | None = None
    printed: PrintedRecords = NOTHING_PRINTED
    origins: Origins | None = None
    work: NDArray[Any] | None = None

    @property
    def streams(self) -> Streams | None:
        """Stream of each warp; None if it was not requested or part of it was lost."""
        return joined([self.recorded]) if self.recorded else None


def run_blocks(
    bound: BoundLaunch,
    blocks: Sequence[range],
    *,
    others: range = range(0),
    max_instructions: int | None = None,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
    stop: Event | None = None,
) -> list[Run]:
    """Execute the blocks of each range of linear indices; one Run per range, in order.

    The other blocks of their clusters and, where `others` are given, those are executed too, but
    not counted. `advance` is told how many blocks are done, now and then. Raises FaultError, and
    LaunchError where there is not enough memory. On KeyboardInterrupt the core stops within
    milliseconds; where `stop` is set by another thread, soon, with CancelledError.
    """
    cores = 1 if bound.in_order else workers or available_cores()
    budget = UNLIMITED if max_instructions is None else max_instructions
    everything = range(bound.geometry.blocks)
    with launched(bound) as launch, _work_noted(launch, bound) as work:
        if blocks == [everything]:
            chosen = range(bound.clusters)
        elif len(blocks) == 1 and not others and bound.cluster_blocks == 1:
            (chosen,) = blocks
        else:
            runs = _run_among(launch, bound, budget, advance, stop, blocks, others, cores)
            return _with_work(runs, blocks, work)
        runs = [_run_range(launch, bound, budget, advance, stop, chosen, cores)]
        return _with_work(runs, blocks, work)


def ticks_in_time(bound: BoundLaunch, start: int, max_instructions: int) -> int:
    """Ticks until all blocks have ended that run in time; `start`: until a later block begins.

    Fewer if they execute more than `max_instructions`. Raises as `run_blocks` does.
    """
    with launched(bound) as launch:
        launch.start_ticks = start
        with worker_handles(launch, 1, max_instructions) as (handles, counts):
            drive(launch, handles, iter([range(bound.clusters)]), lambda done: None)
            if faults_of(handles[0])[0].kind != LIMIT:
                _checked(handles, handles, counts, bound)
            return int(core.library().core_now(handles[0]))


def one_by_one(blocks: Iterable[int]) -> list[range]:
    """Ranges for `run_blocks` that give each block a Run of its own."""
    return [range(block, block + 1) for block in blocks]


@contextmanager
def _work_noted(launch: core.CoreLaunch, bound: BoundLaunch) -> Iterator[NDArray[Any] | None]:
    """Array in which the core counts the instructions of each block; None if not requested."""
    work = np.zeros(bound.geometry.blocks, dtype=core.WORK) if bound.notes_work else None
    if work is not None:
        launch.work = work.ctypes.data
    yield work


def _with_work(
    runs: Sequence[Run], blocks: Sequence[range], work: NDArray[Any] | None
) -> list[Run]:
    """Runs of these ranges of blocks, with the work of each of their blocks."""
    if work is None:
        return list(runs)
    return [
        replace(run, work=work[chosen.start : chosen.stop : chosen.step].copy())
        for run, chosen in zip(runs, blocks, strict=True)
    ]


def _with_shared_counts(runs: Sequence[Run], known: deque[NDArray[Any]]) -> Iterator[Run]:
    """The runs, of which those with equal counts hold the same array: most blocks are alike."""
    for run in runs:
        words = run.counts.view(np.uint64)
        same = next((one for one in known if np.array_equal(one.view(np.uint64), words)), None)
        if same is None:
            run.counts.flags.writeable = False
            known.append(run.counts)
        yield run if same is None else replace(run, counts=same)


def _run_range(
    launch: core.CoreLaunch,
    bound: BoundLaunch,
    budget: int,
    advance: Callable[[int], None],
    stop: Event | None,
    chosen: range,
    workers: int,
) -> Run:
    """Execute clusters and count all of their blocks."""
    workers = min(workers, len(chosen))
    # blocks that wait for others must be able to run beside them
    pieces = iter([chosen]) if bound.blocks_meet else _pieces(chosen, workers)
    with worker_handles(launch, workers, budget) as (handles, counts):
        drive(launch, handles, pieces, advance, stop=stop)
        ran = _checked(handles, handles, counts, bound)
        return replace(ran, requests=_first_requests(handles, bound))


def _run_among(
    launch: core.CoreLaunch,
    bound: BoundLaunch,
    budget: int,
    advance: Callable[[int], None],
    stop: Event | None,
    blocks: Sequence[range],
    others: range,
    workers: int,
) -> list[Run]:
    """Execute the clusters of some blocks, each range of which is counted apart."""
    belong_together = bound.blocks_meet or bound.cluster_blocks > 1 or others
    most = len(blocks) if belong_together else MOST_APART
    found: list[Run] = []
    known: deque[NDArray[Any]] = deque(maxlen=MOST_COMPARED)

    def clusters_of(some: Sequence[range]) -> list[int]:
        return sorted({bound.cluster_of(b) for chosen in (*some, others) for b in chosen})

    with worker_handles(launch, min(workers, len(clusters_of(blocks))), budget) as (handles, _):
        for first in range(0, len(blocks), most):
            some = blocks[first : first + most]
            clusters = clusters_of(some)
            pieces = [range(c, c + 1) for c in clusters]
            if bound.blocks_meet and len(clusters) == bound.clusters:
                pieces = [range(bound.clusters)]
            with worker_handles(launch, len(some), budget, runs=False) as (keepers, counts):
                kept = [(b, k) for k, chosen in zip(keepers, some, strict=True) for b in chosen]
                drive(launch, handles, iter(pieces), advance, kept, stop=stop)
                ran = [
                    _checked(handles, [keeper], counts[k : k + 1], bound)
                    for k, keeper in enumerate(keepers)
                ]
            found += _with_shared_counts(ran, known)
        found[0] = replace(found[0], requests=_first_requests(handles, bound))
    return found


def _checked(
    handles: Sequence[int],
    keepers: Sequence[int],
    counts: Sequence[NDArray[Any]],
    bound: BoundLaunch,
) -> Run:
    """Run of blocks that `handles` executed and `keepers` counted (they may be the same workers).

    Raises FaultError for the fault in the first block.
    """
    expected = (OK, CANCELLED, LIMIT) if bound.cuts else (OK, CANCELLED)
    failed = [fault for fault, _, _ in map(faults_of, handles) if fault.kind not in expected]
    if failed:
        raise FaultError(min(failed, key=lambda fault: fault.block), printed_records(keepers))
    of_keepers = [(first, reads) for _, first, reads in map(faults_of, keepers)]
    unwritten = [first for first, reads in of_keepers if reads]
    return Run(
        counts=_total(counts),
        unwritten_reads=sum(reads for _, reads in of_keepers),
        first_unwritten=min(unwritten, key=lambda fault: fault.block, default=None),
        accesses=recorded_accesses(keepers, bound.most_accesses) if bound.most_accesses else None,
        atomics=recorded_atomics(keepers) if bound.most_accesses else None,
        stores=recorded_stores(keepers) if bound.most_accesses else None,
        recorded=tuple(Recorded(k, is_cut=bound.cuts) for k in keepers) if bound.most_steps else (),
        printed=printed_records(keepers),
        origins=origins_of(keepers[0], len(bound.lowered.program), len(bound.buffers))
        if bound.regions
        else None,
    )


def _first_requests(workers: Sequence[int], bound: BoundLaunch) -> NDArray[Any] | None:
    """The first request of each instruction, in the block with the lowest index."""
    length = len(bound.lowered.program)
    noted = (core.array(core.library().core_requests(k), length, core.REQUEST) for k in workers)
    found = [rows[rows["mask"] > 0] for rows in noted if rows is not None]
    if not found:
        return None
    rows = np.concatenate(found)
    rows = rows[np.lexsort((rows["block"], rows["pc"]))]
    return rows[np.flatnonzero(np.diff(rows["pc"].astype(np.int64), prepend=-1))]


@contextmanager
def worker_handles(
    launch: core.CoreLaunch, count: int, budget: int, *, runs: bool = True
) -> Iterator[tuple[list[int], list[NDArray[Any]]]]:
    """Workers of the core and their counts; without `runs` they only keep others' counts."""
    counts = [np.zeros(launch.length, dtype=core.COUNT) for _ in range(count)]
    handles: list[int] = []
    noted = launch.notes_requests
    launch.notes_requests &= runs
    try:
        for row in counts:
            handle = core.library().core_new_worker(
                ctypes.byref(launch), row.ctypes.data, budget, runs
            )
            if not handle:
                raise LaunchError("the simulation does not fit into this machine's memory")
            handles.append(int(handle))
        launch.notes_requests = noted
        yield handles, counts
    finally:
        for handle in handles:
            core.library().core_free_worker(handle)


def _total(counts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    total = counts[0]
    for other in counts[1:]:
        for name in core.COUNT.names or ():
            total[name] += other[name]
    return total


def drive(
    launch: core.CoreLaunch,
    handles: Sequence[int],
    pieces: Iterator[range],
    advance: Callable[[int], None],
    kept: Sequence[tuple[int, int]] | None = None,
    *,
    stop: Event | None = None,
) -> None:
    """Let the workers take ranges of clusters until none is left, or one has failed.

    `kept` are pairs of a block and the worker that counts it; if it is given, other blocks are not
    counted. `advance` gets the number of counted blocks that finished since its last call.
    """
    table = None if kept is None else (core.Kept * len(kept))(*starmap(core.Kept, kept))
    told = sum(map(core.library().core_finished, handles))

    def run_piece(handle: int, piece: range) -> int:
        length = 0 if kept is None else len(kept)
        return int(
            core.library().core_run(handle, piece.start, piece.stop, piece.step, table, length)
        )

    def tell() -> None:
        nonlocal told
        finished = sum(map(core.library().core_finished, handles))
        if finished > told:
            advance(finished - told)
            told = finished

    # another thread would not hear of Ctrl-C
    if len(handles) == 1 and current_thread() is not main_thread() and not stop:
        for piece in pieces:
            failed = run_piece(handles[0], piece)
            tell()
            if failed:
                return
        return

    def end() -> None:
        launch.cancel = 1

    with NativeThreads(len(handles), end) as pool:
        running: dict[Future[int], int] = {}
        idle = list(handles)
        patience_ends = inf
        while True:
            while idle and (given := next(pieces, None)) is not None:
                handle = idle.pop()
                running[pool.submit(partial(run_piece, handle, given))] = handle
            if not running:
                return
            done, _ = wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            if stop and stop.is_set():
                raise CancelledError
            if monotonic() > patience_ends:
                end()
            for future in done:
                idle.append(running.pop(future))
                if future.result():
                    pieces = iter(())
                    patience_ends = min(patience_ends, monotonic() + _PATIENCE_S)
            tell()


def _pieces(chosen: range, workers: int) -> Iterator[range]:
    size = max(1, len(chosen) // (workers * _PIECES_PER_WORKER))
    return (chosen[first : first + size] for first in range(0, len(chosen), size))


def faults_of(handle: int) -> tuple[Fault, Fault, int]:
    fault, unwritten, reads = Fault(), Fault(), ctypes.c_uint64()
    core.library().core_faults(
        handle, ctypes.byref(fault), ctypes.byref(unwritten), ctypes.byref(reads)
    )
    return fault, unwritten, reads.value


# What the core's launch has under the same names.
_OF_THE_BOUND_LAUNCH = (
    *("cluster", "local_bytes", "notes_requests", "notes_atomics", "most_steps", "most_accesses"),
    *("shared_base", "shared_bytes", "heap_bytes", "at_once", "registers", "checks_products"),
    *("quantum", "window", "period", "gives_up", "leaves_bounds"),
)


@contextmanager
def launched(bound: BoundLaunch) -> Iterator[core.CoreLaunch]:
    """Launch as the core reads it; the memory that it points to lives as long as the context."""
    program = np.ascontiguousarray(bound.lowered.program)
    pool = pool_of(bound.lowered.pool, bound.banks)
    table = allocation_table(bound.buffers)
    launch = core.CoreLaunch(
        program=program.ctypes.data,
        length=len(program),
        slots=bound.lowered.slots,
        pool=pool.ctypes.data,
        allocations=table.ctypes.data,
        allocation_count=len(bound.buffers),
        grid=bound.geometry.grid,
        block=bound.geometry.block,
        shared_window=SHARED_WINDOW,
        local_window=LOCAL_WINDOW,
        check=bound.checked_bytes,
        heap_base=HEAP_WINDOW,
        most_resident=bound.most_resident if bound.blocks_meet else 1,
        **{name: getattr(bound, name) for name in _OF_THE_BOUND_LAUNCH},
    )
    if bound.spread is not None:
        launch.spread_base, launch.spread_bytes = bound.spread.address, bound.spread.size_bytes
        launch.spread_from, launch.spread_to = bound.spread.pitch, bound.spread.kept_pitch
    if bound.regions is not None:
        launch.follows = 1
        launch.under = bound.regions.under.ctypes.data
        launch.region_ends = bound.regions.ends.ctypes.data
        launch.region_writes = bound.regions.writes.ctypes.data
    if bound.paces is not None:
        launch.paces = bound.paces.ctypes.data
    if bound.tickets is not None:
        launch.tickets, launch.ticket_count = bound.tickets.ctypes.data, len(bound.tickets)
    if bound.textures is not None:
        launch.textures, launch.texture_count = bound.textures.ctypes.data, len(bound.textures)
    for number, data in bound.banks.items():
        launch.banks[number] = core.Bank(data.ctypes.data, data.nbytes)
    if bound.use is not None:
        launch.banks[CONSTANT_BANK].read = bound.use.constants.ctypes.data
    try:
        yield launch
    finally:
        for buffer, row in zip(bound.buffers, table, strict=False):
            buffer.accessed[0] |= row["touched"]
        if bound.use is not None:
            bound.use.note((buffer.address for buffer in bound.buffers), table["touched"])
    del program, pool
