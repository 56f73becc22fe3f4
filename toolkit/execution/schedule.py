"""When each block of a launch starts and ends, and on which SM, from what the blocks execute.

Blocks are dispatched in the order of their index, each to the slot of an SM that becomes free
first, and hold it for as long as their longest warp executes.
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

# Relative difference between the end of a launch and that of one with equal blocks, up to which
# blocks count as equal.
UNEQUAL = 0.05
# The first blocks are dealt to the SMs in rounds, each of which begins so many SMs later. Recorded
# SMs of 1,056 blocks of 256 threads and 4,224 of 64 on an H200: a round reaches 124 of 132 SMs
# before one gets a second block. Of every 2nd or 4th block, one SM gets up to 32 of 32, of every
# 8th 16, of every 3rd 12, of every 16th 9; with this rule 32, 17, 11 and 10.
LATER = 8


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Slot and start of each block, and how long it holds the slot, where blocks differ.

    Times are in lifetimes of a typical block, whose longest warp executes `typical_steps`.
    """

    lifetimes: Floats
    slot: Integers
    start: Floats
    typical_steps: float

    @property
    def end(self) -> Floats:
        return self.start + self.lifetimes


def typical_steps(work: NDArray[Any]) -> float:
    """Instructions of the longest warp of a typical block, from those of all blocks (`core.WORK`).

    Blocks that execute as many or more do half of all work. So neither a few long blocks nor many
    blocks that exit at once are typical.
    """
    ranked = np.sort(work["longest"].astype(np.float64))
    half = int(np.searchsorted(np.cumsum(ranked), ranked.sum() / 2))
    return float(max(1.0, ranked[min(half, len(ranked) - 1)]))


def lifetimes_of(work: NDArray[Any]) -> Floats:
    """Instructions of the longest warp of each block, relative to a typical block."""
    found: Floats = work["longest"] / typical_steps(work)
    return found


def scheduled(lifetimes: Floats, slots: int) -> tuple[Integers, Floats]:
    """List schedule: each block takes the slot that becomes free first, or the first of several.

    Slot and start of each block.
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
    """The SM of each slot, to which blocks are dealt in the order of their numbers."""
    return (slot + slot // sms * LATER) % sms


def unequal_schedule(work: NDArray[Any], sms: int, per_sm: int) -> Schedule | None:
    """Schedule of blocks that differ, None if the launch ends as if those with work were equal."""
    lifetimes = lifetimes_of(work)
    busy = lifetimes > AT_ONCE
    mean = float(lifetimes[busy].mean())
    if np.abs(lifetimes - mean).max() <= UNEQUAL * mean:
        return None
    slot, start = scheduled(lifetimes, sms * per_sm)
    executed, count = work["executed"].astype(np.float64), int(busy.sum())
    of_equal_blocks = (
        ((start + lifetimes).max(), ceil_div(count, sms * per_sm) * mean),
        (
            np.bincount(sm_of(slot, sms), executed).max(),
            ceil_div(count, sms) * executed[busy].mean(),
        ),
        (lifetimes[busy].sum(), lifetimes.sum()),
    )
    if all(abs(found / equal - 1) <= UNEQUAL for found, equal in of_equal_blocks):
        return None
    return Schedule(lifetimes=lifetimes, slot=slot, start=start, typical_steps=typical_steps(work))
