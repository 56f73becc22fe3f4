"""Schedule of blocks that differ: SM, start and end of each block, from their instruction counts.

Blocks are dispatched in the order of their index. Each block takes the slot that becomes free
first, and holds it for as long as its longest warp executes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import ceil_div
from toolkit.execution.accesses import AT_ONCE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EQUAL_BLOCKS = 4  # blocks of an SM whose streams represent all of its blocks if blocks are equal
# Blocks count as equal if the launch ends within this relative difference of a launch whose blocks
# are all average.
UNEQUAL = 0.05
# The first blocks of a launch go to the SMs in turns: a block to each of 8 eager SMs, then one to
# each of some of the other 124, which take blocks in rounds: 72 in the first turn, and 3 rounds in
# four turns from then on. No SM gets more than the average, rounded up, or than it has room for.
# Source: SMs recorded for launches of 132 to 100,096 blocks of 64 to 1,024 threads on an H200.
SMS, EAGER = 132, 8
FIRST_OTHERS, OTHERS = 72, (92, 92, 98, 90)
LATER = 8  # where nobody recorded it, each round of blocks begins this many SMs later


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


def sm_of(slot: Integers, sms: int, rounds: int) -> Integers:
    """The SM of each slot. Blocks fill the slots in order of their numbers.

    `rounds`: blocks that an SM gets before the first of them ends.
    """
    if sms != SMS:
        return (slot + slot // sms * LATER) % sms
    found: Integers = _dealt(rounds)[slot]
    return found


def rounds_of(blocks: int, sms: int, per_sm: int) -> int:
    """Blocks that an SM gets before the first of them ends."""
    return min(per_sm, ceil_div(blocks, sms))


@cache
def _dealt(rounds: int) -> Integers:
    """SM of each of the first blocks, if each SM gets so many of them."""
    others = EAGER + np.arange(rounds * (SMS - EAGER)) % (SMS - EAGER)
    lengths = np.array([FIRST_OTHERS, *(OTHERS * rounds)[: rounds - 1]])
    turns = np.split(others, np.minimum(np.cumsum(lengths), len(others)))
    eager = np.arange(EAGER)
    *of_eager, last = turns
    return np.concatenate([part for turn in of_eager for part in (eager, turn)] + [last])


def spread_places(blocks: int, sms: int, executed: Floats | None = None) -> list[int]:
    """A few places of so many blocks, evenly spread over those that one SM could run.

    The SM is the one in the middle, or the first if each SM runs at most one block. If its blocks
    execute more or less than the average block by more than UNEQUAL, it is the one whose blocks are
    the most usual. `executed`: instructions of each block.
    """
    places = _places_of(0 if blocks <= sms else sms // 2, blocks, sms)
    if executed is None:
        return places
    average = executed.mean()

    def apart(places: Sequence[int]) -> float:
        return float(abs(executed[places].mean() / average - 1))

    if apart(places) <= UNEQUAL:
        return places
    return min((_places_of(sm, blocks, sms) for sm in range(min(sms, blocks))), key=apart)


def _places_of(sm: int, blocks: int, sms: int) -> list[int]:
    """A few places, evenly spread over those that an SM could get of so many blocks."""
    of_sm = range(sm, blocks, sms)
    taken = min(EQUAL_BLOCKS, len(of_sm))
    return [of_sm[(2 * k + 1) * len(of_sm) // (2 * taken)] for k in range(taken)]


def unequal_schedule(work: NDArray[Any], sms: int, per_sm: int) -> Schedule | None:
    """Schedule of blocks that differ.

    None if the launch ends as early as if all blocks with work were equal, and a few of an SM do as
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
            np.bincount(sm_of(slot, sms, rounds_of(len(slot), sms, per_sm)), executed).max(),
            ceil_div(count, sms) * executed[busy].mean(),
        ),
        (lifetimes[busy].sum(), lifetimes.sum()),
        (executed[busy][spread_places(count, sms, executed[busy])].mean(), executed[busy].mean()),
    )
    if all(abs(found / equal - 1) <= UNEQUAL for found, equal in of_equal_blocks):
        return None
    return Schedule(lifetimes=lifetimes, slot=slot, start=start, typical_steps=typical_steps(work))
