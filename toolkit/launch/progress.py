"""Interface through which a long run reports its progress; a terminal or a test implements it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Progress:
    """Receiver of the steps of a long run. This one ignores them."""

    def stage(self, text: str, steps: int) -> None:
        """Begin a stage of `steps` steps."""

    def step(self, text: str) -> None:
        """Begin a step of the stage; `text` names it."""

    def detail(self, text: str) -> None:
        """Show a detail of the current step."""

    def notice(self, text: str) -> None:
        """Show a text that the user should read, now and after the run."""

    def end(self) -> None:
        """End the progress: a terminal removes its lines."""


@dataclass
class FinishedBlocks:
    """Count of finished blocks, which is reported as `advance(done, of)` after each change."""

    of: int  # number of blocks to execute
    advance: Callable[[int, int], None] | None
    done: int = 0

    def add(self, finished: int) -> None:
        self.done += finished
        if self.advance is not None:
            self.advance(self.done, self.of)
