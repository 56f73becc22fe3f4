"""The time of any launch that was simulated: what `analysis.timing` needs of it, or why it lacks.

A few blocks that one SM would run are executed once more, on fresh copies of the arguments, and
what their warps did is replayed. They stand for all blocks of the launch, which may differ by their
place and their data: of how much an average block executes, the exact counters know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.counters import InstructionCounts
from analysis.cycles import Streams
from analysis.devices import Device
from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from analysis.metrics import flop
from analysis.result import Predicted
from analysis.schedule import end_apart
from analysis.timing import Work
from toolkit.prediction import digest_of, predicted, spread_blocks_of_an_sm, streams_of
from toolkit.sass.faults import describe
from toolkit.sass.machine import DEADLOCK, Bound, FaultError
from toolkit.sass.machine_code import machine_code
from toolkit.sass.translate import Translated

# Of each block. Each takes part in a dozen replays, at some millions of warp instructions a second:
# with more, a prediction takes longer than the simulation before it.
MOST_STEPS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SimulatedLaunch:
    """A launch all of whose blocks were executed, and how many of them an SM of `device` holds."""

    translated: Translated
    geometry: Geometry
    device: Device
    blocks_per_sm: int
    counts: NDArray[Any]  # per instruction, as the core has them
    instructions: Sequence[InstructionCounts]
    modelled: Mapping[str, int]  # the counters of L2 and DRAM


def launch_time(
    launch: SimulatedLaunch, fresh: Callable[[], Bound]
) -> tuple[Predicted, str] | tuple[None, str]:
    """The prediction and what it rests on, or why there is none; `fresh` binds the launch anew."""
    blocks = spread_blocks_of_an_sm(launch.geometry.blocks, launch.device.sm_count)
    streams = _streams(launch.translated, fresh, blocks)
    if isinstance(streams, str):
        return None, f"not predicted: {streams}"
    kernel = launch.translated.kernel
    work = _work(launch, streams)
    found = predicted(
        {
            "code": sha256(kernel.image).hexdigest(),
            "timed code": sha256(work.code.tobytes()).hexdigest(),  # counts of all blocks are in it
            "symbol": kernel.symbol,
            "geometry": launch.geometry,
            "blocks per SM": launch.blocks_per_sm,
            "flop": work.flop,
            "executed": work.executed,
            "traffic": sorted(launch.modelled.items()),
            "streams": digest_of(streams),
        },
        launch.device,
        lambda: work,
    )
    if isinstance(found, str):
        return None, f"not predicted: {found}"
    return found, f"{found.basis}{_stand_for(blocks, launch.geometry.blocks)}{_other(launch)}"


def _streams(
    translated: Translated, fresh: Callable[[], Bound], blocks: Sequence[int]
) -> Streams | str:
    try:
        bound = fresh()
        try:
            return streams_of(bound, blocks, most_steps=MOST_STEPS).with_common()
        except FaultError as error:
            if not (bound.blocks_meet and error.fault.kind == DEADLOCK):
                raise
            bound = fresh()
            everything = range(bound.geometry.blocks)
            found = streams_of(bound, blocks, most_steps=MOST_STEPS, others=everything)
            return found.with_common()
    except FaultError as error:
        where = describe(error.fault, translated, bound)
        return f"a block that is executed without those before it stops: {where}"
    except (ToolkitError, MemoryError) as error:
        return str(error) or "not enough memory"


def _work(launch: SimulatedLaunch, streams: Streams) -> Work:
    modelled = launch.modelled
    return Work(
        code=machine_code(launch.translated.kernel, launch.counts),
        samples={0: streams},
        k=0,
        blocks=launch.geometry.blocks,
        blocks_per_sm=launch.blocks_per_sm,
        shared_bytes_per_block=launch.translated.kernel.resources.static_shared_bytes
        + launch.geometry.dynamic_shared_bytes,
        flop=flop(launch.instructions),
        l2_read_bytes=SECTOR_BYTES * modelled["lts__t_sectors_srcunit_tex_op_read.sum"],
        l2_write_bytes=SECTOR_BYTES * _stored_sectors(launch.instructions),
        dram_read_bytes=modelled["dram__bytes_read.sum"],
        dram_write_bytes=modelled["dram__bytes_write.sum"],
        executed=sum(one.executed for one in launch.instructions),
        are_apart=end_apart(
            launch.geometry.threads_per_block,
            fetches_ahead=launch.translated.kernel.schedule.fetches_ahead,
        ),
    )


def _stored_sectors(instructions: Sequence[InstructionCounts]) -> int:
    """What SMs send to L2: L1 keeps nothing back."""
    spaces = ("global", "generic")
    actions = ("store", "reduction", "atomic", "bulk store", "bulk reduction")
    return sum(one.sectors for one in instructions if one.space in spaces and one.action in actions)


def _stand_for(blocks: Sequence[int], everything: int) -> str:
    """That blocks which differ, by their place or their data, are not looked at."""
    if len(blocks) == everything:
        return ""
    if len(blocks) == 1:
        return f"; block {blocks[0]} stands for all {everything:,}"
    return f"; blocks {', '.join(map(str, blocks))} stand for all {everything:,}"


def _other(launch: SimulatedLaunch) -> str:
    compiled = launch.translated.kernel.architecture
    if compiled.rstrip("af") == launch.device.sm_arch:
        return ""
    return f"; the machine code is of {compiled}, the device is an {launch.device.sm_arch}"
