"""Who listens to a run: keeps what it tells, and presses Ctrl-C where it tells something."""

from __future__ import annotations

import re
from collections.abc import Callable

from toolkit.launch.progress import Progress


def ctrl_c() -> None:
    raise KeyboardInterrupt


class Heard(Progress):
    """What a run told. `then` happens at each text of the pattern `at`, or at the `turn`-th."""

    def __init__(
        self, at: str | None = None, then: Callable[[], object] = ctrl_c, turn: int | None = None
    ) -> None:
        self.at, self._then, self._turn, self._times = at, then, turn, 0
        self.stages: list[tuple[str, int]] = []
        self.steps: list[str] = []
        self.details: list[str] = []
        self.notices: list[str] = []

    def stage(self, text: str, steps: int) -> None:
        self.stages.append((text, steps))
        self._hear(text)

    def step(self, text: str) -> None:
        self.steps.append(text)
        self._hear(text)

    def detail(self, text: str) -> None:
        self.details.append(text)
        self._hear(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def _hear(self, text: str) -> None:
        if self.at is not None and re.fullmatch(self.at, text):
            self._times += 1
            if self._turn in (None, self._times):
                self._then()
