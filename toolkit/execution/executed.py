"""Blocks of a launch that were executed one by one, with their counts and accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from toolkit.execution.distinct import order_of
from toolkit.execution.proof import RunBlocks
from toolkit.execution.representatives import Grid
from toolkit.sass.accesses import Below, is_recorded
from toolkit.sass.machine import Run

# Largest fraction of all blocks that a plan executes. If it needs more, all blocks are executed.
MOST_PART = 0.25
MOST_EXECUTED = 1024  # blocks that a plan executes, at most
MOST_SECTORS = 1 << 25  # sectors that these blocks access, at most: 0.5 GB

SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
LOST = ": its blocks make too many accesses"


class NoPlanError(Exception):
    """Reason to execute all blocks; completes the sentence "all blocks executed"."""


@dataclass(frozen=True, kw_only=True)
class ExecutedBlock:
    """One executed block, with one entry per accessed sector, ordered by warp and step."""

    run: Run
    spread: int  # accesses to one of 2^spread lines are known
    sectors: NDArray[np.int64]  # number of the sector
    rows: NDArray[Any]  # step, warp and kind of the access
    below: Below  # requests to L2
    dropped: int = 0  # part of `spread`: lines for which there was no room beside other blocks

    @property
    def counts(self) -> NDArray[Any]:
        return self.run.counts


@dataclass
class Executed:
    """Blocks of a launch that were executed so far."""

    grid: Grid
    run: RunBlocks  # executes further blocks
    samples: dict[int, ExecutedBlock] = field(default_factory=dict)  # by linear index
    spread: int = 0  # accesses to one of 2^spread lines are kept: more than 0 if there are too many
    _sectors: int = 0  # number of all accessed sectors that are kept

    @property
    def blocks(self) -> int:
        """Number of blocks of the launch."""
        return prod(self.grid)

    @property
    def room(self) -> int:
        """Number of blocks that a plan may still execute."""
        return min(MOST_EXECUTED, int(MOST_PART * self.blocks)) - len(self.samples)

    def execute(self, blocks: Sequence[int]) -> None:
        """Execute those of `blocks` that were not executed before."""
        new = sorted(set(blocks) - self.samples.keys())
        for block, run in zip(new, self.run(new, None) if new else (), strict=True):
            self.keep(block, run)

    def keep(self, block: int, run: Run) -> None:
        """Keep what a block did. Raises NoPlanError if its accesses are lost."""
        if run.accesses is None:
            raise NoPlanError(LOST)
        self.spread = max(self.spread, run.accesses.spread)
        self.samples[block] = made = _thinned(_sample(run), self.spread)
        self._sectors += len(made.sectors)
        while self._sectors > MOST_SECTORS:
            self.spread += 1
            self.samples = {b: _thinned(one, self.spread) for b, one in self.samples.items()}
            self._sectors = sum(len(one.sectors) for one in self.samples.values())


def _thinned(sample: ExecutedBlock, spread: int) -> ExecutedBlock:
    """The accesses of a block to one of 2^spread lines."""
    if sample.spread >= spread:
        return sample
    kept = is_recorded((sample.sectors // SECTORS_OF_LINE).astype(np.uint64), spread)
    sectors, rows = sample.sectors[kept], sample.rows[kept]
    dropped = sample.dropped + spread - sample.spread
    return replace(sample, spread=spread, sectors=sectors, rows=rows, dropped=dropped)


def _sample(run: Run) -> ExecutedBlock:
    assert run.accesses is not None
    rows = run.accesses.rows
    row, sector = np.nonzero(rows["mask"][:, None] >> np.arange(4, dtype=np.uint8) & 1)
    sectors = rows["line"].astype(np.int64)[row] * 4 + sector
    columns = {name: rows[name][row] for name in ("warp", "step", "kind")}
    order = order_of((*columns.values(), sectors))
    ordered = np.empty(len(order), dtype=[(name, one.dtype) for name, one in columns.items()])
    for name, one in columns.items():
        ordered[name] = one[order]
    return ExecutedBlock(
        run=replace(run, accesses=None),
        spread=run.accesses.spread,
        sectors=sectors[order],
        rows=ordered,
        below=run.accesses.below,
    )
