"""How long the blocks of a launch take, from a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from analysis.geometry import ceil_div
from toolkit.sass.machine import Bound, FaultError

# Enough blocks that the time to start a run does not count, and a small part of all of them.
MOST_TRIED, TRIED_PART = 64, 32
# Where blocks wait, trials end with one that takes this long, and each with so many instructions.
ENOUGH_S, MOST_INSTRUCTIONS = 0.1, 2 * 10**7
# If half of the blocks take more than this fraction of the time, they took the work of others.
PROPORTIONAL = 0.75


def seconds_of_all(
    execute: Callable[[Sequence[int], int | None], object],
    bound: Bound,
    blocks: Sequence[int],
    workers: int,
    restore: Callable[[], None],
    *,
    waits: bool,
) -> float | None:
    """Seconds that `workers` take for some blocks of a launch; None if a few do not show it.

    A few of them, at most one of 32, are executed with their clusters, and `restore` undoes their
    stores. `execute` takes them and the most instructions that they may execute. A fault is left to
    the run of all blocks, which finds the first one. Where blocks wait for others (`waits`), the
    first ones run until all of them wait, so that the time is what they do before that.
    """
    most = min(MOST_TRIED, len(blocks) // TRIED_PART)
    if most < (2 * bound.cluster_blocks if waits else 1):
        return None

    def seconds_of(chosen: Sequence[int]) -> float:
        started = time.perf_counter()
        with suppress(FaultError):
            execute(chosen, MOST_INSTRUCTIONS if waits else None)
        elapsed_s = time.perf_counter() - started
        restore()
        return elapsed_s

    if waits:
        few, half_s, elapsed_s = 0, 0.0, 0.0
        while few < most and elapsed_s < ENOUGH_S:
            few = min(8 * few, most) or 2 * bound.cluster_blocks
            half_s, elapsed_s = seconds_of(blocks[: few // 2]), seconds_of(blocks[:few])
        if half_s > PROPORTIONAL * elapsed_s:
            return None
        chosen = blocks[:few]
    else:
        chosen = blocks[(len(blocks) - most) // 2 :][:most]
        elapsed_s = seconds_of(chosen)
    tried = len({bound.cluster_of(block) for block in chosen}) * bound.cluster_blocks
    workers = 1 if waits or bound.in_order else workers
    return elapsed_s * ceil_div(len(blocks), workers) / ceil_div(tried, workers)
