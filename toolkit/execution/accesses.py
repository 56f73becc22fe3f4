"""Accesses of blocks to global memory, recorded by the core, as input of `analysis.traffic.l2`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.block_schedule import BlockProgress, Floats, Integers
from analysis.traffic.l2 import WHOLE_LINES, Accesses, Pairs
from analysis.traffic.native import sorted_keys
from analysis.traffic.pieces import READ, WRITE, piece_accesses
from toolkit.sass.core.binding import ACCESS

# Recorded accesses of a launch (100 MB). If there are more, only some of the lines are recorded.
MOST_ACCESSES = 1 << 22
# The same of a launch whose blocks wait for each other: what they exchange is known only if the
# accesses to all lines are recorded.
MOST_ACCESSES_OF_WAITING = 1 << 23

_SECTORS = np.array([float(mask.bit_count()) for mask in range(256)])
_PAIRS = np.array([float(bool(mask & 3) + bool(mask & 12)) for mask in range(256)])
ALL_SECTORS = 15


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Reads of data that other blocks of the same launch wrote. The reading blocks wait for it."""

    read: Integers  # indices of these reads among the accesses
    before: Integers  # for each read, index of the last write before it to one of its sectors
    # lines that are read after a block wrote them, also the same block: they are in L2
    lines: NDArray[np.uint64]
    blocks: Integers  # blocks that read or write such data
    bytes: float  # bytes of these reads
    writers: int  # number of blocks that write such data
    read_by_block: Floats  # sectors that each block of the launch reads, of any data


# Time of a read, relative to the write that it waits for: more than 1, so that the read stays later
# although SMs differ in speed.
TAKEN_LATER = 1.01
ROUNDS = 8  # longest chain of blocks that wait for each other
AT_ONCE = 0.02  # a block with a shorter lifetime, relative to a typical block, counts as idle


def exchange(accesses: NDArray[Any], blocks: int) -> Exchange | None:
    """Exchange of data between blocks, None if there is none.

    `accesses` are in the order in which one worker executed them.
    """
    block = accesses["block"].astype(np.int64)
    is_read, before = accesses["kind"] == READ, _last_writes(accesses)
    read_back = np.flatnonzero(is_read & (before >= 0))
    read = read_back[block[read_back] != block[before[read_back]]]
    if not len(read):
        return None
    before = before[read]
    sectors = _SECTORS[accesses["mask"]]
    return Exchange(
        read=read,
        before=before,
        lines=np.unique(accesses["line"][read_back]),
        blocks=np.unique(block[np.concatenate([read, before])]),
        bytes=float(SECTOR_BYTES * sectors[read].sum()),
        writers=len(np.unique(block[before])),
        read_by_block=read_by_block(accesses, block, blocks),
    )


def read_by_block(accesses: NDArray[Any], block: NDArray[Any], blocks: int) -> Floats:
    """Sectors that each of `blocks` blocks reads. `block`: block of each access, from 0."""
    sectors = np.where(accesses["kind"] == READ, _SECTORS[accesses["mask"]], 0)
    return np.bincount(block.astype(np.int64), sectors, blocks).astype(np.float64)


def _last_writes(accesses: NDArray[Any]) -> Integers:
    """For each access, index of the last write or atomic before it to one of its sectors, or -1."""
    found = np.full(len(accesses), -1)
    for bit in 1 << np.arange(LINE_BYTES // SECTOR_BYTES):
        rows = np.flatnonzero(accesses["mask"] & bit)
        rows = rows[np.argsort(accesses["line"][rows], kind="stable")]
        begins = np.maximum.accumulate(
            np.where(np.diff(accesses["line"][rows], prepend=0) != 0, np.arange(len(rows)), 0)
        )
        writes = np.where(accesses["kind"][rows] != READ, np.arange(len(rows)), -1)
        last = np.maximum.accumulate(np.append(-1, writes[:-1])) if len(rows) else writes
        own = np.where(last >= begins, rows[np.maximum(last, 0)], -1)
        found[rows] = np.maximum(found[rows], own)
    return found


def after_writes(
    block: Integers, step: Floats | Integers, time: Floats, *, read: Integers, before: Integers
) -> Floats:
    """Access times, delayed until other blocks have written the data that a block reads.

    `read`, `before`: as in `Exchange`.
    """
    order = np.lexsort((step, block))
    offset = block[order] * 2.0 * (time.max() + 1) * ROUNDS
    for _ in range(ROUNDS):
        later = time.copy()
        later[read] = np.maximum(time[read], TAKEN_LATER * time[before])
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
    *,
    lines: int = 1,
    typical_steps: float | None = None,
) -> Accesses:
    """Accesses of all blocks of a launch to lines, each of which stands for `lines` lines.

    Block b begins at `starts[b]` and takes `lifetimes[b]`. `progress` defaults to constant speed.
    An atomic access is a read and a write. `typical_steps`: number of warp instructions that take a
    lifetime of 1, for a launch whose blocks differ.
    """
    assert accesses.dtype == ACCESS
    block = accesses["block"].astype(np.int64)
    progress = BlockProgress.even(np.ones(len(starts))) if progress is None else progress
    done = (
        _completed_work(accesses, lifetimes, exchange)
        if typical_steps is None
        else accesses["step"] / typical_steps
    )
    time = starts[block] + progress.time(block, done)
    if exchange is not None:
        time = after_writes(
            block, accesses["step"], time, read=exchange.read, before=exchange.before
        )
    return _by_piece(accesses, time, np.full(len(accesses), float(lines)))


def visits_in_time(
    visits: NDArray[Any],
    moments: int,
    starts: Floats,
    progress: BlockProgress,
    lifetimes: Floats | None = None,
) -> Accesses:
    """Accesses of all blocks, from the visits to groups of lines (`analysis.traffic.groups`).

    `moments`: moments per lifetime of a block. `lifetimes`: those of the blocks, if they differ.
    """
    block = visits["block"].astype(np.int64)
    done = visits["moment"] / moments * (1.0 if lifetimes is None else lifetimes[block])
    time = starts[block] + progress.time(block, done)
    return _by_piece(visits, time, visits["lines"].astype(np.float64))


def _by_piece(accesses: NDArray[Any], time: Floats, lines: Floats) -> Accesses:
    """Accesses, divided into accesses to pieces of lines. `lines`: lines that each stands for."""
    found = piece_accesses(accesses)
    of_line = lines[found.row]
    return Accesses(
        time=time[found.row],
        piece=found.piece,
        block=accesses["block"][found.row].astype(np.int64),
        sectors=of_line * found.sectors,
        size=SECTOR_BYTES * of_line * found.size,
        is_write=found.is_write,
        pairs=_pairs(accesses, lines),
    )


def _pairs(accesses: NDArray[Any], lines: Floats) -> Pairs:
    """Return the DRAM transfers of the lines, of which each stands for `lines` lines."""
    if not len(accesses) or (accesses["mask"] == ALL_SECTORS).all():
        return WHOLE_LINES
    number, order = sorted_keys(accesses["line"])
    is_other = np.append(True, number[1:] != number[:-1])
    first = np.flatnonzero(is_other)
    mask, kind = accesses["mask"][order], accesses["kind"][order]
    reads = np.where(kind != WRITE, mask, 0)
    read = np.bitwise_or.reduceat(reads, first)
    written = np.bitwise_or.reduceat(np.where(kind != READ, mask, 0), first)
    weight = lines[order[first]]

    def of(masks: NDArray[Any]) -> tuple[float, float]:
        """Bytes of pairs per byte of these sectors, and the share of them in lone pairs."""
        sectors, pairs = _SECTORS[masks], _PAIRS[masks]
        part, whole, lone = (float((weight * x).sum()) for x in (sectors, pairs, pairs == 1))
        return (2 * whole / part, lone / whole) if part else (1.0, 0.0)

    (of_read, lone_read), (of_written, lone_written) = of(read), of(written)
    accessed = float((weight * _SECTORS[read | written]).sum())
    room = float(weight.sum()) * _SECTORS[ALL_SECTORS] / accessed
    # what L2 has evicted is read again by a block alone
    block = accesses["block"][order]
    is_other[1:] |= block[1:] != block[:-1]
    first = np.flatnonzero(is_other)
    weight = lines[order[first]]
    again, lone_again = of(np.bitwise_or.reduceat(reads, first))
    return Pairs(
        read=of_read,
        lone_read=lone_read,
        read_again=again,
        lone_again=lone_again,
        written=of_written,
        lone_written=lone_written,
        room=room,
    )


def _completed_work(accesses: NDArray[Any], lifetimes: Floats, exchange: Exchange | None) -> Floats:
    """Fraction of a lifetime's work that a block has done at each access.

    Work is proportional to the instructions of a warp. If blocks do not wait for each other, all
    make their last read after the same fraction of their work: blocks at an edge, which execute a
    few instructions more or fewer, keep up with the others.
    """
    block, step = accesses["block"].astype(np.int64), accesses["step"].astype(np.float64)
    last, last_read = np.zeros((2, len(lifetimes)))
    np.maximum.at(last, block, step)
    if exchange is not None:
        found: Floats = lifetimes[block] * step / np.maximum(last[block], 1)
        return found
    is_read = accesses["kind"] == READ
    np.maximum.at(last_read, block[is_read], step[is_read])
    return np.minimum(1.0, step / steps_of_all_work(last, last_read)[block])


def steps_of_all_work(last: Floats, last_read: Floats) -> Floats:
    """Steps of a whole lifetime, for each block.

    All blocks make their last read after the same fraction of these steps. `last`, `last_read`:
    step of the last access and of the last read of each block.
    """
    reads = last_read > 0
    usual = float(np.median(last_read[reads] / last[reads])) if reads.any() else 1.0
    return np.maximum(1.0, np.where(reads, last_read / usual, last))
