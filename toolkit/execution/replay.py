"""The SM that is replayed in place of all: which blocks it runs, and in which order.

Blocks are dispatched in the order of their index, each to the slot of an SM that becomes free
first, and hold it for as long as their longest warp executes. If a launch ends as if all blocks
executed the mean, a few blocks of one SM stand for all. Otherwise the SM that ends last is
replayed, with its own blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import ceil_div
from analysis.timing.blocks_of_sm import OneSm
from toolkit.execution.accesses import AT_ONCE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Relative difference between the end of a launch and that of one with equal blocks, up to which
# blocks count as equal.
UNEQUAL = 0.05
LATE = 0.9  # fraction of a launch: each block that ends later in the schedule may end last
# The first blocks are dealt to the SMs in rounds, each of which begins so many SMs later. Recorded
# SMs of 1,056 blocks of 256 threads and 4,224 of 64 on an H200: a round reaches 124 of 132 SMs
# before one gets a second block. Of every 2nd or 4th block, one SM gets up to 32 of 32, of every
# 8th 16, of every 3rd 12, of every 16th 9; with this rule 32, 17, 11 and 10.
LATER = 8
MOST_REPLAYED = 1 << 22  # warp instructions of one SM; beyond them only some blocks are replayed
# Kinds of blocks are told apart by their instructions, so many kinds per factor of two, and so many
# blocks of each kind are executed again: the first pair of which these execute at most MOST_SAMPLED
# warp instructions.
KINDS = ((8, 4), (8, 1), (2, 1), (1, 1))
MOST_SAMPLED = 1 << 22


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


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Blocks of the SM that ends last that are executed again, and how the SM runs them.

    `weight`: instructions of the blocks of the SM, relative to those of the blocks replayed in
    their place.
    """

    blocks: Sequence[int]
    of_sm: OneSm
    weight: float


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


def replay_of(
    schedule: Schedule,
    work: NDArray[Any],
    sms: int,
    per_sm: int,
    read_by_block: Floats,
) -> Replay:
    """What is replayed of a launch whose blocks differ; `read_by_block`: sectors of each block."""
    executed = work["executed"].astype(np.float64)
    sm = sm_of(schedule.slot, sms)
    of_sm = np.flatnonzero(sm == _last_sm(schedule.end, executed, sm))
    orders, further = _orders(schedule.slot[of_sm], executed[of_sm], per_sm)
    most = of_sm[orders[-1]]
    samples, stands_for = _samples(most, executed)
    places = dict(zip(orders[-1].tolist(), stands_for.tolist(), strict=True))
    end = float(schedule.end[of_sm].max())
    return Replay(
        blocks=samples.tolist(),
        of_sm=OneSm(
            blocks=len(of_sm),
            orders=tuple(tuple(places[place] for place in order.tolist()) for order in orders),
            further=further,
            rounds=end / float(schedule.lifetimes[samples[0]]),
            relative_work=_relative(executed, of_sm, sms),
            relative_reads=_relative(read_by_block, of_sm, sms),
        ),
        weight=float(executed[most].sum() / executed[samples[stands_for]].sum()),
    )


def _last_sm(end: Floats, executed: Floats, sm: Integers) -> int:
    """The SM that ends last: that of the late block with most work of its SM up to it.

    Schedulers prefer the oldest warp, so that what an SM got before a block delays it.
    """
    rank = np.argsort(sm, kind="stable")
    done = np.cumsum(executed[rank])
    first = np.searchsorted(sm[rank], sm[rank])  # of the SM
    until = np.zeros(len(end))
    until[rank] = done - done[first] + executed[rank][first]
    return int(sm[np.argmax(np.where(end >= LATE * end.max(), until, -1.0))])


def _orders(slot: Integers, executed: Floats, per_sm: int) -> tuple[list[Integers], float]:
    """Places in the order of an SM's blocks that are replayed, and `OneSm.further`.

    All of them, or the last block of each slot with some of the blocks before: every n-th, and half
    of these.
    """
    everything = np.arange(len(slot))
    _, from_the_end = np.unique(slot[::-1], return_index=True)
    last = everything[::-1][from_the_end]
    before = np.setdiff1d(everything, last)
    room = MOST_REPLAYED - executed[last].sum()
    share = room / executed[before].sum() if len(before) else 1.0
    number = max(2 * per_sm, int(share * len(before)))
    if number >= len(before):
        return [everything], 0.0
    many = before[(2 * np.arange(number) + 1) * len(before) // (2 * number)]
    few = many[::2]
    further = executed[np.setdiff1d(before, few)].sum() / executed[np.setdiff1d(many, few)].sum()
    return [np.sort(np.append(some, last)) for some in (few, many)], float(further)


def _samples(blocks: Integers, executed: Floats) -> tuple[Integers, Integers]:
    """Blocks that stand for `blocks`, the longest first, and which of them does for each."""
    for per_octave, most in KINDS:
        kind = np.floor(per_octave * np.log2(np.maximum(executed[blocks], 1.0)))
        samples, stands_for = _of_kinds(kind, most)
        if executed[blocks[samples]].sum() <= MOST_SAMPLED:
            break
    rank = np.argsort(-executed[blocks[samples]], kind="stable")
    return blocks[samples[rank]], np.argsort(rank)[stands_for]


def _of_kinds(kind: Floats, most: int) -> tuple[Integers, Integers]:
    """Places of up to `most` members of each kind, and for each place which of them it takes."""
    samples, stands_for = list[int](), np.zeros(len(kind), dtype=np.int64)
    for one in np.unique(kind):
        members = np.flatnonzero(kind == one)
        taken = min(most, len(members))
        stands_for[members] = len(samples) + np.arange(len(members)) % taken
        samples += members[(2 * np.arange(taken) + 1) * len(members) // (2 * taken)].tolist()
    return np.array(samples), stands_for


def _relative(amount: Floats, of_sm: Integers, sms: int) -> float:
    """Amount of the blocks of an SM, relative to the average SM, at least 1."""
    average = amount.sum() / min(sms, len(amount))
    return float(max(1.0, amount[of_sm].sum() / average)) if average else 1.0
