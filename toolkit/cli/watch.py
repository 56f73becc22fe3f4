"""`simulate --watch`: run again after every save, and say what changed.

The runs are in a process of their own: to cancel one, whatever it is doing, that process is ended.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import NoReturn

from analysis.comparison.counts import Outcome
from analysis.comparison.runs import RunComparison, compare_launches
from analysis.errors import InputError, ToolkitError, shortened
from reports.pages.comparison import brief
from reports.sections.launch import counters_table
from toolkit.cli.launch_options import Simulated, parse_call
from toolkit.cli.launch_tables import print_simulated, record
from toolkit.cli.options import LaunchOptions
from toolkit.cli.progress import SimulationProgress
from toolkit.cli.terminal import err, note, out, rich_table, say
from toolkit.launch.launch import Execution
from toolkit.rungs.launch import is_name
from toolkit.rungs.matrices import chosen_seed
from toolkit.store.watched_files import WatchedFiles

POLL_S = 0.1
TOGETHER_S = 0.3  # counters wait so long for the time, to be shown with it
GRACE_S = 0.3  # between asking a process to end and ending it
MOST_LINES = 10  # of the source lines that changed


def watch(launch: LaunchOptions, *, top: int | None) -> NoReturn:
    """Run a launch now and after every save of its source, or of what that includes.

    Raises as `parse_call` does at the start, and KeyboardInterrupt.
    """
    if is_name(launch.source):
        raise InputError(
            f"--watch needs a file, and {launch.source} is a rung: copy its source, and give grid, "
            "block and arguments"
        )
    if not Path(launch.source).is_file():
        raise InputError(f"--watch needs a file, and {shortened(launch.source)!r} is none")
    launch = replace(launch, seed=chosen_seed(launch.seed))  # runs differ by their source alone
    with closing(Worker(launch)) as worker:
        parse_call(launch)
        watch_files(WatchedFiles(Path(launch.source), launch.options or ()), worker, top=top)


def watch_files(
    files: WatchedFiles,
    worker: Worker,
    *,
    top: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Run, show and wait in turn. Only an exception ends it."""
    before: Answer | None = None
    while True:
        if saved := files.take():
            say(f"{datetime.now():%H:%M:%S} saved: {', '.join(saved)}", "bold")
        before = _run(files, worker, before, top) or before
        if not saved:
            say(f"watching {files.source.name}: Ctrl-C ends it", console=err)
        while not files.are_newer():
            if files.lost_source():
                say(f"{files.source} is gone: waiting for it", console=err)
            sleep(POLL_S)


def _run(
    files: WatchedFiles, worker: Worker, before: Answer | None, top: int | None
) -> Answer | None:
    """The whole answer of a run, shown; None if it failed or a newer save cancelled it."""
    counted: Answer | None = None  # and not shown yet
    shown: Answer | None = None
    worker.begin()
    with SimulationProgress(files.source.name) as progress:
        while not files.are_newer():
            match worker.answer(TOGETHER_S if counted else POLL_S):
                case int(done), int(of):
                    progress.advance(done, of)
                case Answer(is_whole=False) as counted:
                    pass
                case Answer() as whole:
                    progress.end()
                    _show(whole, before, shown, top)
                    return whole
                case str(reason):
                    progress.end()
                    say(f" {reason}", "bold red", lead="error:", console=err)
                    return None
                case None if counted:
                    progress.end()
                    _show(counted, before, None, top)
                    counted, shown = None, counted
    worker.close()
    say("cancelled by a newer save", console=err)
    return None


def _show(answer: Answer, before: Answer | None, shown: Answer | None, top: int | None) -> None:
    """Everything of a first run; of another one what changed, without what is `shown` already."""
    if before is not None:
        _show_changes(answer, before, shown)
    elif answer.is_whole:
        print_simulated(answer.simulated, top=top)
    else:
        execution = answer.simulated.execution
        counters = counters_table(execution.instructions, execution.counters)
        out.print(rich_table(counters.without_last_column))


def _show_changes(answer: Answer, before: Answer, shown: Answer | None) -> None:
    found = before.compared_with(answer)
    (pair,) = found.pairs
    known = before.compared_with(shown).pairs[0].counts if shown else ()
    rest = replace(pair, counts=tuple(one for one in pair.counts if one not in known))
    told = brief(replace(found, pairs=(rest,)), MOST_LINES)
    if pair.predicted:
        is_new = pair.predicted.verdict == Outcome.CHANGED
        say(told.sentences[-1] if is_new else "Predicted time: no change.", "bold")
    if not pair.changed and not shown:
        say("Counts: no change.")
    for title, rows in told.tables:
        if rows.rows:
            out.print(rich_table(rows, title=title))
    if answer.is_whole:
        remarks, earlier = (one.remarks(is_timed=not pair.predicted) for one in (answer, before))
        for remark in remarks:
            if remark not in earlier:
                note(remark)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a run, without outputs; counters alone unless it `is_whole`."""

    simulated: Simulated
    is_whole: bool

    def remarks(self, *, is_timed: bool) -> list[str]:
        """What the reader should know; the time too, or why there is none, if `is_timed`."""
        execution = self.simulated.execution
        return [*execution.verdict.splitlines()[: int(is_timed)], *execution.notes]

    def compared_with(self, after: Answer) -> RunComparison:
        return compare_launches(record(self.simulated), record(after.simulated))


class Worker:
    """A process that executes a launch whenever a run begins."""

    def __init__(self, launch: LaunchOptions) -> None:
        self._launch = launch
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = Pipe()
        with theirs:
            target = get_context("spawn").Process  # a fork would share the compiler's process
            self._process = target(target=_serve, args=(theirs, self._launch), daemon=True)
            self._process.start()

    def begin(self) -> None:
        """Execute the launch as its files are now."""
        if not self._process.is_alive():
            self._start()
        self._pipe.send(None)

    def answer(self, limit_s: float) -> Answer | tuple[int, int] | str | None:
        """Progress in blocks, an answer or what went wrong; None if nothing comes in time."""
        try:
            return self._pipe.recv() if self._pipe.poll(limit_s) else None
        except (EOFError, ConnectionError):
            self._process.join(GRACE_S)
            self.close()
            return f"the process that ran it died (exit code {self._process.exitcode})"

    def close(self) -> None:
        """End the process, whatever it does."""
        for stop in (self._process.terminate, self._process.kill):
            stop()
            self._process.join(GRACE_S)
        self._pipe.close()


def _serve(pipe: Connection, launch: LaunchOptions) -> None:
    """Be the process: run whenever something comes, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the compiler ends with it
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            pipe.recv()
            pipe.send(_ran(launch, pipe.send))


def _ran(launch: LaunchOptions, tell: Callable[[object], None]) -> Answer | str:
    """A run's answer, after `tell` had its progress and its counters; or what went wrong."""

    def answer(execution: Execution, *, is_whole: bool = False) -> Answer:
        simulated = Simulated(call=call, execution=replace(execution, outputs=()))
        return Answer(simulated=simulated, is_whole=is_whole)

    try:
        call = parse_call(launch)
        simulated = call.run(lambda *done: tell(done), lambda counted: tell(answer(counted)))
        return answer(simulated.execution, is_whole=True)
    except ToolkitError as error:
        return str(error)
