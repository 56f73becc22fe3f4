"""Selection of the blocks that are replayed in place of all: blocks of the SM that finishes last.

If a launch takes as long as if all blocks executed equally many instructions, a few blocks of one
SM represent all. If blocks differ, the SM that finishes last is replayed with its own blocks. If
blocks wait for other blocks' data, the SM with the most work is replayed: blocks that exchange data
come first, and differ from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry, ceil_div
from analysis.timing.blocks_of_sm import OneSm
from analysis.timing.work import NO_EXCHANGE, Exchanged
from analysis.traffic.block_schedule import blocks_finish_at_different_times
from toolkit.execution.schedule import (
    EQUAL_BLOCKS,
    Floats,
    Integers,
    Schedule,
    rounds_of,
    sm_of,
    spread_places,
)
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.schedule_facts import schedule_facts

# A block that ends after this fraction of the scheduled launch may be the last to finish.
LATE = 0.9
MOST_REPLAYED = 1 << 22  # warp instructions of one SM; if it executes more, some blocks are skipped
# Blocks are sorted into kinds by their number of instructions. Pairs: kinds per factor of two, and
# blocks of each kind to execute again. The first pair applies with which these blocks execute at
# most MOST_SAMPLED warp instructions.
KINDS = ((8, 4), (8, 1), (2, 1), (1, 1))
MOST_SAMPLED = 1 << 22
# SMs whose work differs by less than this fraction are equally busy: polls of blocks that wait, and
# guarded steps of divisions, differ by as much from one execution to another.
EQUALLY_BUSY = 0.001


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Blocks that are executed again and replayed in place of all blocks of a launch."""

    blocks: Sequence[int]
    busy_blocks: int  # number of blocks of the launch that do not exit at once
    points: Sequence[int] = ()  # values of K at which the blocks of a matrix product are executed
    of_sm: OneSm | None = None  # their order on the SM, if blocks of the launch differ
    # instructions of an average block, or of the SM's blocks, relative to the instructions of the
    # blocks replayed in their place; None: computed from the totals of the launch
    weight: float | None = None
    exchanged: Exchanged = NO_EXCHANGE
    #: sectors that the blocks read, relative to average ones: blocks that copy for their cluster
    relative_reads: float = 1.0

    @property
    def is_of_equal_blocks(self) -> bool:
        """True if all blocks of the launch are equal, so that any of them may be replayed."""
        return self.of_sm is None and self.exchanged is NO_EXCHANGE

    def finish_at_different_times(self, kernel: Kernel, geometry: Geometry) -> bool:
        """True if blocks resident on one SM finish at different times although all are equal."""
        return self.is_of_equal_blocks and blocks_finish_at_different_times(
            geometry.threads_per_block, fetches_ahead=schedule_facts(kernel).fetches_ahead
        )


def spread_blocks(
    busy: Sequence[int] | Integers, sms: int, executed: Floats | None = None
) -> Replay:
    """Replay of a few blocks, evenly spread over the blocks that one SM could run.

    For launches whose blocks differ little. `busy`: the blocks that do not exit at once.
    `executed`: instructions of each block of the launch.
    """
    places = spread_places(len(busy), sms, None if executed is None else executed[busy])
    return Replay(blocks=[int(busy[place]) for place in places], busy_blocks=len(busy))


def clusters_of_blocks(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> Integers:
    """Number of the cluster of each block of a grid, counted like blocks."""
    z, y, x = np.indices(grid[::-1]).reshape(3, -1)
    along_x, along_y, _ = (extent // own for extent, own in zip(grid, cluster, strict=True))
    numbers: Integers = x // cluster[0] + along_x * (y // cluster[1] + along_y * (z // cluster[2]))
    return numbers


def of_copying_blocks(replay: Replay, read_by_block: Floats, cluster_of: Integers) -> Replay:
    """The replay of equal blocks, of each cluster with the block that reads the most.

    A block that copies for its cluster reads what the others receive, and they wait for it.
    `read_by_block`: sectors that each block of the launch reads. `cluster_of`: number of its
    cluster.
    """
    average = read_by_block.mean()
    if not (replay.is_of_equal_blocks and average):
        return replay
    clusters = (np.flatnonzero(cluster_of == cluster_of[block]) for block in replay.blocks)
    blocks = [int(members[np.argmax(read_by_block[members])]) for members in clusters]
    relative = float(read_by_block[blocks].mean() / average)
    return replace(replay, blocks=blocks, relative_reads=max(1.0, relative))


def first_blocks(
    blocks: int, sms: int, is_partial: Callable[[int], bool] = lambda block: False
) -> Replay:
    """Replay of the first blocks of one SM, for an extrapolation along K.

    They follow each other, and share rows in L1 as blocks do that an SM runs at a time: the longer
    K is, the more this counts. Of the SMs it is one with few partial blocks.

    If each SM runs at most one block, block 0 represents all: it is never partial.
    """
    if blocks <= sms:
        return Replay(blocks=[0], busy_blocks=blocks)
    in_the_middle = sorted(range(sms), key=lambda sm: abs(sm - sms // 2))
    found = [list(range(sm, blocks, sms)[:EQUAL_BLOCKS]) for sm in in_the_middle]
    chosen = min(found, key=lambda some: (-len(some), sum(map(is_partial, some))))
    return Replay(blocks=chosen, busy_blocks=blocks)


@dataclass(frozen=True, kw_only=True)
class ExchangingBlocks:
    """Blocks of a launch of which some wait for data of others."""

    first: int  # the first block that does not exit at once; those before it free their slots
    sharing: int  # number of blocks from `first` on that exchange data
    work: NDArray[Any]  # work of each block of the launch: instructions of its longest warp
    reads: NDArray[Any]  # sectors that each block of the launch reads
    bytes: float  # bytes that blocks read after other blocks wrote them
    writers: int  # number of blocks that wrote these bytes


def blocks_of_busiest_sm(launch: ExchangingBlocks, sms: int, per_sm: int) -> Replay:
    """Replay of the SM with the most work: its blocks that differ, and two further waves.

    Of SMs that are equally busy it is the one in the middle, as in `spread_blocks`.
    """
    work, reads = launch.work[launch.first :], launch.reads[launch.first :]
    blocks, used = len(work), min(sms, len(work))
    totals = np.array([work[sm::sms].sum() for sm in range(used)], dtype=np.float64)
    equal = np.flatnonzero(totals >= (1 - EQUALLY_BUSY) * totals.max())
    busiest = int(min(equal, key=lambda sm: abs(sm - sms // 2)))
    unlike = ceil_div(launch.sharing, sms) if launch.sharing < blocks else 0
    own, average = reads[busiest::sms].sum(), reads.sum() / used
    chosen = range(launch.first + busiest, launch.first + blocks, sms)[: unlike + 2 * per_sm]
    return Replay(
        blocks=list(chosen),
        busy_blocks=blocks,
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
    """Replay of the SM that finishes last, for a launch whose blocks differ.

    `work`: instructions of each block (core.WORK). `read_by_block`: sectors that each block reads.
    """
    executed = work["executed"].astype(np.float64)
    sm = sm_of(schedule.slot, sms, rounds_of(len(work), sms, per_sm))
    of_sm = np.flatnonzero(sm == _last_sm(schedule.end, executed, sm))
    orders, further = _replayed_orders(schedule.slot[of_sm], executed[of_sm], per_sm)
    most = of_sm[orders[-1]]
    samples, stands_for = _sampled_blocks(most, executed)
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
            relative_work=_relative_to_average(executed, of_sm, sms),
            relative_reads=_relative_to_average(read_by_block, of_sm, sms),
        ),
        weight=float(executed[most].sum() / executed[samples[stands_for]].sum()),
    )


def _last_sm(end: Floats, executed: Floats, sm: Integers) -> int:
    """The SM that finishes last: the one with the most work of those that have a late block.

    All blocks of an SM delay each other, also those that end before it.
    """
    total = np.bincount(sm, executed)
    is_late = np.zeros(len(total), dtype=bool)
    is_late[sm[end >= LATE * end.max()]] = True
    return int(np.argmax(np.where(is_late, total, -1.0)))


def _replayed_orders(slot: Integers, executed: Floats, per_sm: int) -> tuple[list[Integers], float]:
    """Places in the order of an SM's blocks to replay, and the value of `OneSm.further`.

    One order of all blocks. If they execute too much, two orders, each with the last block of each
    slot: the second with every n-th of the other blocks, the first with half of these.
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


def _sampled_blocks(blocks: Integers, executed: Floats) -> tuple[Integers, Integers]:
    """Sample of `blocks`, the longest first, and the number of each block's representative."""
    for per_octave, most in KINDS:
        kind = np.floor(per_octave * np.log2(np.maximum(executed[blocks], 1.0)))
        samples, stands_for = _sampled_of_kinds(kind, most)
        if executed[blocks[samples]].sum() <= MOST_SAMPLED:
            break
    rank = np.argsort(-executed[blocks[samples]], kind="stable")
    return blocks[samples[rank]], np.argsort(rank)[stands_for]


def _sampled_of_kinds(kind: Floats, most: int) -> tuple[Integers, Integers]:
    """Sample of up to `most` members of each kind, and the number of each place's representative.

    `kind`: that of each place. Members of the sample are places.
    """
    samples, stands_for = list[int](), np.zeros(len(kind), dtype=np.int64)
    for one in np.unique(kind):
        members = np.flatnonzero(kind == one)
        taken = min(most, len(members))
        stands_for[members] = len(samples) + np.arange(len(members)) % taken
        samples += members[(2 * np.arange(taken) + 1) * len(members) // (2 * taken)].tolist()
    return np.array(samples), stands_for


def _relative_to_average(amount: Floats, of_sm: Integers, sms: int) -> float:
    """Total `amount` of the blocks `of_sm`, relative to the average SM, at least 1."""
    average = amount.sum() / min(sms, len(amount))
    return float(max(1.0, amount[of_sm].sum() / average)) if average else 1.0
