"""`simulate --watch`: run again after every save, and say what changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from analysis.comparison.counts import Outcome
from analysis.errors import InputError, shortened
from reports.pages.comparison import brief
from reports.sections.launch import counters_table
from toolkit.cli.completed_options import completed
from toolkit.cli.launch_tables import print_simulated
from toolkit.cli.options import LaunchOptions
from toolkit.cli.parsed_call import parse_call
from toolkit.cli.progress import SimulationProgress
from toolkit.cli.terminal import COST, GAIN, err, note, out, rich_table, say
from toolkit.cli.watched_runs import WatchedRun, Worker
from toolkit.frontends.script_names import is_script
from toolkit.rungs.matrices import chosen_seed
from toolkit.rungs.names import is_name
from toolkit.store.watched_files import WatchedFiles

POLL_S = 0.1
TOGETHER_S = 0.3  # counters wait so long for the time, to be shown with it
MOST_LINES = 10  # of the source lines that changed


def watch(launch: LaunchOptions, *, top: int | None) -> NoReturn:
    """Run a launch now and after every save of its source, or of what that includes.

    For machine code, this is its file and the source that its line table leads to.

    Raises as `parse_call` does at the start, and KeyboardInterrupt.
    """
    if is_name(launch.source):
        raise InputError(
            f"--watch needs a file, and {launch.source} is a rung: copy its source, and give grid, "
            "block and arguments"
        )
    if is_script(launch.source):
        raise InputError(
            "--watch takes CUDA C++ or a cubin, not a kernel of a Python file: leave out --watch, "
            "and run the command again after each save"
        )
    if not Path(launch.source).is_file():
        raise InputError(
            f"--watch needs a file, and {shortened(launch.source)!r} is not one: give one"
        )
    launch = replace(launch, seed=chosen_seed(launch.seed))  # runs differ by their source alone
    with closing(Worker(launch)) as worker:
        options = completed(launch, "simulate")
        known = replace(options.launch, arguments=[one for one in options.arguments if one])
        code = parse_call(known).code
        files = WatchedFiles(
            Path(launch.source),
            launch.options or (),
            others=[code.source_path] if code and code.source_path else [],
        )
        watch_files(files, worker, top=top)


def watch_files(
    files: WatchedFiles,
    worker: Worker,
    *,
    top: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Run, show and wait in turn. Only an exception ends it."""
    before: WatchedRun | None = None
    while True:
        if saved := files.take():
            say(f"{datetime.now():%H:%M:%S} saved: {', '.join(saved)}", "bold")
        before = _run(files, worker, before, top) or before
        if not saved:
            say(f"watching {files.source.name}: press Ctrl-C to stop", console=err)
        while not files.are_newer():
            if files.lost_source():
                say(f"{files.source} is gone: waiting for it", console=err)
            sleep(POLL_S)


def _run(
    files: WatchedFiles, worker: Worker, before: WatchedRun | None, top: int | None
) -> WatchedRun | None:
    """The whole answer of a run, shown; None if it failed or a newer save cancelled it."""
    counted: WatchedRun | None = None  # and not shown yet
    shown: WatchedRun | None = None
    worker.begin()
    with SimulationProgress(files.source.name) as progress:
        while not files.are_newer():
            match worker.answer(TOGETHER_S if counted else POLL_S):
                case int(done), int(of):
                    progress.advance(done, of)
                case WatchedRun(is_whole=False) as counted:
                    pass
                case WatchedRun() as whole:
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
    worker.cancel()
    say("cancelled: the file was saved again", console=err)
    return None


def _show(
    answer: WatchedRun, before: WatchedRun | None, shown: WatchedRun | None, top: int | None
) -> None:
    """Print a first run completely; of later runs only the changes that are not yet `shown`."""
    if before is not None:
        _show_changes(answer, before, shown)
    elif answer.is_whole:
        print_simulated(answer.simulated, top=top)
    else:
        execution = answer.simulated.execution
        counters = counters_table(execution.instructions, execution.counters)
        out.print(rich_table(counters.without_last_column))


def _show_changes(answer: WatchedRun, before: WatchedRun, shown: WatchedRun | None) -> None:
    found = before.compared_with(answer)
    (pair,) = found.pairs
    known = before.compared_with(shown).pairs[0].counts if shown else ()
    rest = replace(pair, counts=tuple(one for one in pair.counts if one not in known))
    told = brief(replace(found, pairs=(rest,)), MOST_LINES)
    if pair.predicted:
        is_new = pair.predicted.verdict == Outcome.CHANGED
        first, *others = told.sentences[:-1] if is_new else ("Predicted time: no change.",)
        say(first, {True: COST, False: GAIN, None: "bold"}[told.is_worse])
        for sentence in others:
            say(sentence)
    if not pair.changed and not shown:
        say("Counts: no change.")
    for title, rows in told.tables:
        out.print(rich_table(rows, title=title))
    if answer.is_whole:
        remarks, earlier = (one.remarks(is_timed=not pair.predicted) for one in (answer, before))
        for remark in remarks:
            if remark not in earlier:
                note(remark)
