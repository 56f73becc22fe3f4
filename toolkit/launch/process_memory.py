"""Python's memory as commands use it: set before NumPy and what takes long to import."""

from __future__ import annotations

import gc
import os

# Python looks for unreachable cycles once in so many new objects, not in 700: classes, records and
# decoded instructions live long, and looking through them took an eighth of a command's time.
NEW_OBJECTS = 50_000


def set_up_memory() -> None:
    """Look for unreachable cycles rarely, and let NumPy take small pages.

    The system clears a page of 2 MiB as a whole, of which caches keep little until it is written.
    NumPy asks for such pages, unless it is told otherwise before it is imported.
    """
    gc.set_threshold(NEW_OBJECTS)
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
