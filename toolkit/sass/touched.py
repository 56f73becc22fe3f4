"""What blocks touched of global memory, as the core notes it, for `analysis.traffic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.counters import InstructionCounts
from analysis.devices import Device
from analysis.geometry import WARP_SIZE, Geometry
from analysis.schedule import Floats, in_step, paces, starts
from analysis.traffic import Touches, Traffic, bytes_written, merged_stores, traffic
from toolkit.sass.core import TOUCH
from toolkit.sass.machine import Touched
from toolkit.sass.schedule_facts import ScheduleFacts
from toolkit.sass.statistics import loop_bytes

READ, WRITE, ATOMIC = range(3)  # kinds of touches, as trace.h numbers them
READS, STORES = ("load", "copy", "bulk load"), ("store", "bulk store")
WIDEST_BYTES = 16  # per lane: what a bulk copy counts as
MOST_TOUCHES = 1 << 22  # of each worker: 100 MB of them

_SECTORS = np.array([bin(mask).count("1") for mask in range(256)])


@dataclass(frozen=True, kw_only=True)
class Below:
    """Sectors of 32 bytes that blocks ask of L2: each counts once per block.

    `written_by_warps` counts a sector once for each warp that writes it.
    """

    read: int
    written: int
    written_by_warps: int

    @property
    def writers_per_sector(self) -> float:
        return self.written_by_warps / self.written if self.written else 1.0

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


def below(touched: Touched) -> Below:
    """The sectors of all touches."""
    sectors, kind = _SECTORS[touched.touches["mask"]], touched.touches["kind"]
    return Below(
        read=int(sectors[kind == READ].sum()),
        written=int(sectors[kind == WRITE].sum()),
        written_by_warps=touched.written_by_warps,
    )


def touches_in_time(touches: NDArray[Any], starts: Floats) -> Touches:
    """The touches of all blocks of a launch, line by line.

    `starts` says when each block begins, in its lifetimes; within one, time goes with the
    instructions of the warp that lives longest. An atomic both reads its line and writes it.
    """
    assert touches.dtype == TOUCH
    block = touches["block"].astype(np.int64)
    life = np.zeros(len(starts))
    np.maximum.at(life, block, touches["step"])
    time = starts[block] + touches["step"] / np.maximum(life[block], 1)
    lines, piece = np.unique(touches["line"], return_inverse=True)
    masks = np.zeros(len(lines), dtype=np.uint8)
    np.bitwise_or.at(masks, piece, touches["mask"])
    sectors = _SECTORS[touches["mask"]].astype(np.float64)
    is_atomic = touches["kind"] == ATOMIC
    sectors[is_atomic] = 0.0  # counted apart: neither reads nor writes of L2
    size = SECTOR_BYTES * _SECTORS[masks][piece].astype(np.float64)
    is_write = touches["kind"] == WRITE
    again = np.flatnonzero(is_atomic)
    every = np.concatenate([np.arange(len(touches)), again])
    return Touches(
        time=time[every],
        piece=piece.astype(np.int64)[every],
        block=block[every],
        sectors=sectors[every],
        size=size[every],
        is_write=np.concatenate([is_write, np.ones(len(again), dtype=bool)]),
    )


# Requests of a warp in which blocks of any kernel fall out of step, as K does for the ladder's; of
# its rungs, 190 to 3,000 requests fit best.
REQUESTS_PER_STEP = 1 / 3


def traffic_of(
    touched: Touched,
    geometry: Geometry,
    facts: ScheduleFacts,
    instructions: Sequence[InstructionCounts],
    device: Device,
    blocks_per_sm: int,
) -> Traffic:
    """The traffic of a launch all of whose blocks were executed and noted."""
    threads = geometry.threads_per_block
    copies, is_alone = facts.copies, geometry.blocks <= device.sm_count
    begins = starts(
        np.ones(geometry.blocks), device, blocks_per_sm, threads, fetches_ahead=facts.fetches_ahead
    )
    loads, stores = (_accesses(instructions, actions) for actions in (READS, STORES))
    warps = geometry.blocks * geometry.warps_per_block
    found = below(touched)
    in_time = touches_in_time(touched.touches, begins)
    # without barriers, kernels of other kinds than the ladder's were not seen in step
    together = facts.has_barriers and in_step(
        sum(map(_requests, loads)) / warps / REQUESTS_PER_STEP,
        has_barriers=True,
        is_alone=is_alone,
        threads_per_block=threads,
        blocks_per_sm=blocks_per_sm,
        copies=copies,
    )
    return traffic(
        in_time,
        device,
        in_step=float(together),
        blocks_per_sm=blocks_per_sm,
        paces=paces(device, blocks_per_sm, copies, loop_bytes=loop_bytes(instructions)),
        writers_per_sector=found.writers_per_sector,
        written_sectors=merged_stores(
            sum(i.sectors for i in stores),
            found.written_by_warps,
            bytes_written(in_time),
            bytes_per_lane=max(map(_bytes_per_lane, stores), default=4),
            is_alone=is_alone,
        ),
    )


def _bytes_per_lane(one: InstructionCounts) -> int:
    return one.bytes_per_lane or WIDEST_BYTES


def _requests(one: InstructionCounts) -> float:
    """Those of a load; of a bulk copy as many as loads of whole warps would take."""
    if one.bytes_per_lane:
        return one.requests
    return one.sectors * SECTOR_BYTES / (WARP_SIZE * WIDEST_BYTES)


def _accesses(
    instructions: Sequence[InstructionCounts], actions: tuple[str, ...]
) -> list[InstructionCounts]:
    return [i for i in instructions if i.space == "global" and i.action in actions]
