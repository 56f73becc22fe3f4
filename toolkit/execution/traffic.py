"""Traffic below L1 of a launch of any kernel, from the requests of its blocks to L2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.devices import Device
from analysis.geometry import WARP_SIZE, Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.records.counters import InstructionCounts, totals
from analysis.records.metrics import BANK_CONFLICTS
from analysis.traffic.block_schedule import (
    BlockProgress,
    Floats,
    block_progress,
    drifted,
    in_step,
    relative_times,
    starts,
)
from analysis.traffic.l2 import (
    Accesses,
    Traffic,
    bytes_written,
    merged_stores,
    shared_in_l1,
    traffic,
)
from toolkit.machine_code.instruction import INSTRUCTION_BYTES
from toolkit.sass.accesses import Below
from toolkit.sass.schedule_facts import ScheduleFacts
from toolkit.sass.statistics import loop_bytes

READS, STORES = ("load", "copy", "bulk load"), ("store", "bulk store")
WIDEST_BYTES = 16  # per lane; a bulk copy counts as accesses of this width


@dataclass(frozen=True, kw_only=True)
class Residence:
    """Device that a kernel would run on, what it finds there, and its resident blocks per SM.

    `code_stays`: the launch before is one of the same kernel, whose code the SMs still have.
    """

    device: Device
    blocks_per_sm: int
    l2: L2State = DEFAULT_L2
    code_stays: bool = True


@dataclass(frozen=True, kw_only=True)
class L2Requests:
    """Requests of all blocks of a launch to L2."""

    below: Below  # number of sectors
    lifetimes: Floats  # time that each block takes, relative to a typical block
    # function from start times and progress of blocks to their accesses
    in_time: Callable[[Floats, BlockProgress], Accesses]
    starts: Floats | None = None  # start time of each block, if blocks differ
    # the same of half as many blocks, if these are not all blocks of the launch: the first ones.
    # `below` is that of all blocks in any case
    of_half: L2Requests | None = None


def traffic_of(
    asked: L2Requests,
    geometry: Geometry,
    facts: ScheduleFacts,
    instructions: Sequence[InstructionCounts],
    residence: Residence,
    *,
    drift_per_wave: float = 0.0,
) -> Traffic:
    """Traffic of a launch below L1 on a device.

    `instructions`: counts of all blocks. `drift_per_wave`: fraction of a lifetime by which
    co-resident blocks drift apart per wave. If only the first blocks are known, the others add as
    much per block as the second half of these.
    """
    of = partial(
        _traffic_of_first,
        geometry=geometry,
        facts=facts,
        instructions=instructions,
        residence=residence,
        drift_per_wave=drift_per_wave,
    )
    if asked.of_half is None:
        return of(asked)
    known, half = len(asked.lifetimes), len(asked.of_half.lifetimes)
    return of(asked.of_half).line_to(of(asked), (geometry.blocks - half) / (known - half))


def _traffic_of_first(
    asked: L2Requests,
    geometry: Geometry,
    facts: ScheduleFacts,
    instructions: Sequence[InstructionCounts],
    residence: Residence,
    drift_per_wave: float,
) -> Traffic:
    """Traffic of the blocks that are known, which are all blocks or the first ones."""
    device, per_sm = residence.device, residence.blocks_per_sm
    blocks, threads = len(asked.lifetimes), geometry.threads_per_block
    part = blocks / geometry.blocks
    if part < 1:
        instructions = [_of_part(one, part) for one in instructions]
    below = asked.below.times(part)
    copies, ahead, is_alone = facts.copies, facts.fetches_ahead, blocks <= device.sm_count
    loads, stores = (_accesses(instructions, actions) for actions in (READS, STORES))
    executed = [one.executed for one in instructions]
    steps: float = facts.steps(executed) or sum(_requests(load) for load in loads)
    steps *= share_of_a_block(asked.lifetimes) / geometry.warps_per_block
    begins, progress = asked.starts, BlockProgress.even(np.ones(blocks))
    if begins is None:
        begins = starts(asked.lifetimes, device, per_sm, threads, fetches_ahead=ahead)
        progress = block_progress(
            asked.lifetimes, device, per_sm, threads, copies, fetches_ahead=ahead
        )
    if drift_per_wave:
        begins, progress = drifted(begins, progress, asked.lifetimes, device, drift_per_wave)
    accesses = asked.in_time(begins, progress)
    shared = 0.0 if facts.past_l1 else shared_in_l1(blocks, device, per_sm, threads, copies)
    fetched = below.read * (1 - shared)
    reads = ~accesses.is_write
    read_sectors = accesses.sectors[reads].sum()
    scale = np.where(reads, fetched / read_sectors if read_sectors else 1.0, 1.0)
    conflicts = totals(instructions).get(BANK_CONFLICTS[1], 0)
    together = in_step(
        steps,
        has_barriers=facts.has_barriers,
        is_alone=is_alone,
        blocks_per_sm=per_sm,
        copies=copies,
        conflicts=copies == "loads" and conflicts > 0,
        past_l1=facts.past_l1,
        waves=geometry.blocks / (device.sm_count * per_sm),
    )
    stored = sum(one.threads * (one.bytes_per_lane or WIDEST_BYTES) for one in stores)
    return traffic(
        replace(accesses, sectors=scale * accesses.sectors),
        device,
        stored_bytes=stored,
        in_step=together,
        l2=residence.l2,
        blocks_per_sm=per_sm,
        relative_times=relative_times(device, per_sm, copies, loop_bytes=loop_bytes(instructions)),
        written_sectors=merged_stores(
            _sent(stores, below.written_by_warps),
            below.written_by_warps,
            bytes_written(accesses),
            bytes_per_lane=max((one.bytes_per_lane or WIDEST_BYTES for one in stores), default=4),
            is_alone=is_alone,
        ),
    )


def _of_part(one: InstructionCounts, part: float) -> InstructionCounts:
    """The counts that traffic depends on, of a part of the blocks."""
    sums = ("executed", "threads", "requests", "sectors", "wavefronts", "conflict_free")
    return replace(one, **{name: round(part * getattr(one, name)) for name in sums})


def share_of_a_block(lifetimes: Floats) -> float:
    """Fraction of a launch's work that a block does, averaged over blocks weighted by work."""
    return float((lifetimes**2).sum() / lifetimes.sum() ** 2)


def _accesses(
    instructions: Sequence[InstructionCounts], actions: tuple[str, ...]
) -> list[InstructionCounts]:
    """Accesses to global memory, by generic addresses too."""
    spaces = ("global", "generic")
    return [i for i in instructions if i.space in spaces and i.sectors and i.action in actions]


def _requests(one: InstructionCounts) -> float:
    """Number of requests of a load. A bulk copy counts as full-warp loads of its sectors."""
    if one.bytes_per_lane:
        return one.requests
    return one.sectors * SECTOR_BYTES / (WARP_SIZE * WIDEST_BYTES)


# L1 merges consecutive stores of a warp that fill sectors word by word, as stores of structs do.
# The trial launches with 2 to 5 lines per store send each sector once. With 8 lines per store, so
# many stores are in flight that most of them are sent separately (`merged_stores`).
MOST_LINES = 5
NEXT_BYTES = 8 * INSTRUCTION_BYTES  # of code between consecutive stores


def _sent(stores: Sequence[InstructionCounts], distinct: int) -> float:
    """Number of sectors that stores send to L2.

    `distinct`: the number if each warp sent each sector once, which is a lower bound.
    """
    everything, group = 0, list[InstructionCounts]()
    sent = 0
    for one in sorted(stores, key=lambda store: store.address):
        everything += one.sectors
        if group and not _follows(group[-1], one):
            sent, group = sent + max(store.sectors for store in group), []
        group.append(one)
    sent += max((store.sectors for store in group), default=0)
    return min(everything, max(sent, distinct))


def _follows(before: InstructionCounts, one: InstructionCounts) -> bool:
    return (
        one.address - before.address <= NEXT_BYTES
        and one.requests == before.requests
        and one.sectors <= MOST_LINES * LINE_BYTES // SECTOR_BYTES * one.requests
    )
