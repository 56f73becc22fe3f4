"""Streams of the blocks that a replay needs: these blocks are executed again and recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from analysis.errors import UnavailableError
from analysis.sm import Streams
from analysis.timing.samples import Sample, Windows
from toolkit.sass import machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import FaultError, one_by_one, run_blocks
from toolkit.sass.streams import joined, without

# Recorded steps of the blocks that one worker executes (67 MB). A prediction replays them a dozen
# times.
MOST_STEPS = 1 << 23
CUT_STEPS = 1 << 20  # of blocks that execute more, in all
WINDOWS = 8  # of each of these blocks, in which its steps are recorded
MOST_IN_TIME = 1 << 25  # instructions that these blocks execute for it: 5 s of a core


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
        each = list(dict.fromkeys(blocks))  # a block may stand for several
        runs = run_blocks(bound, one_by_one(each), others=others, max_instructions=budget)
    except FaultError as error:
        if error.fault.kind == machine.LIMIT:
            raise UnavailableError(too_much) from None
        raise
    recorded = {block: run.recorded for block, run in zip(each, runs, strict=True)}
    streams = joined([recorded[block] for block in blocks])
    if streams is None:
        raise UnavailableError(too_much)
    return streams


def is_too_long(work: NDArray[Any]) -> bool:
    """True if blocks execute too much to be recorded. `work`: their instructions (core.WORK)."""
    return bool(work["executed"].max() > MOST_STEPS)


def windows_of(
    launch: Callable[[], BoundLaunch],
    blocks: Sequence[int],
    work: NDArray[Any],
    windows: int,
    left_out: Sequence[int] = (),
) -> Sample:
    """About CUT_STEPS steps of `blocks`, in so many windows of each, and the first halves of these.

    Windows are in the middle of equal parts of the first MOST_IN_TIME instructions of the blocks;
    one alone is at the beginning. `launch` binds the launch so that the warps of a block go on side
    by side: of warps that are executed one after the other, windows would be at different times.
    `work`: instructions of the complete blocks (core.WORK). `left_out`: numbers of instructions
    that the windows leave out. Raises as `streams_of` does.
    """
    window, runs = CUT_STEPS // len(blocks) // windows, []
    for block, executed in zip(blocks, work["executed"].tolist(), strict=True):
        length = min(executed, MOST_IN_TIME // len(blocks))
        bound = replace(
            launch(),
            most_accesses=0,
            most_steps=2 * window * windows,  # a window ends with the turn of a warp
            cuts=True,
            window=window,
            period=max(window, length // windows) if windows > 1 else window,
        )
        most = length if windows > 1 else window
        runs += run_blocks(bound, [range(block, block + 1)], max_instructions=most)
    recorded = [run.recorded for run in runs]
    early, every = joined(recorded, leaves_late=True), joined(recorded)
    if early is None or every is None:
        raise UnavailableError("not enough memory for the streams of the blocks to replay")
    if left_out:
        early, every = (without(one, left_out) for one in (early, every))
    counted, warps = int(work["executed"].sum()), len(every.first_step)
    is_covered = windows > 1 and counted <= MOST_IN_TIME
    return Windows(
        at={one.executed // warps: one for one in (early, every)},
        of=counted // warps if is_covered else int(work["longest"].mean()),
        counted=counted,
        windows=windows,
    )
