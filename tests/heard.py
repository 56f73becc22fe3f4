"""Listener of a run: it keeps the messages, and presses Ctrl-C at a chosen one."""

import re

from toolkit.launch.progress import Progress


def ctrl_c():
    raise KeyboardInterrupt


class Heard(Progress):
    """Messages of a run. `then` is called at each text of pattern `at`, or at the `turn`-th."""

    def __init__(self, at=None, then=ctrl_c, turn=None):
        self.at, self._then, self._turn, self._times = at, then, turn, 0
        self.stages = []
        self.steps = []
        self.details = []
        self.notices = []

    def stage(self, text, steps):
        self.stages.append((text, steps))
        self._hear(text)

    def step(self, text):
        self.steps.append(text)
        self._hear(text)

    def detail(self, text):
        self.details.append(text)
        self._hear(text)

    def notice(self, text):
        self.notices.append(text)

    def _hear(self, text):
        if self.at is not None and re.fullmatch(self.at, text):
            self._times += 1
            if self._turn in (None, self._times):
                self._then()
