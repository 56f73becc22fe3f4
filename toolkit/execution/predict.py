"""Input of `analysis.timing.predict` for a launch, and a cache of its predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.comparison.interval import interval_of
from analysis.devices import Device
from analysis.errors import ToolkitError, UnavailableError
from analysis.geometry import Geometry
from analysis.records.counters import InstructionCounts
from analysis.sm import Streams
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.l2_stores import stores_that_meet
from analysis.timing.predict import predict
from analysis.timing.predicted import Explanation, Predicted, from_json
from analysis.timing.samples import FirstSteps, Sample
from analysis.timing.work import Work
from analysis.traffic.block_schedule import blocks_finish_at_different_times
from analysis.traffic.l2 import Traffic
from toolkit.execution.replay import Replay
from toolkit.execution.traffic import STORES, Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.sass import machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import FaultError, one_by_one, run_blocks
from toolkit.sass.schedule_facts import schedule_facts
from toolkit.sass.streams import joined
from toolkit.sass.timing_table import machine_code
from toolkit.store.cache import cached, digest_of_folders, keep

# Recorded steps of the blocks that one worker executes (67 MB). A prediction replays them a dozen
# times.
MOST_STEPS = 1 << 23
CUT_STEPS = 1 << 20  # of blocks that execute more, in all
# Folders whose code affects predictions.
FOLDERS = (
    "analysis",
    "kernels",
    *(f"toolkit/{x}" for x in ("machine_code", "launch", "sass", "rungs", "execution")),
)


def streams_of(
    bound: BoundLaunch,
    blocks: Sequence[int],
    *,
    others: range = range(0),
) -> Streams:
    """Streams of the warps of `blocks`.

    The blocks `others` are executed too, because `blocks` wait for them. Raises UnavailableError if
    the blocks execute more than MOST_STEPS warp instructions, and FaultError if execution stops for
    another reason, for example because a block waits for a block that is not executed.
    """
    bound = replace(bound, most_accesses=0, most_steps=MOST_STEPS)
    too_much = f"the blocks to replay execute more than {MOST_STEPS:,} warp instructions"
    budget = None if others else MOST_STEPS * bound.cluster_blocks * len(blocks)
    try:
        runs = run_blocks(bound, one_by_one(blocks), others=others, max_instructions=budget)
    except FaultError as error:
        if error.fault.kind == machine.LIMIT:
            raise UnavailableError(too_much) from None
        raise
    streams = joined([run.recorded for run in runs])
    if streams is None:
        raise UnavailableError(too_much)
    return streams


def first_steps_of(
    launch: Callable[[], BoundLaunch], blocks: Sequence[int], work: NDArray[Any]
) -> Sample:
    """The first CUT_STEPS steps of `blocks`, and half of them.

    `launch` binds the launch so that the warps of a block go on side by side: warps that are
    executed one after the other would be cut at different places. `work`: instructions of the
    complete blocks (core.WORK). Raises as `streams_of` does.
    """
    found = [_cut_streams_of(launch, blocks, most) for most in (CUT_STEPS // 2, CUT_STEPS)]
    return FirstSteps(
        at={one.executed // len(one.first_step): one for one in found},
        of=int(work["longest"].mean()),
        counted=int(work["executed"].sum()),
    )


def _cut_streams_of(launch: Callable[[], BoundLaunch], blocks: Sequence[int], most: int) -> Streams:
    most //= len(blocks)
    runs = [
        run_blocks(
            replace(launch(), most_accesses=0, most_steps=most, cuts=True),
            [range(block, block + 1)],
            max_instructions=most,
        )[0]
        for block in blocks
    ]
    streams = joined([run.recorded for run in runs])
    if streams is None:
        raise UnavailableError("not enough memory for the streams of the blocks to replay")
    return streams


def work_of(
    kernel: Kernel,
    geometry: Geometry,
    counts: NDArray[Any],
    instructions: Sequence[InstructionCounts],
    traffic: Traffic,
    residence: Residence,
    replay: Replay,
    sample: Sample,
    flop: int,
    atomics: AtomicOperations | None = None,
    stores: AtomicOperations | None = None,
    clocks_of_waits: float = 0.0,
) -> Work:
    """Input of the timing model for a launch.

    `counts`, `instructions`: counts of all blocks. `sample`: streams of the blocks of `replay`.
    Bytes at L2 are those that SMs request, without transfers between partitions of L2.
    """
    stored = _sectors(instructions, STORES + REDUCTIONS)
    sent = traffic.written_sectors + _sectors(instructions, REDUCTIONS)
    weight = replay.weight
    if weight is None:
        *_, streams = sample.replayed
        executed = sum(one.executed for one in instructions)
        counted = getattr(sample, "counted", None) or streams.executed
        weight = executed / replay.busy_blocks / (counted / streams.blocks)
    return Work(
        code=machine_code(kernel, counts),
        sample=sample,
        blocks=replay.busy_blocks,
        blocks_per_sm=residence.blocks_per_sm,
        shared_bytes_per_block=kernel.resources.static_shared_bytes + geometry.dynamic_shared_bytes,
        flop=flop,
        l2_read_bytes=SECTOR_BYTES * traffic.fetched_sectors,
        l2_write_bytes=SECTOR_BYTES * sent,
        dram_read_bytes=traffic.dram_read_bytes,
        dram_write_bytes=traffic.dram_write_bytes,
        l2=residence.l2,
        dram_lone_pairs=traffic.dram_lone_pairs,
        dram_lone_writes=traffic.dram_lone_writes,
        dram_fill_bytes=traffic.dram_fill_bytes,
        weight=weight,
        merged_share=traffic.merged_share,
        soon_shares=traffic.soon_shares,
        sent_share=sent / stored if sent else 1.0,
        exchanged=replay.exchanged,
        finish_at_different_times=finish_at_different_times(kernel, geometry, replay),
        atomics=atomics,
        stores=stores and stores_that_meet(stores),
        clocks_of_waits=clocks_of_waits,
        local_bytes_per_block=sample.replayed[0].local_bytes_per_block,
        of_sm=replay.of_sm,
        instructions=instructions,
    )


def finish_at_different_times(kernel: Kernel, geometry: Geometry, replay: Replay) -> bool:
    """True if blocks resident on one SM finish at different times although all are equal."""
    return replay.is_of_equal_blocks and blocks_finish_at_different_times(
        geometry.threads_per_block, fetches_ahead=schedule_facts(kernel).fetches_ahead
    )


REDUCTIONS = "reduction", "atomic", "bulk reduction"


def _sectors(instructions: Sequence[InstructionCounts], actions: Sequence[str]) -> int:
    spaces = ("global", "generic")
    return sum(one.sectors for one in instructions if one.space in spaces and one.action in actions)


def digest_of(streams: Streams) -> str:
    """Digest that identifies streams."""
    digest = sha256()
    for name in ("steps", "lines", "first_step", "first_line", "first_warp"):
        digest.update(np.ascontiguousarray(getattr(streams, name)).data)
        digest.update(name.encode())
    return digest.hexdigest()


def key_of(work: Work) -> dict[str, object]:
    """Key that identifies a launch among all whose predictions may differ.

    Sums over blocks depend on the number of workers in their last digits, so nine digits are used.
    """
    values = {field.name: getattr(work, field.name) for field in fields(work)}
    rounded = {k: f"{v:.9g}" if isinstance(v, float) else v for k, v in values.items()}
    return rounded | {
        "instructions": sha256(repr(work.instructions).encode()).hexdigest(),
        "code": sha256(work.code.tobytes()).hexdigest(),
        "atomics": work.atomics and work.atomics.digest,
        "stores": work.stores and work.stores.digest,
        "sample": (type(work.sample).__name__, sorted(map(_digested, vars(work.sample).items()))),
    }


def _digested(field: tuple[str, Any]) -> tuple[str, str]:
    """Name and text of a field of a sample, with digests in place of streams."""
    name, value = field
    if isinstance(value, Streams):
        return name, digest_of(value)
    if isinstance(value, Mapping):
        return name, repr(sorted((length, digest_of(one)) for length, one in value.items()))
    return name, repr(value)


def cached_prediction(
    launch: Mapping[str, object],
    device: Device,
    work: Callable[[], Work],
    explanation: Explanation = Explanation.COSTS,
) -> Predicted | str:
    """Prediction of a launch on a device, kept in the cache, or the reason why there is none.

    `launch` identifies the launch. Its values must differ as text if they differ. `work` is called
    only if the prediction is not in the cache.
    """
    name = _name("prediction", {**launch, "explanation": explanation}, device)
    entry = cached(name)
    if entry is not None:
        return with_interval(from_json(entry), device)
    try:
        made = predict(work(), device, explanation)
    except (ToolkitError, ValueError, MemoryError) as error:
        return str(error) or "not enough memory"
    keep(name, json.dumps(asdict(made)).encode())
    return with_interval(made, device)


def with_interval(predicted: Predicted, device: Device) -> Predicted:
    """The prediction with its interval on a device."""
    return replace(predicted, interval_s=interval_of(predicted, device))


def _name(kind: str, launch: Mapping[str, object], device: Device) -> str:
    digest = sha256()
    for part in (MODEL, repr(sorted(launch.items())), repr(device)):
        digest.update(part.encode())
    return f"{kind}-{digest.hexdigest()}.json"


def model_digest(root: Path) -> str:
    """Digest of all files below `root` that a prediction may depend on.

    Sources of rungs are left out: a prediction depends on the machine code, which is in the key.
    """
    return digest_of_folders(root, FOLDERS)


# Digest of the loaded code, taken at import, before a file changes.
MODEL = model_digest(Path(__file__).parents[2])
