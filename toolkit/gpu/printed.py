"""Output of printf on a GPU, which the driver writes to the process's standard output."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile


@contextmanager
def printed_text() -> Iterator[list[str]]:
    """Collect what kernels print within the context, in a list that is filled at its end."""
    found: list[str] = []
    sys.stdout.flush()
    with TemporaryFile() as file:
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield found
        finally:
            with suppress(OSError, AttributeError, TypeError):
                ctypes.CDLL(None).fflush(None)  # of C, which the driver writes to
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode(errors="replace"))
