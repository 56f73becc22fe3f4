"""Model of the traffic below L1: sectors between L1 and L2, and bytes that DRAM reads and writes.

The input is a list of accesses: which block reads or writes which piece of memory, and when. L1
keeps the data that a block has read, so that every access in the list reaches L2. The model has
five parts:

1. **Schedule.** Blocks start in the order of their index, as many at once as fit
   (`analysis.traffic.block_schedule`).
2. **Merging.** If SMs of one GPC fetch the same sector at the same time, one fetch serves up to
   four of them. That needs blocks in step, and blocks fall out of step (`in_step`).
3. **Reuse.** SMs drift apart (`relative_times`). Between two accesses to a piece, other pieces take
   room in L2: the average footprint of a window of that length (Xiang, Ding, Luo, Bao: HOTL, a
   Higher Order Theory of Locality, ASPLOS 2013). Beyond the reach of L2, DRAM reads the piece
   again.
4. **Partitions.** If L2 has two partitions, an SM reads through the near one. A sector whose home
   is the far partition crosses over once per residence in L2; half of all writes cross.
5. **Write-backs.** A written piece goes to DRAM when it is evicted or when too much of L2 is dirty,
   before its next access or before the launch ends. The rest is written back after the launch.

`Caches` holds the constants of L2, measured on an H100 and an H200; the rules of the schedule were
fitted on the ladder there. Other devices with two L2 partitions use the same fractions of their L2,
devices with one partition all of it, both without merging; the rules are the same.
docs/validation.md lists the effects that the model omits, and its errors.

`l2.c` computes parts 2 to 5; this file has the constants and the parts that treat a launch as a
whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import Copies
from analysis.coalescing import SECTOR_BYTES
from analysis.device_table import MIB
from analysis.devices import Device
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.traffic.block_schedule import BUSY_AHEAD_THREADS, Floats, Integers
from analysis.traffic.native import call, pointer_to

TOGETHER = 384  # per lifetime of a block: fetches in one of these intervals can be merged
PAIR_BYTES = 2 * SECTOR_BYTES
WINDOWS = tuple(2.0**-k for k in range(12, -1, -1))  # in lifetimes of a block
FAR = 0.5  # fraction of sectors with their home in the far partition of L2


@dataclass(frozen=True, kw_only=True)
class Caches:
    """Constants of the caches of a device. Sizes in bytes."""

    partitions: int  #: of L2
    merging_sms: int  #: SMs of one GPC that can share a fetch
    read_reach: float  #: reuse distance at which half of the pieces are still in L2
    #: over twice this distance, the fraction of pieces in L2 falls from 73% to 27%
    read_width: float
    #: distance at which half of the written pieces are written back; its width is `read_width` too
    dirty_reach: float
    write_reach: float  #: bytes that may be dirty
    write_width: float  #: width of `write_reach`, as `read_width`
    #: room of a piece that SMs of both partitions read, relative to a piece that SMs of one read
    both_sides: float

    def with_room_for(self, room: float) -> Caches:
        """The caches for accesses that take so many bytes of room per byte."""
        reaches = ("read_reach", "read_width", "dirty_reach", "write_reach", "write_width")
        return replace(self, **{name: getattr(self, name) / room for name in reaches})

    @property
    def write_room(self) -> float:
        """Room in L2 of a written piece, relative to a read one."""
        return self.read_reach / self.write_reach


# Reach by the size of L2, measured on an H100 and an H200 (docs/experiments.md): cyclic reads, each
# part by the same SM.
_READ_REACH = {50 * MIB: 41.7 * MIB, 60 * MIB: 47.3 * MIB}
# The same for writes. (Of larger writes, an H100 writes back all but 23.8 MiB, but of 24 MiB it
# writes back only 0.8: the model has 1.0 with a reach of 24.0, and 1.1 with 23.8.)
_WRITE_REACH = {50 * MIB: 24.0 * MIB, 60 * MIB: 27.9 * MIB}
_READ_PART = 0.81  # read reach of an L2 of another size, as a fraction of it
_WRITE_PART = 0.47  # write reach of an L2 of another size, as a fraction of it
# Written pieces that others follow are written back after 35 and 40 MiB (docs/experiments.md): 0.70
# and 0.67 of L2. With less than 0.70, `split-k` at 2048 writes too much on an H200.
_DIRTY_PART = 0.70
_READ_WIDTH = 0.045  # as a fraction of L2
_WRITE_WIDTH = 0.03  # as a fraction of L2
# Nearly as if each partition kept a copy: 1.5 to 1.8 where two to four SMs read each part
# (docs/experiments.md).
_BOTH_SIDES = 1.55
_MERGING_SMS = 4  # in a GPC of an H100, 1 to 4 SMs fetch once, 5 to 8 twice, 9 to 12 three times

# Two partitions: NVIDIA A100 Tensor Core GPU Architecture and H100 Tensor Core GPU Architecture
# (whitepapers), "L2 cache". The documents of other architectures do not mention partitions.
_TWO_PARTITIONS = ((8, 0), (9, 0), (10, 0))


def caches_of(device: Device) -> Caches:
    """Constants for a device. Only those of compute capability 9.0 were measured."""
    l2 = device.l2_bytes
    two = device.compute_capability in _TWO_PARTITIONS
    return Caches(
        partitions=2 if two else 1,
        merging_sms=_MERGING_SMS if device.compute_capability == (9, 0) else 1,
        # each partition keeps copies of lines of the other one
        read_reach=_READ_REACH.get(l2, _READ_PART * l2) if two else l2,
        read_width=_READ_WIDTH * l2,
        dirty_reach=_DIRTY_PART * l2 if two else l2,
        write_reach=_WRITE_REACH.get(l2, _WRITE_PART * l2) if two else l2,
        write_width=_WRITE_WIDTH * l2,
        both_sides=_BOTH_SIDES if two else 1.0,
    )


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Parts of lines that DRAM transfers, which are pairs of sectors, relative to sectors.

    A pair is lone if the other one of its line is not accessed: its transfer is as long as that of
    `dram_pair_bytes`.
    """

    read: float = 1.0  #: bytes of pairs per byte of the sectors that are read
    lone_read: float = 0.0  #: share of them in lone pairs
    read_again: float = 1.0  #: the same of the sectors that a block reads after L2 evicted them
    lone_again: float = 0.0
    written: float = 1.0  #: the same of sectors that are written
    lone_written: float = 0.0
    #: bytes of the lines per byte of the sectors: L2 keeps room for whole lines
    room: float = 1.0


WHOLE_LINES = Pairs()


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """Accesses of blocks to memory below L1: arrays of one length, in any order."""

    time: Floats  #: since the start of the launch, in lifetimes of a block
    piece: Integers  #: number of the piece, from 0
    block: Integers  #: linear index of the block
    sectors: Floats  #: sectors that the block moves
    size: Floats  #: bytes of the piece, the same in all of its accesses
    is_write: NDArray[np.bool_]  #: true for stores, false for loads
    pairs: Pairs = WHOLE_LINES


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Modelled sectors (32 bytes) and bytes of a launch below L1."""

    fetched_sectors: float  #: sectors that arrive in L1
    merged_sectors: float  #: the same, with each merged fetch counted once
    written_sectors: float  #: sectors of stores that L1 sends to L2
    l2_read_sectors: float  #: a sector that crosses between partitions counts twice
    l2_write_sectors: float  #: a sector that crosses between partitions counts twice
    dram_read_bytes: float
    dram_write_bytes: float
    dram_lone_pairs: float = 0.0  #: pairs of sectors that DRAM reads without the rest of a line
    dram_lone_writes: float = 0.0  #: the same of pairs that it writes
    dram_fill_bytes: float = 0.0  #: bytes read because stores write parts of sectors
    #: shares of the repeated reads of pieces that come within each of `WINDOWS` after the first
    #: one; empty for a launch with more blocks than SMs
    soon_shares: tuple[float, ...] = ()

    def line_to(self, other: Traffic, steps: float) -> Traffic:
        """Linear extrapolation: this traffic plus `steps` times the difference to `other`."""
        names = [name for name in vars(self) if name != "soon_shares"]
        found = {
            name: max(0.0, a + steps * (getattr(other, name) - a))
            for name in names
            for a in (getattr(self, name),)
        }
        return replace(other, **found)

    @property
    def merged_share(self) -> float:
        """Sectors that L2 sends, relative to those that arrive in L1."""
        return self.merged_sectors / self.fetched_sectors if self.fetched_sectors else 1.0

    @property
    def rounded(self) -> dict[str, float]:
        """The fields in whole sectors and bytes: sums over blocks differ in their last digits."""
        whole = {name: round(value) for name, value in vars(self).items() if name != "soon_shares"}
        shares = dict(enumerate(self.soon_shares))
        return whole | {f"soon {number}": round(share, 3) for number, share in shares.items()}


# Co-resident blocks that copy single floats asynchronously share lines in L1 as long as they run
# side by side. Fitted on `wide-thread-tile` and `async-copy`; no other kernel confirms it.
SHARED_BY_COPIES = 0.245


def shared_in_l1(
    blocks: int,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    copies: Copies = "loads",
) -> float:
    """Fraction of fetches that co-resident blocks save because L1 already holds the line."""
    if blocks_per_sm == 1 or copies != "asynchronous" or threads_per_block >= BUSY_AHEAD_THREADS:
        return 0.0
    return SHARED_BY_COPIES * max(0.0, 1 - device.sm_count * blocks_per_sm / blocks)


# L1 merges consecutive stores of one warp to one sector if they have to wait there. They wait
# longer the more the launch writes: of such stores it merges 0.19 to 0.24 in a launch that writes
# 16 MiB, 0.21 at 36, 0.33 at 64, 0.49 at 144 and 0.53 to 0.57 at 256 MiB, for any K
# (`coarsened-2d`, 4 bytes per lane, on an H100; the rule has 0.29 for the second of these), and
# about none if each SM has one block or less. Stores of 16 bytes per lane (`vectorized`) were never
# merged.
MERGED_STORES = 0.22  # fraction of merged stores; grows with the cube root of the bytes
OF_BYTES = 16 * MIB  # bytes of a launch with this fraction
WIDE_BYTES = 16


def merged_stores(
    sectors: float,
    distinct: float,
    written_bytes: float,
    *,
    bytes_per_lane: int,
    is_alone: bool,
) -> float:
    """Sectors that stores send to L2 after merging in L1.

    `sectors`: count at L1. `distinct`: the count if each warp wrote each sector once.
    `written_bytes`: distinct bytes that the launch writes. `is_alone`: no SM gets a second block.
    """
    if bytes_per_lane >= WIDE_BYTES or is_alone:
        return sectors
    share = min(1.0, MERGED_STORES * float(np.cbrt(written_bytes / OF_BYTES)))
    return sectors - share * max(0.0, sectors - distinct)


# The model.

# Reach of sectors that stores fill in part, relative to that of whole ones: on an H200 with a warm
# L2, 48 MiB of lines that are stored in part cost no DRAM, and 64 MiB do (benchmarks.l2_states).
PART_REACH = 2.0
COVERED = 0.9  # of the bytes of written sectors: with fewer stored, some are written in part


def traffic(
    accesses: Accesses,
    device: Device,
    *,
    in_step: float,
    l2: L2State = DEFAULT_L2,
    blocks_per_sm: int = 1,
    relative_times: Floats | None = None,
    written_sectors: float | None = None,
    stored_bytes: float = inf,
) -> Traffic:
    """Traffic below L1 of a launch with these accesses on a device.

    `in_step`: fraction of the fetches issued together that coincide. `l2`: what the launch finds in
    L2; if that is what the same launch left, its traffic is the second half of that of two of them.
    `blocks_per_sm`: resident blocks per SM. `relative_times`: time that each SM takes for the same
    work, relative to a typical SM. `written_sectors`: sectors of stores that L1 sends, by default
    those of `accesses`.
    `stored_bytes`: of all stores. If sectors hold more, or if L2 writes more back because it evicts
    sectors before all of their stores, DRAM has to read the parts that are not stored.
    """
    caches = caches_of(device).with_room_for(accesses.pairs.room)
    written = bytes_written(accesses)
    in_part = stored_bytes < COVERED * written
    if in_part:  # what DRAM would have to fill first stays while there is room
        caches = replace(caches, write_reach=PART_REACH * caches.write_reach)
    is_alone = int(accesses.block.max(initial=-1)) < device.sm_count
    soon = soon_shares(accesses) if is_alone else ()
    fetched = float(accesses.sectors[~accesses.is_write].sum())
    merged = fetched - in_step * _mergeable(
        accesses, device.sm_count, blocks_per_sm, caches.merging_sms
    )
    if relative_times is not None:
        accesses = replace(
            accesses, time=accesses.time * relative_times[accesses.block % device.sm_count]
        )
    below = _below(accesses, caches)
    if l2 is L2State.WARM:
        below = _less(_below(_twice(accesses), caches), below)
    if written_sectors is None:
        written_sectors = float(accesses.sectors[accesses.is_write].sum())
    pairs = accesses.pairs
    again = max(0.0, below.dram_read_bytes - _bytes_read(accesses))
    once_bytes = pairs.read * (below.dram_read_bytes - again)
    again_bytes = pairs.read_again * again
    read_bytes = once_bytes + again_bytes
    lone_bytes = pairs.lone_read * once_bytes + pairs.lone_again * again_bytes
    fill_bytes, lone_fills, lone_writes = 0.0, 0.0, 0.0
    if in_part:
        fill_bytes = pairs.written * _unread_bytes(accesses)
        if l2 is not L2State.DIRTY:  # what stays in L2 needs no reading
            fill_bytes *= min(1.0, below.dram_write_bytes / written)
        lone_fills = pairs.lone_written * fill_bytes / PAIR_BYTES
        lone_writes = pairs.lone_written * pairs.written * below.dram_write_bytes / PAIR_BYTES
    elif stored_bytes < COVERED * below.dram_write_bytes:
        # sectors are evicted one by one, each with its fill
        lone_fills = lone_writes = below.dram_write_bytes / SECTOR_BYTES
        fill_bytes = lone_fills * PAIR_BYTES
    return Traffic(
        fetched_sectors=fetched,
        merged_sectors=merged,
        written_sectors=written_sectors,
        l2_read_sectors=merged + below.crossing_sectors,
        l2_write_sectors=written_sectors * (1 + FAR * (caches.partitions - 1)),
        dram_read_bytes=read_bytes + fill_bytes,
        dram_write_bytes=below.dram_write_bytes,
        dram_lone_pairs=lone_bytes / PAIR_BYTES + lone_fills,
        dram_lone_writes=lone_writes,
        dram_fill_bytes=fill_bytes,
        soon_shares=soon,
    )


def soon_shares(accesses: Accesses) -> tuple[float, ...]:
    """Shares of the repeated reads of pieces that come within each of `WINDOWS` after the first."""
    reads = ~accesses.is_write
    piece, time, sectors = (getattr(accesses, name)[reads] for name in ("piece", "time", "sectors"))
    first_time = np.full(int(piece.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first_time, piece, time)
    after = time - first_time[piece]
    first = np.zeros(len(first_time), dtype=np.int64)
    first[piece[after == 0]] = np.flatnonzero(after == 0)  # one of those at that time
    repeated = sectors.sum() - sectors[first[np.isfinite(first_time)]].sum()
    if not repeated:
        return (1.0,) * len(WINDOWS)
    return tuple(1 - float(sectors[after > window].sum() / repeated) for window in WINDOWS)


def share_within(shares: Sequence[float], window: float) -> float:
    """Share of the repeated reads within a window, by those of `WINDOWS`; 1 if none are known."""
    return float(np.interp(np.log2(window), np.log2(WINDOWS), shares)) if shares else 1.0


def _twice(accesses: Accesses) -> Accesses:
    """Accesses of two launches, one after the other."""
    apart = float(accesses.time.max(initial=0.0)) + 1.0
    time = np.tile(accesses.time.astype(np.float64), 2)
    time[len(accesses.time) :] += apart
    return replace(
        accesses,
        time=time,
        piece=np.tile(accesses.piece, 2),
        block=np.tile(accesses.block, 2),
        sectors=np.tile(accesses.sectors, 2),
        size=np.tile(accesses.size, 2),
        is_write=np.tile(accesses.is_write, 2),
    )


def _bytes_read(accesses: Accesses) -> float:
    """Bytes that a launch reads, each piece counted once."""
    sizes = np.zeros(int(accesses.piece.max(initial=-1)) + 1)
    sizes[accesses.piece[~accesses.is_write]] = accesses.size[~accesses.is_write]
    return float(sizes.sum())


def bytes_written(accesses: Accesses) -> float:
    """Bytes that a launch writes, each piece counted once."""
    return float(_written_sizes(accesses).sum())


def _unread_bytes(accesses: Accesses) -> float:
    """Bytes that a launch writes and never reads, each piece counted once."""
    sizes = _written_sizes(accesses)
    sizes[accesses.piece[~accesses.is_write]] = 0.0
    return float(sizes.sum())


def _written_sizes(accesses: Accesses) -> Floats:
    """Bytes of each piece that is written, 0 of the others."""
    written = accesses.is_write
    sizes = np.zeros(int(accesses.piece.max(initial=-1)) + 1)
    sizes[accesses.piece[written]] = accesses.size[written]
    return sizes


# An H100 distributes its first blocks approximately so: eight to one GPC, the others evenly to all
# GPCs in runs of neighbours, once per resident block of an SM (recorded SMs of blocks in launches
# of 8 to 800 blocks; a GPC has 14 to 18 SMs, in this model the first one has up to 24).
GPCS, DEALT_FIRST = 8, 8


def _gpc(blocks: Integers, at_once: int, sms: int) -> Integers:
    """Number of the run of neighbouring blocks, resident in one GPC, that each block belongs to."""
    runs = GPCS * max(1, round(at_once / sms))
    position = blocks % at_once - DEALT_FIRST
    found: Integers = np.maximum(position, 0) * runs // max(1, at_once - DEALT_FIRST)
    return found


#: arrays of `Accesses`, with their types
_TYPES = {
    **dict.fromkeys(("time", "sectors", "size"), np.float64),
    **dict.fromkeys(("piece", "block"), np.int64),
    "is_write": np.bool_,
}
ARRAYS = tuple(_TYPES)  # names of the arrays of `Accesses`
_CONSTANTS = (
    *("moments", "rounds", "partitions", "write_room", "read_reach", "read_width"),
    *("dirty_reach", "write_reach", "write_width", "both_sides", "far_from_writer"),
)
_BELOW = ("crossing_sectors", "dram_read_bytes", "dram_write_bytes")


class _Accesses(ctypes.Structure):
    """Accesses as C reads them. `arrays` keeps the arrays that it points to."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _TYPES),
        *((name, ctypes.c_uint64) for name in ("count", "pieces", "blocks")),
        *((name, ctypes.c_uint32) for name in ("is_cancelled", "reserved")),
    )
    arrays: Sequence[NDArray[Any]]

    @classmethod
    def of(cls, accesses: Accesses) -> _Accesses:
        arrays: list[NDArray[Any]] = [
            np.ascontiguousarray(getattr(accesses, name), dtype=dtype)
            for name, dtype in _TYPES.items()
        ]
        pieces, blocks = (
            int(numbers.max(initial=-1)) + 1 for numbers in (accesses.piece, accesses.block)
        )
        found = cls(*(array.ctypes.data for array in arrays), len(arrays[0]), pieces, blocks)
        found.arrays = arrays
        return found


class _Constants(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in _CONSTANTS)


class _Below(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in _BELOW)


def _mergeable(accesses: Accesses, sms: int, blocks_per_sm: int, most: int) -> float:
    """Sectors saved if one fetch serves up to `most` SMs of a GPC that read them in one moment."""
    if most == 1:
        return 0.0
    native, saved = _Accesses.of(accesses), ctypes.c_double()
    at_once = min(sms * blocks_per_sm, native.blocks)
    gpcs = _gpc(np.arange(native.blocks), at_once, sms).astype(np.uint32)
    numbers = ctypes.c_double(TOGETHER), ctypes.c_double(most)
    call("share_fetches", native, pointer_to(gpcs), *numbers, ctypes.byref(saved))
    return saved.value


MOMENTS = 4096  # per lifetime of a block: reads of a piece in one moment are one visit
ROUNDS = 6  # of room and residence, which then change by less than a percent
# Fraction of a written piece that readers may still have to transfer: it is below 1 because
# neighbouring blocks, which read it, run on neighbouring SMs. Fitted on the partial sums of the
# rungs that share tiles, at 512 and 1024, of which 0.17 of the sectors crossed.
FAR_FROM_WRITER = 0.34


# Share of the traffic of a launch below which a second one has none: the share of pieces that L2
# keeps falls smoothly around its reach, and a rest of it would make launches wait for DRAM.
NEGLIGIBLE = 0.02


def _less(both: _Below, one: _Below) -> _Below:
    """Return what the second of two launches adds."""
    added = ((getattr(both, name) - getattr(one, name), getattr(one, name)) for name in _BELOW)
    return _Below(*(more if more > NEGLIGIBLE * first else 0.0 for more, first in added))


def _below(accesses: Accesses, caches: Caches) -> _Below:
    """Transfers between partitions of L2, and traffic of DRAM. Raises MemoryError."""
    constants = {
        "moments": MOMENTS,
        "rounds": ROUNDS,
        "far_from_writer": FAR_FROM_WRITER,
        "write_room": caches.write_room,
        **{name: value for name, value in vars(caches).items() if name in _CONSTANTS},
    }
    native, found = _Accesses.of(accesses), _Below()
    call("traffic_of_l2", native, ctypes.byref(_Constants(**constants)), ctypes.byref(found))
    return found
