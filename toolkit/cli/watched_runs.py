"""Runs of a launch in processes of their own: a run can be cancelled, whatever it is doing."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, Pipe
from multiprocessing.context import SpawnProcess

from analysis.comparison.runs import RunComparison, compare_launches
from analysis.errors import ToolkitError
from toolkit.cli.call import SimulatedCall
from toolkit.cli.completed_options import completed, told_of_content
from toolkit.cli.errors import without_memory
from toolkit.cli.launch_source import compiled_beside
from toolkit.cli.launch_tables import record
from toolkit.cli.options import LaunchOptions
from toolkit.cli.parsed_call import call_of
from toolkit.launch.launch import Execution
from toolkit.machine_code.compiler_process import end_with_parent

LONG_S = 1.0  # of a run
GRACE_S = 0.3  # between asking a process to end and ending it


@dataclass(frozen=True, kw_only=True)
class WatchedRun:
    """Result of a run, without outputs; counters alone unless it `is_whole`."""

    simulated: SimulatedCall
    is_whole: bool

    def remarks(self, *, is_timed: bool) -> list[str]:
        """Notes for the reader; if `is_timed` also the time, or why there is none."""
        execution = self.simulated.execution
        return [*execution.verdict.splitlines()[: int(is_timed)], *execution.notes]

    def compared_with(self, after: WatchedRun) -> RunComparison:
        return compare_launches(record(self.simulated), record(after.simulated))


class Worker:
    """Executes a launch whenever a run begins, in a process that can be ended.

    A long run has another process ready, for the case that it is cancelled: imports take time.
    """

    def __init__(self, launch: LaunchOptions) -> None:
        self._launch = launch
        self._begun_s = 0.0
        self._processes: deque[tuple[SpawnProcess, Connection]] = deque()
        self._start()

    def _start(self) -> None:
        pipe, theirs = Pipe()
        with theirs:
            arguments = theirs, self._launch
            process = get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
            with _without_interrupts():
                process.start()
        self._processes.append((process, pipe))

    def begin(self) -> None:
        """Execute the launch as its files are now."""
        if not self._processes:
            self._start()
        self._begun_s = time.monotonic()
        with suppress(ConnectionError):  # it has died, which the answer tells
            self._processes[0][1].send(None)

    def answer(self, limit_s: float) -> WatchedRun | tuple[int, int] | str | None:
        """Progress in blocks, an answer or an error; None if nothing arrives in time."""
        process, pipe = self._processes[0]
        if len(self._processes) == 1 and time.monotonic() - self._begun_s > LONG_S:
            self._start()
        try:
            return pipe.recv() if pipe.poll(limit_s) else None
        except (EOFError, ConnectionError):
            process.join(GRACE_S)
            self.cancel()
            return f"the process that ran it died (exit code {process.exitcode})"

    def cancel(self) -> None:
        """End the run, whatever it does."""
        process, pipe = self._processes.popleft()
        for stop in (process.terminate, process.kill):
            stop()
            process.join(GRACE_S)
        pipe.close()

    def close(self) -> None:
        while self._processes:
            self.cancel()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, also while they import: their parent handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else it is started now, and lets signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, launch: LaunchOptions) -> None:
    """Run in the child: simulate for each request until the parent closes the pipe."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the compiler ends with it
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            pipe.recv()
            pipe.send(run(launch, pipe.send))


def run(launch: LaunchOptions, tell: Callable[[object], None]) -> WatchedRun | str:
    """Answer of a run, after `tell` got its progress and counters; or its error."""

    def answer(execution: Execution, *, is_whole: bool = False) -> WatchedRun:
        return WatchedRun(
            simulated=SimulatedCall(call=call, execution=execution), is_whole=is_whole
        )

    try:
        options = completed(launch, "simulate")
        with compiled_beside(options.launch) as compiled, told_of_content(options):
            call = call_of(options, compiled)
            simulated = call.run(
                compiled,
                lambda *done: tell(done),
                when_counted=lambda counted: tell(answer(counted)),
            )
        return answer(simulated.execution, is_whole=True)
    except ToolkitError as error:
        return str(error)
    except MemoryError as error:
        return without_memory(error)
