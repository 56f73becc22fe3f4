"""Progress bars on standard error."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Self

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from toolkit.cli.terminal import err, note, say
from toolkit.launch.host_resources import available_bytes
from toolkit.launch.progress import Progress

if TYPE_CHECKING:
    from toolkit.execution.wall_time import WallTime

JUDGED_AFTER_S = 3.0  # of a simulation: the blocks that are done then say how long all take
LONG_S = 60.0
SAMPLE_BLOCKS = 100  # a sample that is suggested instead of all blocks
MUCH_MEMORY = 0.5  # of what is free


class _TimeLeft(TimeRemainingColumn):
    """Estimated time for the rest at the rate so far, once there is one."""

    def render(self, task: Task) -> Text:
        if task.time_remaining is None:
            return Text()
        return super().render(task).append(" left")


class OneBar:
    """A bar on standard error while something is done; nothing where that is no terminal."""

    def __init__(self, *columns: ProgressColumn, description: str = "", **fields: Any) -> None:
        self._bar = Bar(
            *columns,
            console=err,
            transient=True,
            disable=not err.is_terminal,
            speed_estimate_period=math.inf,  # one block may take long
        )
        self._task = self._bar.add_task(description, total=None, **fields)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        self._bar.stop()


class TerminalProgress(OneBar, Progress):
    """The bar of a run, beside its notices."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.fields[stage]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _TimeLeft(compact=True),
            TextColumn("{task.description}"),
            stage="",
        )
        self._step = ""

    def stage(self, text: str, steps: int) -> None:
        self._step = ""
        self._bar.reset(self._task, total=steps, stage=escape(text), description="")

    def step(self, text: str) -> None:
        if self._step:
            self._bar.advance(self._task)
        self._step = text
        self.detail(text)

    def detail(self, text: str) -> None:
        self._bar.update(self._task, description=escape(text))

    def notice(self, text: str) -> None:
        note(text, err)


class SimulationProgress(OneBar):
    """The bar of a simulation, and a line each if it takes much memory or more than a minute.

    The time is announced before all blocks are executed, also that it is not known, or when the
    first ones show that they take longer than it seemed.
    """

    def __init__(self, what: str, needed_bytes: int = 0) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("blocks"),
            TimeElapsedColumn(),
            _TimeLeft(compact=True),
            description=f"simulating {escape(what)}",
        )
        self._first = 0.0, 0  # when, and how many blocks were done then
        self._of = 0
        self._is_judged = False
        available = available_bytes()
        if MUCH_MEMORY * available < needed_bytes <= available:
            say(
                f"the buffers need about {needed_bytes / 1e9:.1f} GB of the "
                f"{available / 1e9:.1f} GB that are free: make them smaller, or leave out --save, "
                "--json and --blocks all, which need copies",
                console=err,
            )

    def announce(self, estimate: WallTime) -> None:
        """Say how long the blocks will take if that is more than a minute, or not known."""
        self._is_judged = estimate.seconds > LONG_S
        if estimate.is_of_some:
            say(
                "blocks take long: a few are executed, and counters are estimates, unless all "
                "blocks take at most the SECONDS of --limit. Smaller inputs take less time",
                console=err,
            )
        elif self._is_judged:
            how = "at least" if estimate.is_least else "about"
            _say_long(f"{estimate.blocks:,} blocks take {how}", estimate.seconds, estimate.blocks)
        elif estimate.is_least:
            say(
                "the remaining time is unknown until some blocks finish: each takes long, or they "
                "wait for each other. Stop with Ctrl-C and give a smaller grid or smaller inputs",
                console=err,
            )

    def advance(self, done: int, of: int) -> None:
        self._bar.update(self._task, completed=done, total=of)
        now_s = time.monotonic()
        if self._of != of or done < self._first[1]:  # other blocks than before
            self._first, self._of = (now_s, done), of
        began_s, before = self._first
        if done > before and not self._is_judged and now_s - began_s > JUDGED_AFTER_S:
            self._is_judged = True
            if (left_s := (now_s - began_s) * (of - done) / (done - before)) > LONG_S:
                _say_long(f"{of - done:,} of {of:,} blocks are left, about", left_s, of)


def _say_long(what: str, seconds: float, blocks: int) -> None:
    less = "a smaller grid or smaller inputs"
    if blocks > SAMPLE_BLOCKS:
        less = f"a smaller grid, or --blocks {SAMPLE_BLOCKS}, which executes a sample of the blocks"
    say(f"{what} {seconds / 60:.0f} min: stop with Ctrl-C and give {less}", console=err)
