"""Rungs that other processes simulate beside this one: most of the work is Python's own.

Each process is a fresh interpreter with a bench of its own, which finds machine code in the cache.
It takes rungs from the end of the list, this process takes them from the beginning. Where one
cannot be started, dies, or does not know a rung, this process does the work.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, NamedTuple

from analysis.errors import LaunchError
from analysis.problem import Gemm
from analysis.records.profile import Listing, Record
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection
from kernels.variant import Variant
from toolkit.gpu.worker_process import Isolated
from toolkit.launch.host_resources import available_bytes, available_cores, blas_on_one_thread
from toolkit.launch.progress import Progress
from toolkit.profiling.record import planned
from toolkit.profiling.resume import digest
from toolkit.rungs.matrices import Workload

MOST = 4  # processes with this one
FEWEST_RUNGS = 4  # for each: one takes half a second to start
COPIES = 6  # of A, B and C, that each takes at most
LIMIT_S = 86_400.0

Planned = tuple[Selection, Record]


class Done(NamedTuple):
    """A rung with its record, and its listing by label where another process made it."""

    selection: Selection
    record: Record
    listings: dict[str, Listing] | None


class Server:
    """Server in one process: makes records of one workload with the bench that `make` returns."""

    def __init__(self, given: tuple[Any, Workload]) -> None:
        make, self._workload = given
        self._bench, self._blas = make(), blas_on_one_thread()

    def __enter__(self) -> Server:
        self._blas.__enter__()  # idle threads of BLAS keep cores busy
        wait(self._bench.ladder(self._workload).prepare_at_k(self._workload.problem))
        return self

    def __exit__(self, *exception: object) -> None:
        self._blas.__exit__(None, None, None)

    def rung(self, name: str, is_best: bool, sources: str) -> tuple[Record, dict[str, Listing]]:
        """The record of a rung and its listing; LaunchError where its source here is another."""
        selection = parse_selection(name)
        if digest([selection]) != sources:
            raise LaunchError(f"{name} has another source here")
        selection = replace(selection, stands_for=BEST) if is_best else selection
        record = planned(selection, self._workload.problem, self._bench.device)
        made = self._bench.rung(record, selection, self._workload, Progress())
        listings, self._bench.listings = self._bench.listings, {}
        return made, listings


def side_by_side(
    make: Callable[[], Any],
    made: Sequence[Planned],
    workload: Workload,
    here: Callable[[Selection, Record], Record],
    begin: Callable[[], None],
) -> Iterator[Done]:
    """Records of the rungs as they finish, made by `here` and by processes with benches of `make`.

    `begin` is called while these start, before anything is done.
    """
    waiting = deque(made)
    done: SimpleQueue[Done | None] = SimpleQueue()  # None: a process that failed
    fresh = Workload(workload.problem, workload.seed)  # without the matrices that were made
    with ThreadPoolExecutor(MOST) as pool, ExitStack() as held:
        processes = _processes(len(made), workload.problem)
        if processes:
            held.enter_context(blas_on_one_thread())
        started = []
        for _ in range(processes):
            with suppress(LaunchError):
                started.append(Isolated(Server, (make, fresh)))
                held.callback(started[-1].close, 0.0)
        begin()
        for process in started:
            pool.submit(_ask, process, waiting, done)
        for _ in made:
            found = None
            while found is None:
                if done.empty() and (one := _taken(waiting.popleft)) is not None:
                    found = Done(one[0], here(*one), None)
                else:
                    found = done.get()
            yield found


def _ask(
    process: Isolated,
    waiting: deque[Planned],
    done: SimpleQueue[Done | None],
) -> None:
    while (one := _taken(waiting.pop)) is not None:
        selection, _ = one
        assert isinstance(selection.variant, Variant)
        name = selection.variant.label(selection.parameters)
        asked = name, selection.stands_for is not None, digest([selection])
        try:
            done.put(Done(selection, *process.ask("rung", *asked, limit_s=LIMIT_S)))
        except Exception:  # whatever it is, this process makes the record, and reports it
            waiting.append(one)
            done.put(None)
            return


def _taken(take: Callable[[], Planned]) -> Planned | None:
    try:
        return take()
    except IndexError:
        return None


def _processes(rungs: int, problem: Gemm) -> int:
    """Number of processes that pay off beside this one and fit into memory."""
    if os.name != "posix":  # the pipe of `Isolated`
        return 0
    room = available_bytes() / (COPIES * problem.matrix_bytes)
    return max(0, int(min(MOST, available_cores(), rungs // FEWEST_RUNGS, room)) - 1)
