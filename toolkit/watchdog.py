"""A deadline on calls that nothing interrupts: a launch that never ends holds who waits for it.

Only the end of a process takes a GPU from a kernel that loops for ever. Where that process has
more to say, another thread says it first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import NoReturn

HUNG = "did not end within"  # how the reason of a failed record begins
POLL_S = 0.25  # against limits of many seconds, and rare enough not to be in the way of launches


@dataclass(frozen=True, kw_only=True, eq=False)
class _Watched:
    what: str
    limit_s: float


class Watchdog:
    """Calls `expired` from a thread of its own where what is watched takes too long; once.

    A context manager. `expired` gets what was watched, and its limit in seconds.
    """

    def __init__(self, expired: Callable[[str, float], None]) -> None:
        self._expired = expired
        self._watched: _Watched | None = None
        self._ended = Event()

    def __enter__(self) -> Watchdog:
        Thread(target=self._watch, name="watchdog", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()

    @contextmanager
    def limit(self, what: str, limit_s: float) -> Iterator[None]:
        """Watch what is done inside; the last of several that are nested counts."""
        before = self._watched
        self._watched = _Watched(what=what, limit_s=limit_s)
        try:
            yield
        finally:
            self._watched = before

    def _watch(self) -> None:
        # Counted, not read from a clock: it goes on while the process is stopped (Ctrl-Z).
        seen, spent_s = None, 0.0
        while not self._ended.wait(POLL_S):
            watched = self._watched
            spent_s = spent_s + POLL_S if watched is seen else 0.0
            seen = watched
            if watched is not None and spent_s > watched.limit_s:
                self._expired(watched.what, watched.limit_s)
                return


def hung(limit_s: float) -> str:
    """The reason of a record whose kernel ended when it was tried, and then did not."""
    return (
        f"{HUNG} {limit_s:.0f} s, though it had before: an endless loop, or threads that wait for "
        "each other, now and then? `python -m toolkit check` says where, with no GPU"
    )


def end_process(message: str) -> NoReturn:
    """Say why in one line, and leave: nothing is cleaned up, which would wait for the GPU."""
    try:
        print(
            f"error: {message}; the process ends here, as only that takes the GPU from a kernel: "
            "what was done is kept, go on with --resume",
            file=sys.stderr,
            flush=True,
        )
    finally:  # also where nobody listens any more
        os._exit(1)
