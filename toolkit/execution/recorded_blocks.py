"""Accesses of all blocks of a launch, recorded block by block, as the models use them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.execution.accesses import (
    AT_ONCE,
    Exchange,
    accesses_in_time,
    exchange,
    read_by_block,
)
from toolkit.execution.replay import ExchangingBlocks
from toolkit.execution.schedule import Floats, Schedule, lifetimes_of
from toolkit.execution.traffic import L2Requests
from toolkit.sass.accesses import RecordedAccesses


@dataclass(frozen=True, kw_only=True)
class RecordedBlocks:
    """Accesses of all blocks of a launch, with the lifetimes of the blocks."""

    accesses: RecordedAccesses
    lifetimes: Floats  # of each block, relative to a typical one
    exchange: Exchange | None = None  # None if no block waits for another's data

    def asked(self, schedule: Schedule | None = None) -> L2Requests:
        """Requests of the blocks to L2. `schedule`: of blocks that differ."""
        lifetimes = self.lifetimes if schedule is None else schedule.lifetimes
        return L2Requests(
            below=self.accesses.below,
            lifetimes=lifetimes,
            in_time=partial(
                accesses_in_time,
                self.accesses.rows,
                lifetimes,
                self.exchange,
                lines=1 << self.accesses.spread,
                typical_steps=schedule.typical_steps if schedule else None,
            ),
            starts=schedule.start if schedule else None,
        )

    @property
    def read_by_block(self) -> Floats:
        """Number of sectors that each block reads."""
        rows = self.accesses.rows
        return read_by_block(rows, rows["block"], len(self.lifetimes))

    @property
    def exchanging(self) -> ExchangingBlocks | None:
        """The blocks, if some of them wait for data of others."""
        if self.exchange is None:
            return None
        first = int(np.flatnonzero(self.lifetimes)[0])
        return ExchangingBlocks(
            first=first,
            sharing=int((self.exchange.blocks >= first).sum()),
            work=self.lifetimes,
            reads=self.exchange.read_by_block,
            bytes=self.exchange.bytes,
            writers=self.exchange.writers,
        )


def blocks_that_exchange(
    accesses: RecordedAccesses | None, work: NDArray[Any] | None
) -> RecordedBlocks | None:
    """Blocks of a launch that exchange data; None if they do not, or if it is not known.

    `accesses`: those of all blocks. `work`: instructions of each block (core.WORK).
    """
    if accesses is None or accesses.spread or work is None:
        return None
    shared = exchange(accesses.rows, len(work))
    if shared is None:
        return None
    lifetimes = lifetimes_of(work)
    return RecordedBlocks(
        accesses=accesses,
        lifetimes=np.where(lifetimes > AT_ONCE, lifetimes, 0.0),
        exchange=shared,
    )


def lines_basis(how: str) -> str:
    """Text on the origin of traffic, from accesses that are known as `how` says."""
    return (
        f"the lines that each block accesses {how}; hits in caches follow from the order in which "
        "blocks run (analysis.traffic.l2)"
    )
