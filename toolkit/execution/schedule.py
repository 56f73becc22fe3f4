"""Schedule of blocks that differ: SM, start and end of each block, from their instruction counts.

Blocks are dispatched in the order of their index. Each block takes the slot that becomes free
first, and holds it for as long as its longest warp executes.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import ceil_div
from toolkit.execution.accesses import AT_ONCE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Blocks count as equal if the launch ends within this relative difference of a launch whose blocks
# are all average.
UNEQUAL = 0.05
# The first blocks are distributed to the SMs in rounds, and each round begins this many SMs later.
# Source: SMs recorded for 1,056 blocks of 256 threads and 4,224 blocks of 64 threads on an H200. A
# round reaches 124 of 132 SMs before an SM gets a second block. The number of every n-th block that
# one SM gets, at most: 32 of 32 for n = 2 and 4, 16 for n = 8, 12 for n = 3, and 9 for n = 16; with
# this rule 32, 17, 11 and 10.
LATER = 8


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Slot and time of each block. Times are in lifetimes of a typical block."""

    lifetimes: Floats  # time for which each block holds its slot
    slot: Integers
    start: Floats
    typical_steps: float  # instructions of the longest warp of a typical block

    @property
    def end(self) -> Floats:
        return self.start + self.lifetimes


def typical_steps(work: NDArray[Any]) -> float:
    """Instructions of the longest warp of a typical block. `work`: those of all blocks (core.WORK).

    Blocks with at least this many instructions do half of all work. So neither a few long blocks
    nor many blocks that exit at once are typical.
    """
    ranked = np.sort(work["longest"].astype(np.float64))
    half = int(np.searchsorted(np.cumsum(ranked), ranked.sum() / 2))
    return float(max(1.0, ranked[min(half, len(ranked) - 1)]))


def lifetimes_of(work: NDArray[Any]) -> Floats:
    """Instructions of the longest warp of each block, relative to a typical block."""
    found: Floats = work["longest"] / typical_steps(work)
    return found


def scheduled(lifetimes: Floats, slots: int) -> tuple[Integers, Floats]:
    """Slot and start of each block by list scheduling.

    Each block takes the slot that becomes free first: of several, the one with the lowest number.
    """
    takes = lifetimes.tolist()
    slot, start = np.arange(len(takes)) % slots, np.zeros(len(takes))
    free = [(end, number) for number, end in enumerate(takes[:slots])]
    heapify(free)
    for block in range(slots, len(takes)):
        start[block], slot[block] = free[0]
        heapreplace(free, (start[block] + takes[block], slot[block]))
    return slot, start


def sm_of(slot: Integers, sms: int) -> Integers:
    """The SM of each slot. Blocks fill the slots in order of their numbers."""
    return (slot + slot // sms * LATER) % sms


def unequal_schedule(work: NDArray[Any], sms: int, per_sm: int) -> Schedule | None:
    """Schedule of blocks that differ.

    None if the launch ends as early as if all blocks with work were equal, and most of them do as
    much as the average block.
    """
    lifetimes = lifetimes_of(work)
    busy, executed = lifetimes > AT_ONCE, work["executed"].astype(np.float64)
    mean, count = float(lifetimes[busy].mean()), int(busy.sum())
    if np.abs(lifetimes - mean).max() > UNEQUAL * mean:
        slot, start = scheduled(lifetimes, sms * per_sm)
    else:  # as long as each other, but some may have fewer warps with work
        rounds, slot = np.divmod(np.arange(len(lifetimes)), sms * per_sm)
        start = rounds * mean
    of_equal_blocks = (
        ((start + lifetimes).max(), ceil_div(count, sms * per_sm) * mean),
        (
            np.bincount(sm_of(slot, sms), executed).max(),
            ceil_div(count, sms) * executed[busy].mean(),
        ),
        (lifetimes[busy].sum(), lifetimes.sum()),
        (np.median(executed[busy]), executed[busy].mean()),
    )
    if all(abs(found / equal - 1) <= UNEQUAL for found, equal in of_equal_blocks):
        return None
    return Schedule(lifetimes=lifetimes, slot=slot, start=start, typical_steps=typical_steps(work))
