"""Predicted time of a launch that is no rung, or the reason why there is none.

For rungs, see `rung_prediction`.

A few blocks that one SM would run are executed again, on the arguments as they were, and their
streams are replayed. They represent all blocks of the launch, which may differ by their position
and their data; the exact counters give the instructions of an average block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import flop
from analysis.sm import FLAG, IN_L2, Streams
from analysis.timing.predicted import Predicted
from analysis.timing.samples import Whole
from analysis.timing.work import Work
from analysis.traffic.l2 import NO_TRAFFIC, Traffic
from toolkit.execution.block_counts import Counted
from toolkit.execution.predict import (
    cached_prediction,
    gap_clocks_beside,
    key_of,
    streams_of,
    work_of,
)
from toolkit.execution.replay import (
    ExchangingBlocks,
    Replay,
    blocks_of_busiest_sm,
    blocks_of_last_sm,
    spread_blocks,
)
from toolkit.execution.schedule import Schedule
from toolkit.execution.traffic import Residence
from toolkit.sass.faults import describe
from toolkit.sass.machine import DEADLOCK, Bound, FaultError
from toolkit.sass.translate import Translated


@dataclass(frozen=True, kw_only=True)
class SimulatedLaunch:
    """A launch whose blocks are counted, on the device of its residence."""

    translated: Translated
    geometry: Geometry
    residence: Residence
    counted: Counted
    instructions: Sequence[InstructionCounts]
    schedule: Schedule | None = None  # of blocks that differ


Time = tuple[Predicted, str] | tuple[None, str]


@contextmanager
def launch_time(
    launch: SimulatedLaunch, fresh: Callable[[], Bound]
) -> Iterator[Callable[[Traffic], Time]]:
    """Function from the traffic of a launch to its prediction and basis, or why there is none.

    `fresh` binds the launch anew. Runs of the model that need no traffic begin meanwhile.
    """
    replay, device = _replay_of(launch), launch.residence.device
    streams = _streams(launch.translated, fresh, replay.blocks)
    if isinstance(streams, str):
        yield lambda traffic: (None, f"not predicted: {streams}")
        return
    with gap_clocks_beside(_work(launch, streams, replay, NO_TRAFFIC), device) as gap_clocks:

        def time_of(traffic: Traffic) -> Time:
            work = _work(launch, streams, replay, traffic)
            found = cached_prediction(key_of(work), device, lambda: work, gap_clocks)
            if isinstance(found, str):
                return None, f"not predicted: {found}"
            which = _stand_for(replay.blocks, launch)
            return found, f"{found.basis}{which}{_other(launch)}"

        yield time_of


def _streams(
    translated: Translated, fresh: Callable[[], Bound], blocks: Sequence[int]
) -> Streams | str:
    try:
        bound = fresh()
        try:
            return streams_of(bound, blocks).with_common()
        except FaultError as error:
            if not (bound.blocks_meet and error.fault.kind == DEADLOCK):
                raise
            bound = fresh()
            return streams_of(bound, blocks, others=range(bound.geometry.blocks)).with_common()
    except FaultError as error:
        where = describe(error.fault, translated, bound)
        return f"a block that is executed without those before it stops: {where}"
    except (ToolkitError, MemoryError) as error:
        return str(error) or "not enough memory"


def _replay_of(launch: SimulatedLaunch) -> Replay:
    counted, lifetimes = launch.counted, launch.counted.lifetimes
    sms, per_sm = launch.residence.device.sm_count, launch.residence.blocks_per_sm
    assert lifetimes is not None
    if launch.schedule is not None:
        assert counted.work is not None
        reads = counted.read_by_block(launch.geometry.blocks)
        return blocks_of_last_sm(launch.schedule, counted.work, sms, per_sm, reads)
    busy = np.flatnonzero(lifetimes)
    if counted.exchange is None:
        return spread_blocks(busy, sms)
    first, found = int(busy[0]), counted.exchange
    exchanging = ExchangingBlocks(
        first=first,
        sharing=int((found.blocks >= first).sum()),
        work=lifetimes,
        reads=found.read_by_block,
        bytes=found.bytes,
        writers=found.writers,
    )
    return blocks_of_busiest_sm(exchanging, sms, per_sm)


def _work(launch: SimulatedLaunch, streams: Streams, replay: Replay, traffic: Traffic) -> Work:
    counted = launch.counted
    if counted.exchange is not None:
        flags = np.unique(streams.numbers[streams.lines & FLAG > 0])
        streams = streams.with_mark(IN_L2, counted.exchange.lines).with_mark(FLAG, flags)
    return work_of(
        launch.translated.kernel,
        launch.geometry,
        counted.counts,
        launch.instructions,
        traffic,
        launch.residence,
        replay,
        Whole(streams=streams),
        flop(launch.instructions),
    )


def _stand_for(blocks: Sequence[int], launch: SimulatedLaunch) -> str:
    """Text that names the blocks that represent all blocks."""
    everything = launch.geometry.blocks
    if launch.schedule is not None:
        return "; blocks differ, and this SM ends last"
    if len(blocks) == everything:
        return ""
    if len(blocks) == 1:
        return f"; block {blocks[0]} stands for all {everything:,}"
    return f"; blocks {', '.join(map(str, blocks))} stand for all {everything:,}"


def _other(launch: SimulatedLaunch) -> str:
    compiled, device = launch.translated.kernel.architecture, launch.residence.device.sm_arch
    if compiled.rstrip("af") == device:
        return ""
    return f"; the machine code is of {compiled}, the device is an {device}"
