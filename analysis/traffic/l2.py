"""Traffic below L1, modelled: what SMs fetch from L2, what crosses L2, what DRAM gives and takes.

The input are accesses: which block fetches or writes which piece of memory, and when in its
lifetime. L1 keeps what a block fetched before, so a touch is what reaches L2 (but for warps that
fall behind, `fetched_again`). From there on, with `in_step` and `relative_times` of
`analysis.traffic.block_schedule`:

1. **Schedule.** Blocks start in the order of their index, as many at once as fit
   (`analysis.traffic.block_schedule`).
2. **Merging.** Where SMs of one GPC fetch the same sector at the same time, one fetch serves up to
   four. That takes blocks in step, and they fall out of step (`in_step`).
5. **Writes** go to DRAM when others push them out of L2, or when too much there is dirty: before
   the next touch, as reuse has it, or before the launch ends. What is left then goes there later.

`Caches` has the constants of L2, measured on an H100 and an H200; rules on when blocks run were
fitted on the ladder there. Of other devices, those whose L2 has two halves get as large a part of
it, others all of it, and no merging; the rules are the same. What the model leaves out, and how
far it is from hardware, stands in docs/validation.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.access import Copies
from analysis.coalescing import SECTOR_BYTES
from analysis.device_table import MIB
from analysis.devices import Device
from analysis.traffic.block_schedule import BUSY_AHEAD_THREADS, Floats, Integers

MOMENTS = 4096  # of a block's lifetime that are told apart: accesses of one moment meet
FAR = 0.5  # of all sectors have their home in the far half of L2


@dataclass(frozen=True, kw_only=True)
class Caches:
    """How the caches of a device behave. Sizes in bytes.

    `read_reach`: pieces reused within so many bytes of others stay in L2, half of those at just
    that distance; `read_width`: over twice so many the share falls from 73% to 27%.
    `dirty_reach`: the same of written pieces, which go to DRAM then, within `read_width` as well;
    `write_reach`: how much may be dirty, within `write_width`.
    `both_sides`: the room that a piece takes which SMs of both partitions read, over that of one
    which those of one side read. Up to `merging_sms` of one GPC share a fetch.
    """

    partitions: int
    merging_sms: int
    read_reach: float
    read_width: float
    dirty_reach: float
    write_reach: float
    write_width: float
    both_sides: float

    @property
    def write_room(self) -> float:
        """The room of a written piece beside read ones."""
        return self.read_reach / self.write_reach


# Measured on an H100 and an H200 (benchmarks/l2_reach.py), by the size of L2: what is read in turn,
# each part by the same SM, and what is written. (Of an H100 all but 23.8 MiB go to DRAM, but of 24
# only 0.8: at 24.0 the model has 1.0, at 23.8 1.1.) What is written and then followed by others
# goes after 35 and 40 MiB (docs/experiments.md), 0.70 and 0.67 of L2: here 0.70, for `split-k`
# at 2048 writes too much on an H200 with less. Of an L2 of another size as large a part.
_READ_REACH = {50 * MIB: 41.7 * MIB, 60 * MIB: 47.3 * MIB}
_WRITE_REACH = {50 * MIB: 24.0 * MIB, 60 * MIB: 27.9 * MIB}
_READ_PART, _DIRTY_PART, _WRITE_PART = 0.81, 0.70, 0.47
_READ_WIDTH, _WRITE_WIDTH = 0.045, 0.03  # of L2
# Nearly as if each half kept a copy: 1.5 to 1.8 where two to four SMs read each part
# (docs/experiments.md).
_BOTH_SIDES = 1.55
_MERGING_SMS = 4  # of an H100's GPC, 1 to 4 SMs fetch once, 5 to 8 twice, 9 to 12 three times

# Two partitions: NVIDIA A100 Tensor Core GPU Architecture and H100 Tensor Core GPU Architecture
# (whitepapers), "L2 cache"; others are not described so.
_TWO_PARTITIONS = ((8, 0), (9, 0), (10, 0))


def caches_of(device: Device) -> Caches:
    """The constants for a device; only those of compute capability 9.0 were measured."""
    l2 = device.l2_bytes
    two = device.compute_capability in _TWO_PARTITIONS
    return Caches(
        partitions=2 if two else 1,
        merging_sms=_MERGING_SMS if device.compute_capability == (9, 0) else 1,
        # a half keeps copies of the other's lines
        read_reach=_READ_REACH.get(l2, _READ_PART * l2) if two else l2,
        read_width=_READ_WIDTH * l2,
        dirty_reach=_DIRTY_PART * l2 if two else l2,
        write_reach=_WRITE_REACH.get(l2, _WRITE_PART * l2) if two else l2,
        write_width=_WRITE_WIDTH * l2,
        both_sides=_BOTH_SIDES if two else 1.0,
    )


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """What blocks touch of memory below L1: arrays of one length, in any order.

    `time` is in lifetimes of a block since the launch began, `piece` numbers the pieces from 0,
    `block` is the linear index of who accesses. The block moves `sectors`; the piece is `size`
    bytes large, the same in all of its accesses. `is_write` tells stores from loads.
    """

    time: Floats
    piece: Integers
    block: Integers
    sectors: Floats
    size: Floats
    is_write: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Sectors (32 bytes) and bytes of a launch below L1, as a model has them.

    `fetched_sectors` come into L1; `merged_sectors` of them are left where SMs fetched together;
    `written_sectors` are those of stores that L1 sends;
    `l2_read_sectors` and `l2_write_sectors` count what crosses between partitions again.
    """

    fetched_sectors: float
    merged_sectors: float
    written_sectors: float
    l2_read_sectors: float
    l2_write_sectors: float
    dram_read_bytes: float
    dram_write_bytes: float

    @property
    def rounded(self) -> dict[str, int]:
        """In whole sectors and bytes: sums over blocks differ in their last digits."""
        return {name: round(value) for name, value in vars(self).items()}

    @property
    def counters(self) -> dict[str, int]:
        """Under Nsight Compute's names: those of `analysis.records.counters.MODELLED`."""
        return {
            "l1tex__m_xbar2l1tex_read_sectors.sum": round(self.fetched_sectors),
            "lts__t_sectors_srcunit_tex_op_read.sum": round(self.merged_sectors),
            "lts__t_sectors_op_read.sum": round(self.l2_read_sectors),
            "lts__t_sectors_op_write.sum": round(self.l2_write_sectors),
            "dram__bytes_read.sum": round(self.dram_read_bytes),
            "dram__bytes_write.sum": round(self.dram_write_bytes),
        }


# Blocks beside each other on an SM that copy single floats past registers share lines in L1, as
# long as they stay side by side. Fitted on `wide-thread-tile` and `async-copy`; no other kernel has
# confirmed it.
SHARED_BY_COPIES = 0.245


def shared_in_l1(
    blocks: int,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    copies: Copies = "loads",
) -> float:
    """The share of fetches that blocks beside each other on an SM save."""
    if blocks_per_sm == 1 or copies != "asynchronous" or threads_per_block >= BUSY_AHEAD_THREADS:
        return 0.0
    return SHARED_BY_COPIES * max(0.0, 1 - device.sm_count * blocks_per_sm / blocks)


# Stores of one warp to one sector, one after the other, are merged in L1 if they have to wait
# there, and they wait the longer the more the launch writes: 0.19 to 0.24 of them where it is 16
# MiB, 0.21 of 36, 0.33 of 64, 0.49 of 144 and 0.53 to 0.57 of 256, whatever K (the ladder's
# 2D-coarsened rung, 4 bytes per lane, on an H100; the rule has 0.29 for the second of these), about
# none where each SM has a block or less. 16 bytes per lane, in its vectorized rung, were never
# merged.
MERGED_STORES, OF_BYTES = 0.22, 16 * MIB  # by its cube root
WIDE_BYTES = 16


def merged_stores(
    sectors: float,
    distinct: float,
    written_bytes: float,
    *,
    bytes_per_lane: int,
    is_alone: bool,
) -> float:
    """The sectors that stores send to L2.

    `sectors` is their count at L1, `distinct` how many it would be if each warp wrote each sector
    once, `written_bytes` what the launch writes in all; `is_alone` says that no SM gets a second
    block.
    """
    if bytes_per_lane >= WIDE_BYTES or is_alone:
        return sectors
    share = min(1.0, MERGED_STORES * float(np.cbrt(written_bytes / OF_BYTES)))
    return sectors - share * max(0.0, sectors - distinct)


# The model.


def traffic(
    accesses: Accesses,
    device: Device,
    *,
    in_step: float,
    blocks_per_sm: int = 1,
    relative_times: Floats | None = None,
    written_sectors: float | None = None,
) -> Traffic:
    """The traffic of a launch's accesses on a device.

    `in_step` is the share of simultaneous fetches that meet, `blocks_per_sm` run at a time,
    `relative_times` says how long each SM takes for what takes a usual one 1. `written_sectors`
    come from L1, as many as are touched where not given.
    """
    caches = caches_of(device)
    fetched = float(accesses.sectors[~accesses.is_write].sum())
    merged = fetched - in_step * _mergeable(
        accesses, device.sm_count, blocks_per_sm, caches.merging_sms
    )
    if relative_times is not None:
        accesses = replace(
            accesses, time=accesses.time * relative_times[accesses.block % device.sm_count]
        )
    visits = _visits(accesses)
    reuse = _reuse(visits.piece)
    gone = _gone(visits, reuse, caches)
    missed = np.where(visits.is_write, 0.0, np.where(reuse.previous >= 0, gone, 1.0))
    crossing = _crossing(visits, missed) if caches.partitions == 2 else 0.0
    if written_sectors is None:
        written_sectors = float(accesses.sectors[accesses.is_write].sum())
    return Traffic(
        fetched_sectors=fetched,
        merged_sectors=merged,
        written_sectors=written_sectors,
        l2_read_sectors=merged + crossing,
        l2_write_sectors=written_sectors * (1 + FAR * (caches.partitions - 1)),
        dram_read_bytes=float((missed * visits.size)[~visits.is_write].sum()),
        dram_write_bytes=_written_back(visits, reuse, gone, caches),
    )


def bytes_written(accesses: Accesses) -> float:
    """What a launch writes in all, each piece once."""
    _, first = np.unique(accesses.piece[accesses.is_write], return_index=True)
    return float(accesses.size[accesses.is_write][first].sum())


# An H100 deals its first blocks about so: eight to one GPC, the others evenly to all, in runs of
# neighbours; where SMs have room for several blocks, it goes round as often (recorded SMs of blocks
# of launches of 8 to 800; a GPC has 14 to 18 SMs, here the first one has up to 24).
GPCS, DEALT_FIRST = 8, 8


def _gpc(blocks: Integers, at_once: int, sms: int) -> Integers:
    """Which run of neighbours each block belongs to, of those that run at a time in one GPC."""
    runs = GPCS * max(1, round(at_once / sms))
    place = blocks % at_once - DEALT_FIRST
    found: Integers = np.maximum(place, 0) * runs // max(1, at_once - DEALT_FIRST)
    return found


def _mergeable(accesses: Accesses, sms: int, blocks_per_sm: int, most: int) -> float:
    """Sectors of reads that SMs of one GPC fetch at the moment at which others of it do.

    Up to `most` of them are served by one fetch.
    """
    if most == 1:
        return 0.0
    reads = np.flatnonzero(~accesses.is_write)
    moment = np.rint(accesses.time[reads] * MOMENTS).astype(np.int64)
    pieces = int(accesses.piece.max(initial=0)) + 1
    at_once = min(sms * blocks_per_sm, int(accesses.block.max(initial=0)) + 1)
    gpc = _gpc(accesses.block[reads], at_once, sms)
    key = (moment * pieces + accesses.piece[reads]) * (int(gpc.max(initial=0)) + 1) + gpc
    _, fetch, readers = np.unique(key, return_inverse=True, return_counts=True)
    sectors = np.bincount(fetch, weights=accesses.sectors[reads])
    return float((sectors * (1 - np.ceil(readers / most) / readers)).sum())


@dataclass(frozen=True, kw_only=True)
class _Visits:
    """Accesses in order of time, reads of one piece at one moment in one, and so its writes.

    `readers` are the blocks of each visit, `blocks` those that visit each piece at any time.
    """

    piece: Integers
    size: Floats
    readers: Integers
    is_write: NDArray[np.bool_]
    blocks: Integers

    @property
    def pieces(self) -> int:
        return len(self.blocks)

    @property
    def sizes(self) -> Floats:
        """Bytes of each piece."""
        found = np.zeros(self.pieces)
        found[self.piece] = self.size
        return found

    @property
    def is_written(self) -> NDArray[np.bool_]:
        """Whether each piece is written at any time."""
        found = np.zeros(self.pieces, dtype=bool)
        found[self.piece[self.is_write]] = True
        return found


def _visits(accesses: Accesses) -> _Visits:
    order = np.argsort(accesses.time, kind="stable")
    piece = accesses.piece[order]
    pieces = int(piece.max(initial=0)) + 1
    moment = np.rint(accesses.time[order] * MOMENTS).astype(np.int64)
    is_write = accesses.is_write[order]
    key = (moment * pieces + piece) * 2 + is_write
    _, first, readers = np.unique(key, return_index=True, return_counts=True)
    in_time = np.argsort(first)
    chosen = first[in_time]
    return _Visits(
        piece=piece[chosen],
        size=accesses.size[order][chosen],
        readers=readers[in_time],
        is_write=is_write[chosen],
        blocks=_blocks(accesses, pieces),
    )


def _blocks(accesses: Accesses, pieces: int) -> Integers:
    """How many blocks touch each piece."""
    blocks = int(accesses.block.max(initial=0)) + 1
    pairs = np.sort(accesses.piece * blocks + accesses.block)  # faster than np.unique hashes
    is_new = np.diff(pairs, prepend=-1) != 0
    return np.bincount(pairs[is_new] // blocks, minlength=pieces)


def _beyond(distance: Floats, reach: float, width: float) -> Floats:
    """The share of pieces that have left a cache after so many bytes of others."""
    found: Floats = 1 / (1 + np.exp(-np.clip((distance - reach) / width, -50, 50)))
    return found


ROUNDS = 6  # after which the shares below have settled within a percent


def _gone(visits: _Visits, reuse: _Reuse, caches: Caches) -> Floats:
    """The share of each piece that has left L2 by each visit since the one before it.

    How much room a piece takes, per byte, depends on how many read it while it stays, and how long
    it stays on the room that all take: found round by round.
    """
    sizes, is_written = visits.sizes, visits.is_written
    is_again = (reuse.previous >= 0) & ~visits.is_write
    room = np.where(is_written, caches.write_room, 1.0)
    gap = np.maximum(np.arange(len(visits.piece)) - reuse.previous - 1, 0)
    footprint = reuse.footprint(gap)
    for _ in range(ROUNDS):
        gone = _beyond(footprint(sizes * room), caches.read_reach, caches.read_width)
        missed = np.where(is_again, gone, ~visits.is_write)
        stays = np.bincount(visits.piece, weights=missed, minlength=visits.pieces)
        of_read = _room_of_read(visits.blocks / np.maximum(stays, 1.0), caches)
        room = np.where(is_written, caches.write_room, of_read)
    return gone


def _room_of_read(readers: Floats, caches: Caches) -> Floats:
    """The room of a piece that so many read while it stays: are they on both sides of L2?"""
    on_both_sides = 1 - 2.0 ** (1 - np.maximum(readers, 1.0))
    found: Floats = 1 + (caches.both_sides - 1) * on_both_sides
    return found


def _written_back(visits: _Visits, reuse: _Reuse, gone: Floats, caches: Caches) -> float:
    """Bytes that reach DRAM before the launch ends: those that leave L2 after they were written.

    They leave it between two visits as any line does; after the last one when as many others follow
    as `dirty_reach` says, or because no more than `write_reach` may be dirty.
    """
    sizes, is_written = visits.sizes, visits.is_written
    of_written = np.flatnonzero(is_written[visits.piece])
    order = of_written[np.argsort(visits.piece[of_written], kind="stable")]
    begins, lengths = _runs(visits.piece[order])
    dirty, left = np.zeros(len(begins)), np.zeros(len(begins))
    for turn in range(int(lengths.max(initial=0))):
        here = np.flatnonzero(lengths > turn)
        visit = order[begins[here] + turn]
        left[here] += dirty[here] * gone[visit]
        dirty[here] = np.where(visits.is_write[visit], 1.0, dirty[here] * (1 - gone[visit]))
    last = order[begins + lengths - 1]
    piece = visits.piece[last]

    def following(room: Floats) -> Floats:
        """Of each written piece, the bytes of others whose last visit comes after its own."""
        lasts = np.zeros(len(visits.piece) + 1)
        lasts[reuse.last] = (sizes * room)[visits.piece[reuse.last]]
        found: Floats = np.cumsum(lasts[::-1])[::-1][last + 1]
        return found

    of_read = _room_of_read(visits.blocks.astype(np.float64), caches)
    as_any = np.where(is_written, 1.0, of_read)
    # what one block reads is not in the way of what is dirty; what came back from DRAM is clean
    as_dirty = np.where(visits.blocks == 1, 0.0, of_read / caches.write_room)
    as_dirty[piece] = dirty + (1 - dirty) / caches.write_room
    pushed_out = _beyond(following(as_any), caches.dirty_reach, caches.read_width)
    too_dirty = _beyond(following(as_dirty), caches.write_reach, caches.write_width)
    left += dirty * np.maximum(pushed_out, too_dirty)
    return float((left * sizes[piece]).sum())


def _runs(piece: Integers) -> tuple[Integers, Integers]:
    """Where each piece's visits begin in an order by pieces, and how many they are."""
    begins = np.flatnonzero(np.diff(piece, prepend=-1) != 0)
    return begins, np.diff(begins, append=len(piece))


# Of reads of what another block wrote: neighbours run on neighbouring SMs. Fitted on the sums of
# the rungs that share tiles, at 512 and 1024, of which 0.17 of the sectors crossed.
FAR_FROM_WRITER = 0.34


def _crossing(visits: _Visits, missed: Floats) -> float:
    """Sectors that reads bring over from the far partition.

    A sector crosses in a stay if any of its readers is on the far side: one reader is with
    probability 1/2, n are with 1 - 2^-n. Who writes it leaves it on his side, too, and who reads
    what another wrote is mostly there.
    """
    order = np.argsort(visits.piece, kind="stable")
    begins, lengths = _runs(visits.piece[order])
    near = np.ones(len(begins))  # the share that is on neither side but its home in this stay
    crossing = 0.0
    for turn in range(int(lengths.max(initial=0))):
        here = np.flatnonzero(lengths > turn)
        visit = order[begins[here] + turn]
        unread = missed[visit] + (1 - missed[visit]) * near[here]
        alone = 2.0 ** -visits.readers[visit].astype(np.float64)
        reads = ~visits.is_write[visit]
        crossing += float((unread * (1 - alone) * visits.size[visit])[reads].sum()) / SECTOR_BYTES
        near[here] = np.where(reads, unread * alone, near[here] * FAR_FROM_WRITER)
    return crossing


@dataclass(frozen=True, kw_only=True)
class _Reuse:
    """Each visit's previous one (-1: none), each piece's last, and the gaps between visits.

    Gaps are in order of length; `absent` is the piece that each of them is without.
    """

    previous: Integers
    last: Integers
    lengths: Floats
    absent: Integers

    def footprint(self, window: Integers) -> Callable[[Floats], Floats]:
        """A function of the pieces' weights: the average weight of what so many visits visit.

        It is the mean over all windows of that length: all weight less that of absent pieces, and
        a gap of g visits without a piece holds g - w + 1 windows of w.
        """
        at = np.searchsorted(self.lengths, window.astype(np.float64))
        windows = np.maximum(len(self.previous) - window + 1, 1)

        def footprint(weights: Floats) -> Floats:
            absent = weights[self.absent]
            # sums over gaps at least so long
            weight_from = np.append(np.cumsum(absent[::-1])[::-1], 0.0)
            length_from = np.append(np.cumsum((absent * self.lengths)[::-1])[::-1], 0.0)
            missing = length_from[at] - weight_from[at] * (window - 1)
            found: Floats = float(weights.sum()) - missing / windows
            return found

        return footprint


def _reuse(piece: Integers) -> _Reuse:
    n = len(piece)
    order = np.argsort(piece, kind="stable")
    is_first = np.diff(piece[order], prepend=-1) != 0
    previous = np.full(n, -1)
    previous[order[1:]] = np.where(is_first[1:], -1, order[:-1])
    last = order[np.append(is_first[1:], True)] if n else order
    first = order[is_first]
    again = np.flatnonzero(previous >= 0)
    gaps = np.concatenate([first, n - 1 - last, again - previous[again] - 1])
    by_length = np.argsort(gaps)
    return _Reuse(
        previous=previous,
        last=last,
        lengths=gaps[by_length].astype(np.float64),
        absent=piece[np.concatenate([first, last, again])][by_length],
    )
