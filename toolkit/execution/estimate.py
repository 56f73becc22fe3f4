"""How long the blocks of a launch take, from a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from analysis.geometry import ceil_div
from toolkit.sass.machine import FaultError

# Enough blocks that the time to start a run does not count, and a small part of all of them.
MOST_TRIED, TRIED_PART = 64, 32


def seconds_of_all(
    execute: Callable[[range], object],
    blocks: int,
    workers: int,
    restore: Callable[[], None],
) -> float | None:
    """Seconds that `workers` take for all blocks, or None if there are too few blocks to try some.

    A few blocks in the middle of the grid are executed, and `restore` undoes their stores. A fault
    is left to the run of all blocks, which finds the first one.
    """
    few = min(MOST_TRIED, blocks // TRIED_PART)
    if not few:
        return None
    start = (blocks - few) // 2
    started = time.perf_counter()
    with suppress(FaultError):
        execute(range(start, start + few))
    elapsed_s = time.perf_counter() - started
    restore()
    return elapsed_s * ceil_div(blocks, workers) / ceil_div(few, workers)
