"""Interface through which a long run reports its progress; a terminal or a test implements it."""

from __future__ import annotations


class Progress:
    """Hears of every step; this one says nothing."""

    def stage(self, text: str, steps: int) -> None:
        """A stage of `steps` steps begins."""

    def step(self, text: str) -> None:
        """A step of the stage begins; `text` says which."""

    def detail(self, text: str) -> None:
        """Something changed within the step."""

    def notice(self, text: str) -> None:
        """The user should read this, now and afterwards."""

    def end(self) -> None:
        """End the progress: a terminal removes what it shows."""
