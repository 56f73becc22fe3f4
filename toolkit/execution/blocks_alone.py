"""Blocks that are executed again for a replay, without the blocks before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.errors import UnavailableError
from analysis.sm import Streams
from toolkit.execution.replayed_streams import streams_of
from toolkit.execution.tickets import with_tickets
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import DEADLOCK, FaultError, run_blocks
from toolkit.sass.translate import Translated

# Fraction of its instructions that a block executes at least without the blocks before it if they
# only share numbers that hardly matter, such as those of a last block: 0.92 to 1.01 in the public
# launches whose blocks add to common numbers, 0.21 in one that reads the list that all write.
LEAST_ALONE = 0.8


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
        lambda launch, block: run_blocks(launch, [range(block, block + 1)], workers=1)[0],
    )
    return None if found is None or found.tickets is None else found
