"""What blocks touched of global memory, as the core notes it, for `analysis.traffic.l2`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.block_schedule import BlockProgress, Floats, Integers
from analysis.traffic.l2 import Accesses
from toolkit.sass.core.binding import ACCESS
from toolkit.sass.machine import RecordedAccesses

READ, WRITE, ATOMIC = range(3)  # kinds of accesses, as trace.h numbers them
MOST_ACCESSES = 1 << 22  # of each worker: 100 MB of them

_SECTORS = np.array([bin(mask).count("1") for mask in range(256)])


@dataclass(frozen=True, kw_only=True)
class Below:
    """Sectors of 32 bytes that blocks ask of L2: each counts once per block.

    `written_by_warps` counts a sector once for each warp that writes it.
    """

    read: int
    written: int
    written_by_warps: int

    def times(self, blocks: int) -> Below:
        """That of as many blocks alike."""
        return Below(
            read=blocks * self.read,
            written=blocks * self.written,
            written_by_warps=blocks * self.written_by_warps,
        )

    def __add__(self, other: Below) -> Below:
        return Below(
            read=self.read + other.read,
            written=self.written + other.written,
            written_by_warps=self.written_by_warps + other.written_by_warps,
        )


def below(accesses: RecordedAccesses) -> Below:
    """The sectors of all accesses."""
    sectors, kind = _SECTORS[accesses.rows["mask"]], accesses.rows["kind"]
    return Below(
        read=int(sectors[kind == READ].sum()),
        written=int(sectors[kind == WRITE].sum()),
        written_by_warps=accesses.written_by_warps,
    )


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What blocks of a launch read that others wrote before them: those wait for these.

    `read` are the accesses that read so, `before` for each of them the first that wrote the line;
    `read_by_block` is how many sectors every block reads.
    """

    read: Integers
    before: Integers
    lines: NDArray[np.uint64]
    blocks: Integers  # that read or wrote so
    bytes: float  # read
    writers: int
    read_by_block: Floats


TAKEN_LATER = 1.01  # than it is written, whatever the paces of SMs
ROUNDS = 8  # of blocks that wait for blocks that wait
AT_ONCE = 0.02  # of the longest lifetime: such a block has nothing to do


def exchange(accesses: NDArray[Any], blocks: int) -> Exchange | None:
    """That of accesses in the order of execution by one worker, None where there is none."""
    _, line = np.unique(accesses["line"], return_inverse=True)
    block = accesses["block"].astype(np.int64)
    is_read, order = accesses["kind"] == READ, np.arange(len(accesses))
    first = np.full(int(line.max(initial=0)) + 1, len(accesses))
    np.minimum.at(first, line[~is_read], order[~is_read])
    mask = np.zeros(len(first), dtype=np.uint8)
    np.bitwise_or.at(mask, line[~is_read], accesses["mask"][~is_read])
    read = np.flatnonzero(is_read & (first[line] < order))
    read = read[
        (block[read] != block[first[line[read]]]) & (accesses["mask"][read] & mask[line[read]] > 0)
    ]
    if not len(read):
        return None
    before = first[line[read]]
    sectors = np.where(is_read, _SECTORS[accesses["mask"]], 0)
    return Exchange(
        read=read,
        before=before,
        lines=np.unique(accesses["line"][read]),
        blocks=np.unique(block[np.concatenate([read, before])]),
        bytes=float(SECTOR_BYTES * sectors[read].sum()),
        writers=len(np.unique(block[before])),
        read_by_block=np.bincount(block, sectors, blocks).astype(np.float64),
    )


def lifetimes_of(accesses: NDArray[Any], blocks: int, executed: float) -> Floats:
    """The instructions of the warp of each block that lives longest, in those of a usual block.

    0 for blocks that end at once. `executed` are the instructions of a warp, over all blocks: where
    accesses show less than half of them, no block is taken for one that does.
    """
    found = np.zeros(blocks)
    np.maximum.at(found, accesses["block"].astype(np.int64), accesses["step"])
    busy = found > AT_ONCE * found.max(initial=0)
    if found.sum() < executed / 2 or not busy.any():
        return np.ones(blocks)
    return np.where(busy, found / float(np.median(found[busy])), 0.0)


def _in_turn(accesses: NDArray[Any], time: Floats, exchange: Exchange) -> Floats:
    """Times at which blocks read what others write after it was written, and go on then."""
    order = np.lexsort((accesses["step"], accesses["block"]))
    offset = accesses["block"][order] * 2.0 * (time.max() + 1) * ROUNDS
    for _ in range(ROUNDS):
        later = time.copy()
        written = TAKEN_LATER * time[exchange.before]
        later[exchange.read] = np.maximum(time[exchange.read], written)
        later[order] = np.maximum.accumulate(later[order] + offset) - offset
        if np.allclose(later, time):
            break
        time = later
    return time


def accesses_in_time(
    accesses: NDArray[Any],
    lifetimes: Floats,
    exchange: Exchange | None,
    starts: Floats,
    progress: BlockProgress | None = None,
) -> Accesses:
    """The accesses of all blocks of a launch, line by line.

    `lifetimes` says how long each block takes, `starts` when it begins, and `progress` how it gets
    on, evenly where not given; its work goes with the instructions of the warp that lives longest.
    An atomic both reads its line and writes it.
    """
    assert accesses.dtype == ACCESS
    block = accesses["block"].astype(np.int64)
    last = np.zeros(len(starts))
    np.maximum.at(last, block, accesses["step"])
    progress = BlockProgress.even(np.ones(len(starts))) if progress is None else progress
    work = lifetimes[block] * accesses["step"] / np.maximum(last[block], 1)
    time = starts[block] + progress.time(block, work)
    if exchange is not None:
        time = _in_turn(accesses, time, exchange)
    row, piece, mask, sizes = _pieces(accesses)
    sectors = _SECTORS[mask].astype(np.float64)
    kind = accesses["kind"][row]
    is_atomic = kind == ATOMIC
    sectors[is_atomic] = 0.0  # counted apart: neither reads nor writes of L2
    again = np.flatnonzero(is_atomic)
    every = np.concatenate([np.arange(len(row)), again])
    return Accesses(
        time=time[row][every],
        piece=piece[every],
        block=block[row][every],
        sectors=sectors[every],
        size=SECTOR_BYTES * sizes[piece][every],
        is_write=np.concatenate([kind == WRITE, np.ones(len(again), dtype=bool)]),
    )


def _pieces(
    accesses: NDArray[Any],
) -> tuple[Integers, Integers, NDArray[np.uint8], Floats]:
    """Parts of accesses, each of one piece: its touch, its piece, its sectors; and sizes of pieces.

    A piece is a line of which all accesses have the same sectors, else a sector of it: blocks that
    read sectors of their own share nothing.
    """
    lines, line = np.unique(accesses["line"], return_inverse=True)
    mask = accesses["mask"]
    all_of, some_of = np.zeros(len(lines), dtype=np.uint8), np.full(len(lines), 15, dtype=np.uint8)
    np.bitwise_or.at(all_of, line, mask)
    np.bitwise_and.at(some_of, line, mask)
    is_split = (all_of != some_of)[line]
    whole, split = np.flatnonzero(~is_split), np.flatnonzero(is_split)
    has = [split[mask[split] >> n & 1 > 0] for n in range(LINE_BYTES // SECTOR_BYTES)]
    row = np.concatenate([whole, *has])
    sector = np.repeat(range(len(has)), list(map(len, has)))
    named = np.concatenate([line[whole] * 8 + 4, line[row[len(whole) :]] * 8 + sector])
    masks = np.concatenate([mask[whole], (1 << sector).astype(np.uint8)])
    names, piece = np.unique(named, return_inverse=True)
    sizes = np.zeros(len(names))
    sizes[piece] = _SECTORS[masks]
    return row, piece.astype(np.int64), masks, sizes
