"""Other programs, run to their end: with limits, and none goes on after this process.

What keeps a program for ever may also fill memory or a disk. Its processor time is limited by the
system, which ends it even if this process was killed.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from tempfile import TemporaryFile
from typing import IO

from toolkit.machine_code.compiler_process import stop_compilers

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

MOST_OUTPUT_BYTES = 2**26  # by default

_running: list[subprocess.Popen[bytes]] = []


def run_program(
    command: Sequence[str],
    *,
    limit_s: float,
    most_output_bytes: int = MOST_OUTPUT_BYTES,
    most_memory_bytes: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Output and exit status of a program; the status is negative if it was ended, also at a limit.

    This process handles Ctrl-C, not the program. Raises OSError, and subprocess.TimeoutExpired
    after `limit_s`.
    """
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            _running.append(process)
            _limit(process.pid, ceil(limit_s), most_output_bytes, most_memory_bytes)
            status = process.wait(limit_s)
        finally:
            _end(process)
            process.wait()
            _running.remove(process)
        return subprocess.CompletedProcess(command, status, _all_of(stdout), _all_of(stderr))


@atexit.register
def stop_programs() -> None:
    """End all running programs; threads that wait for one get a negative exit status."""
    for process in list(_running):
        _end(process)


def stop_children() -> None:
    """End all compilations and programs of this process."""
    stop_compilers()
    stop_programs()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and the processes that it started."""
    process.kill()
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _limit(process: int, seconds: int, output_bytes: int, memory_bytes: int | None) -> None:
    """Set limits where the system has them."""
    if not hasattr(resource, "prlimit"):
        return
    for kind, most in (
        (resource.RLIMIT_CPU, seconds + 1),
        (resource.RLIMIT_FSIZE, output_bytes),
        (resource.RLIMIT_AS, memory_bytes or resource.RLIM_INFINITY),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):  # it has ended, or has a lower limit already
            resource.prlimit(process, kind, (most, most))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
