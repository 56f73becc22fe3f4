"""Predicted time of a launch that is no rung, or the reason why there is none.

For rungs, see `rung_prediction`.

A few blocks that one SM would run are executed again, on the arguments as they were, and their
streams are replayed. They represent all blocks of the launch, which may differ by their position
and their data; the exact counters give the instructions of an average block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.errors import ToolkitError
from analysis.geometry import Geometry, ceil_div
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import flop
from analysis.sm import FLAG, IN_L2, Streams
from analysis.timing.predicted import Predicted
from analysis.timing.samples import Whole
from analysis.timing.work import Work
from analysis.traffic.block_schedule import blocks_finish_at_different_times
from analysis.traffic.l2 import NO_TRAFFIC, Traffic
from toolkit.execution.block_counts import Counted
from toolkit.execution.predict import (
    cached_prediction,
    gap_clocks_beside,
    key_of,
    spread_blocks_of_an_sm,
    streams_of,
    work_of,
)
from toolkit.execution.replay import Schedule, replay_of
from toolkit.execution.traffic import Residence
from toolkit.sass.faults import describe
from toolkit.sass.machine import DEADLOCK, Bound, FaultError
from toolkit.sass.schedule_facts import schedule_facts
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
    blocks, waiting = _replayed(launch)
    streams, device = _streams(launch.translated, fresh, blocks), launch.residence.device
    if isinstance(streams, str):
        yield lambda traffic: (None, f"not predicted: {streams}")
        return
    with gap_clocks_beside(_work(launch, streams, waiting, NO_TRAFFIC), device) as gap_clocks:

        def time_of(traffic: Traffic) -> Time:
            work = _work(launch, streams, waiting, traffic)
            found = cached_prediction(key_of(work), device, lambda: work, gap_clocks)
            if isinstance(found, str):
                return None, f"not predicted: {found}"
            which = _stand_for(blocks, launch)
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


def _replayed(launch: SimulatedLaunch) -> tuple[list[int], dict[str, Any]]:
    """Blocks to execute again, and fields of `Work` that depend on how blocks differ.

    If blocks differ, they are those of the SM that ends last (`replay`), else some of any SM. If
    blocks wait for each other, they are those of the busiest SM in their order: blocks that
    exchange data come first and are unlike the others.
    """
    found, lifetimes = launch.counted.exchange, launch.counted.lifetimes
    sms, per_sm = launch.residence.device.sm_count, launch.residence.blocks_per_sm
    assert lifetimes is not None
    if launch.schedule is not None:
        return _of_the_last_sm(launch, launch.schedule)
    busy = np.flatnonzero(lifetimes)
    if found is None:
        blocks = busy[spread_blocks_of_an_sm(len(busy), sms)].tolist()
        return blocks, {"blocks": len(busy)}
    # leading blocks that exit at once give their slots to the next ones
    busy = np.arange(busy[0], len(lifetimes))
    first = np.argmax([lifetimes[busy[sm::sms]].sum() for sm in range(min(sms, len(busy)))])
    of_sm = busy[int(first) :: sms]
    sharing = np.isin(busy, found.blocks).sum()
    unlike = ceil_div(int(sharing), sms) if sharing < len(busy) else 0
    average = found.read_by_block[busy].sum() / min(sms, len(busy))
    return of_sm[: unlike + 2 * per_sm].tolist(), {
        "blocks": len(busy),
        "unlike": unlike,
        "weight": 1.0,
        "relative_l2_reads": float(max(1.0, found.read_by_block[of_sm].sum() / average)),
        "read_back_bytes": found.bytes,
        "left_bytes": found.bytes / found.writers,
        "finish_at_different_times": False,
    }


def _of_the_last_sm(
    launch: SimulatedLaunch, schedule: Schedule
) -> tuple[list[int], dict[str, Any]]:
    counted, residence = launch.counted, launch.residence
    assert counted.work is not None
    found = replay_of(
        schedule,
        counted.work,
        residence.device.sm_count,
        residence.blocks_per_sm,
        counted.read_by_block(launch.geometry.blocks),
    )
    return list(found.blocks), {
        "blocks": launch.geometry.blocks,
        "of_sm": found.of_sm,
        "weight": found.weight,
        "finish_at_different_times": False,
    }


def _work(
    launch: SimulatedLaunch, streams: Streams, waiting: Mapping[str, Any], traffic: Traffic
) -> Work:
    kernel, geometry, counted = launch.translated.kernel, launch.geometry, launch.counted
    executed = sum(one.executed for one in launch.instructions)
    known: dict[str, Any] = {
        "weight": executed / waiting["blocks"] / (streams.executed / streams.blocks),
        "finish_at_different_times": blocks_finish_at_different_times(
            geometry.threads_per_block, fetches_ahead=schedule_facts(kernel).fetches_ahead
        ),
    }
    if counted.exchange is not None:
        flags = np.unique(streams.numbers[streams.lines & FLAG > 0])
        streams = streams.with_mark(IN_L2, counted.exchange.lines).with_mark(FLAG, flags)
    return work_of(
        kernel,
        geometry,
        counted.counts,
        launch.instructions,
        traffic,
        sample=Whole(streams=streams),
        blocks_per_sm=launch.residence.blocks_per_sm,
        flop=flop(launch.instructions),
        **(known | dict(waiting)),
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
