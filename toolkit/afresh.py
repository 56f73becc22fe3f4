"""Going on without what a kernel broke: this process becomes a new one, which resumes the run.

Only the end of a process takes a GPU from a kernel that never ends, or gives back a context that a
fault has ruined. The new program has the same number, terminal and output, so that whoever waits
for this one notices nothing but a line (docs/decisions/0021-trials-in-children.md).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from toolkit.progress import Progress

RESUME = "--resume"
STDERR = 2


def begin_anew(progress: Progress, message: str) -> NoReturn:
    """Say why, and run this command again with --resume; what was done must be on disk."""
    progress.notice(f"{message}: going on without it, in a fresh process")
    progress.end()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _close_on_exec()
    command = [sys.executable, *sys.orig_argv[1:]]
    os.execv(sys.executable, command if RESUME in command else [*command, RESUME])


def _close_on_exec() -> None:
    """Let nothing but the three standard streams reach the new program: no handle of the GPU."""
    for link in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):  # that of the listing itself
            os.set_inheritable(int(link.name), int(link.name) <= STDERR)
