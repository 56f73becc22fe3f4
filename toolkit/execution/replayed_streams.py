"""Streams of the blocks that a replay needs: these blocks are executed again and recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from analysis.errors import UnavailableError
from analysis.sm import Streams
from analysis.timing.samples import FirstSteps, Sample
from toolkit.sass import machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import FaultError, one_by_one, run_blocks
from toolkit.sass.streams import joined

# Recorded steps of the blocks that one worker executes (67 MB). A prediction replays them a dozen
# times.
MOST_STEPS = 1 << 23
CUT_STEPS = 1 << 20  # of blocks that execute more, in all


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
