"""Blocks that are executed again for a replay, without the blocks before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.hardware.sm_constants import constants_of
from analysis.sm import FLAG, IN_L2, Streams
from analysis.timing.samples import Sample, Whole
from toolkit.execution.accesses import Exchange
from toolkit.execution.in_time import repeats_sums, with_warps_in_time
from toolkit.execution.replayed_streams import (
    MOST_IN_TIME,
    WINDOWS,
    is_too_long,
    streams_of,
    windows_of,
)
from toolkit.execution.tickets import with_tickets
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.faults import describe
from toolkit.sass.machine import DEADLOCK, FaultError, run_blocks
from toolkit.sass.schedule_facts import BARRIERS, schedule_facts
from toolkit.sass.translate import Translated

# Fraction of its instructions that a block executes at least without the blocks before it if they
# only share numbers that hardly matter, such as those of a last block: 0.92 to 1.01 in the public
# launches whose blocks add to common numbers, 0.21 in one that reads the list that all write.
LEAST_ALONE = 0.8
PRODUCTS = {"HGMMA", "IGMMA", "QGMMA", "BGMMA"}  # of warpgroups, which are waited for by number
# Warp instructions between barriers that cost little beside them: tens to hundreds of clocks each.
RARE = 1 << 14


@dataclass(frozen=True, kw_only=True)
class BlocksAlone:
    """Blocks of a launch that are executed again, for a replay.

    `work`: instructions of each of them (core.WORK), if they are known; `counts`: of all executed
    blocks; `exchange`: what blocks read of each other; `again` binds the launch anew.
    """

    translated: Translated
    device: Device
    blocks: Sequence[int]
    work: NDArray[np.void] | None
    counts: NDArray[np.void]
    exchange: Exchange | None
    again: Callable[[], BoundLaunch]

    def sample(self, bound: BoundLaunch) -> Sample:
        """The sample that stands for the launch in a replay. Raises UnavailableError."""
        is_long = self.work is not None and is_too_long(self.work)
        if is_long and not bound.blocks_meet and bound.cluster_blocks == 1:
            return self._windows(bound.tickets)
        try:
            streams = streams_alone(bound, self.blocks, self.again)
            if self.work is not None and finds_less(bound, streams, self.work):
                found = with_numbers_of_others(self.translated, self.again)
                if found is not None and is_long:
                    return self._windows(found.tickets)
                streams = streams_of(found, self.blocks) if found else streams
        except FaultError as error:
            where = describe(error.fault, self.translated, bound)
            raise UnavailableError(
                f"a block that is executed without the blocks before it stops: {where}"
            ) from None
        counted = streams.executed
        if repeats_sums(self.translated.kernel):
            streams = self._in_time() or streams
        streams = streams.with_common()
        if self.exchange is not None:
            flags = np.unique(streams.numbers[streams.lines & FLAG > 0])
            streams = streams.with_mark(IN_L2, self.exchange.lines).with_mark(FLAG, flags)
        return Whole(streams=streams, counted=counted)

    def _windows(self, tickets: NDArray[np.void] | None) -> Sample:
        """Windows of blocks that execute too much to be replayed, and that find `tickets`."""
        assert self.work is not None
        launch = partial(self._side_by_side, tickets)
        rare = _rare_barriers(self.translated.kernel, self.counts)
        if _follows_up(self.translated.kernel, rare):
            return windows_of(launch, self.blocks, self.work, 1)
        return windows_of(launch, self.blocks, self.work, WINDOWS, rare)

    def _in_time(self) -> Streams | None:
        """Streams with `with_warps_in_time`; None if the blocks execute too much."""
        with suppress(UnavailableError, FaultError):
            return streams_of(self._side_by_side(), self.blocks)
        return None

    def _side_by_side(self, tickets: NDArray[np.void] | None = None) -> BoundLaunch:
        """The launch, with warps of a block that run side by side, whose blocks find `tickets`."""
        constants = constants_of(self.device)
        clock_hz = self.device.clock_under_load_hz(0.0)
        bound = with_warps_in_time(self.again(), self.translated.kernel, constants, clock_hz)
        return bound if tickets is None else replace(bound, blocks_meet=False, tickets=tickets)


def streams_alone(
    bound: BoundLaunch, blocks: Sequence[int], again: Callable[[], BoundLaunch]
) -> Streams:
    """Streams of `blocks` of a bound launch; `again` binds it anew.

    If the blocks wait for other blocks, all blocks are executed.
    So they are if a few blocks take too much work out of a queue, which all blocks share.
    """
    takes_all = False
    try:
        return streams_of(bound, blocks)
    except UnavailableError:
        if not bound.blocks_meet:
            raise
        takes_all = True
    except FaultError as error:
        if not (bound.blocks_meet and error.fault.kind == DEADLOCK):
            raise
    launch = replace(again(), at_once=takes_all)
    return streams_of(launch, blocks, others=range(bound.geometry.blocks))


def finds_less(bound: BoundLaunch, streams: Streams, work: NDArray[np.void]) -> bool:
    """True if blocks execute much less alone than with the blocks before them (`work`).

    They go by a number to which all blocks add, such as the length of a list.
    """
    return bound.blocks_meet and streams.executed < LEAST_ALONE * int(work["executed"].sum())


def with_numbers_of_others(
    translated: Translated, again: Callable[[], BoundLaunch]
) -> BoundLaunch | None:
    """A launch whose blocks find the numbers that blocks before them leave.

    None if there are too many of these numbers, or none.
    """
    found = with_tickets(
        replace(again(), blocks_meet=False),
        translated.linked.instructions,
        lambda launch, block: run_blocks(
            launch, [range(block, block + 1)], max_instructions=MOST_IN_TIME, workers=1
        )[0],
    )
    return None if found is None or found.tickets is None else found


def _rare_barriers(kernel: Kernel, counts: NDArray[Any]) -> list[int]:
    """Numbers of the barriers of a kernel whose warps execute much between them; else none."""
    barriers = [k for k, one in enumerate(kernel.instructions) if one.opcode == "BAR"]
    arrivals, executed = int(counts["executed"][barriers].sum()), int(counts["executed"].sum())
    return barriers if RARE * arrivals <= executed else []


def _follows_up(kernel: Kernel, left_out: Sequence[int]) -> bool:
    """True if instructions wait for earlier ones, so that a stream must begin at the start.

    These are groups of copies, products, polls, and barriers: a warp that is one barrier ahead
    where a window begins would stay so, and wait at each for another part of the loop. Not those
    that are `left_out`.
    """
    facts = schedule_facts(kernel)
    waiting = (one for k, one in enumerate(kernel.instructions) if k not in left_out)
    return (
        facts.copies != "loads"
        or facts.waits
        or any(one.opcode in PRODUCTS | BARRIERS for one in waiting)
    )
