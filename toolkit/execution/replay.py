"""Which blocks are replayed in place of all: those of one SM, the one that ends last.

If a launch ends as if all blocks executed the mean, a few blocks of one SM stand for all. If blocks
differ, the SM that ends last is replayed, with its own blocks. If blocks wait for the data of
others, the SM with most work is: blocks that exchange data come first and are unlike the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import ceil_div
from analysis.timing.blocks_of_sm import OneSm
from analysis.timing.work import NO_EXCHANGE, Exchanged
from toolkit.execution.schedule import Floats, Integers, Schedule, sm_of

EQUAL_BLOCKS = 4  # of an SM, whose streams stand for all of its blocks where blocks are equal
LATE = 0.9  # fraction of a launch: each block that ends later in the schedule may end last
MOST_REPLAYED = 1 << 22  # warp instructions of one SM; beyond them only some blocks are replayed
# Kinds of blocks are told apart by their instructions, so many kinds per factor of two, and so many
# blocks of each kind are executed again: the first pair of which these execute at most MOST_SAMPLED
# warp instructions.
KINDS = ((8, 4), (8, 1), (2, 1), (1, 1))
MOST_SAMPLED = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Blocks that are executed again and replayed in place of all blocks of a launch."""

    blocks: Sequence[int]
    busy_blocks: int  # number of blocks of the launch that do not exit at once
    points: Sequence[int] = ()  # of a product of matrices: values of K at which they are executed
    of_sm: OneSm | None = None  # how the SM runs them, if blocks of the launch differ
    # instructions of an average block, or of the blocks of the SM, relative to those of the blocks
    # replayed in their place; None: it follows from the totals of the launch
    weight: float | None = None
    exchanged: Exchanged = NO_EXCHANGE

    @property
    def is_of_equal_blocks(self) -> bool:
        """True if any blocks would do, because all of the launch are alike."""
        return self.of_sm is None and self.exchanged is NO_EXCHANGE


def spread_blocks(busy: Sequence[int] | Integers, sms: int) -> Replay:
    """Replay of blocks evenly spread over those that one SM could run, for blocks that may differ a
    little.

    `busy`: the blocks that do not exit at once.
    """
    of_sm = range(0 if len(busy) <= sms else sms // 2, len(busy), sms)
    taken = min(EQUAL_BLOCKS, len(of_sm))
    chosen = [of_sm[(2 * k + 1) * len(of_sm) // (2 * taken)] for k in range(taken)]
    return Replay(blocks=[int(busy[place]) for place in chosen], busy_blocks=len(busy))


def first_blocks(
    blocks: int, sms: int, is_partial: Callable[[int], bool] = lambda block: False
) -> Replay:
    """Replay of the first blocks that one SM runs; an SM with few partial blocks is chosen.

    If every block is alone on its SM, block 0 represents all: it is never partial.
    """
    if blocks <= sms:
        return Replay(blocks=[0], busy_blocks=blocks)
    in_the_middle = sorted(range(sms), key=lambda sm: abs(sm - sms // 2))
    found = [list(range(sm, blocks, sms)[:EQUAL_BLOCKS]) for sm in in_the_middle]
    chosen = min(found, key=lambda some: (-len(some), sum(map(is_partial, some))))
    return Replay(blocks=chosen, busy_blocks=blocks)


@dataclass(frozen=True, kw_only=True)
class ExchangingBlocks:
    """Blocks of a launch of which some wait for data of others.

    `first`: number of the first block that does not exit at once; blocks before it give their slots
    to the next ones. `sharing`: number of blocks from there on that exchange data. `work`,
    `reads`: instructions, or a lifetime, and sectors that each block of the launch executes and
    reads. `bytes`: bytes that blocks read of others, `writers`: number of blocks that wrote them.
    """

    first: int
    sharing: int
    work: NDArray[Any]
    reads: NDArray[Any]
    bytes: float
    writers: int


def blocks_of_busiest_sm(
    launch: ExchangingBlocks, sms: int, per_sm: int, points: Sequence[int] = ()
) -> Replay:
    """Replay of the SM whose blocks have most work: of its unlike blocks and two waves more."""
    work, reads = launch.work[launch.first :], launch.reads[launch.first :]
    blocks, used = len(work), min(sms, len(work))
    busiest = int(np.argmax([work[sm::sms].sum() for sm in range(used)]))
    unlike = ceil_div(launch.sharing, sms) if launch.sharing < blocks else 0
    own, average = reads[busiest::sms].sum(), reads.sum() / used
    chosen = range(launch.first + busiest, launch.first + blocks, sms)[: unlike + 2 * per_sm]
    return Replay(
        blocks=list(chosen),
        busy_blocks=blocks,
        points=points,
        weight=1.0,
        exchanged=Exchanged(
            unlike=unlike,
            relative_l2_reads=float(max(1.0, own / average)) if average else 1.0,
            read_back_bytes=launch.bytes,
            left_bytes=launch.bytes / max(1, launch.writers),
        ),
    )


def blocks_of_last_sm(
    schedule: Schedule, work: NDArray[Any], sms: int, per_sm: int, read_by_block: Floats
) -> Replay:
    """Replay of the SM that ends last, of a launch whose blocks differ.

    `work` (core.WORK), `read_by_block`: what each block executes, and sectors that it reads.
    """
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
        busy_blocks=len(work),
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
