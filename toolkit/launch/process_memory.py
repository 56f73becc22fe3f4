"""Python's memory as commands use it: set before NumPy and what takes long to import."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

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


# The system kills a process when no memory is left, without a word. A command ends before that: if
# less is free than it can write between two looks, and it holds a good part of all memory.
LOOKS_EVERY_S = 0.1
LEAST_FREE_BYTES, LEAST_FREE = 1 << 29, 0.03  # the smaller of so many bytes and a part of all
LEAST_OWN = 0.1  # of all memory


def end_before_memory_does(end: Callable[[str], object]) -> None:
    """Look at the free memory from now on, and call `end` with the reason when it runs out.

    A process that ends waits for the thread: NumPy cannot be imported while Python ends.
    """
    ending = Event()

    def look() -> None:
        if ending.wait(LOOKS_EVERY_S):
            return
        from toolkit.launch.host_resources import available_bytes, memory_bytes

        everything = memory_bytes()
        while (own := held_bytes()) is not None:
            if why := out_of_memory(available_bytes(), own, everything):
                end(why)
                return
            if ending.wait(LOOKS_EVERY_S):
                return

    def stop() -> None:
        ending.set()
        thread.join()

    thread = Thread(target=look, daemon=True)
    thread.start()
    atexit.register(stop)


def out_of_memory(free: float, own: float, everything: float) -> str:
    """Reason for a command with `own` bytes to end, empty if it need not."""
    if free > min(LEAST_FREE_BYTES, LEAST_FREE * everything) or own < LEAST_OWN * everything:
        return ""
    return (
        f"memory runs out: this command takes {own / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
        "free on the host: take a smaller launch, or execute a few of its blocks (--blocks 100)"
    )


def held_bytes() -> int | None:
    """Memory of this process in bytes, None if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError, IndexError):
        return None
