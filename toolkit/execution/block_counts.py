"""Counts of the blocks of a launch of any kernel, and their requests to L2.

All blocks are executed, or a few that represent them (`observation`), or a given number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.execution.accesses import (
    Exchange,
    accesses_in_time,
    exchange,
    lifetimes_of,
    visits_in_time,
)
from toolkit.execution.block_plan import PERIOD, WAIT, Blocks, limited, of_blocks
from toolkit.execution.observation import NoPlanError, Observed, observed
from toolkit.execution.representatives import agree, extrapolated, regions
from toolkit.execution.traffic import Asked
from toolkit.sass.machine import Bound, Run

Execute = Callable[[Sequence[range]], list[Run]]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Counts per instruction, the number of blocks that they come from, and their basis."""

    counts: NDArray[Any]
    runs: Sequence[Run]
    blocks: int
    basis: str
    lifetimes: NDArray[np.float64] | None = None
    exchange: Exchange | None = None
    observed: Observed | None = None

    @property
    def accesses_basis(self) -> str:
        """End of the sentence "the lines that each block accesses …"."""
        if self.observed is not None:
            return "follow from those of the executed blocks"
        accesses = self.runs[0].accesses
        spread = accesses.spread if accesses else 0
        return f"were recorded (one of {1 << spread})" if spread else "were recorded"


def requests_of(counted: Counted) -> Asked | str:
    """Requests of all blocks to L2, or why they are not known."""
    if counted.observed is not None and counted.lifetimes is not None:
        visits = counted.observed.visits()
        if visits is None:
            return "too many lines are accessed, by too many groups of blocks"
        return Asked(
            below=counted.observed.below,
            lifetimes=counted.lifetimes,
            in_time=partial(visits_in_time, visits, counted.observed.moments),
        )
    if counted.lifetimes is None:
        if len(counted.runs) > 1:
            return "that takes the accesses of all blocks"
        return "too many lines are accessed; take a smaller launch"
    accesses = counted.runs[0].accesses
    assert accesses is not None
    return Asked(
        below=accesses.below,
        lifetimes=counted.lifetimes,
        in_time=partial(
            accesses_in_time,
            accesses.rows,
            counted.lifetimes,
            counted.exchange,
            lines=1 << accesses.spread,
        ),
    )


def _with_lifetimes(counted: Counted, bound: Bound, *, waits: bool) -> Counted:
    """Copy of `counted` with lifetimes of blocks and their exchange of data, from all accesses."""
    blocks, accesses = bound.geometry.blocks, counted.runs[0].accesses
    if accesses is None or counted.blocks < blocks or (waits and accesses.spread):
        return counted
    shared = exchange(accesses.rows, blocks) if waits else None
    if shared is None and bound.blocks_meet:  # the first block may have taken the work of all
        return replace(counted, lifetimes=np.ones(blocks))
    executed = float(counted.counts["executed"].sum()) / bound.geometry.warps_per_block
    lifetimes = lifetimes_of(accesses.rows, blocks, executed)
    if shared is None:  # blocks differ only by their data, evenly over the launch
        lifetimes = np.where(lifetimes > 0, 1.0, 0.0)
    return replace(counted, lifetimes=lifetimes, exchange=shared)


def counted_blocks(
    bound: Bound,
    blocks: Blocks,
    execute: Execute,
    execute_few: Execute,
    announce: Callable[[], None],
    *,
    waits: bool,
    seed: bytes,
) -> Counted:
    """Counts of a launch from the blocks that `blocks` selects.

    `execute` runs ranges of blocks, and `execute_few` single ones. `announce` is called before all
    blocks are executed. `waits`: some loop waits for what other blocks write. `seed` determines
    which blocks are chosen at random.
    """
    everything, why = bound.geometry.blocks, ""
    if blocks == "representative":
        try:
            return _observed(bound, execute_few, waits=waits, seed=seed)
        except NoPlanError as reason:
            why = str(reason)
            bound.restore()
    elif isinstance(blocks, int) and blocks < everything:
        return _limited(bound, execute_few, blocks)
    announce()
    runs = execute([range(everything)])
    basis = f"{of_blocks(everything, everything)} executed{why}"
    counted = Counted(counts=runs[0].counts, runs=runs, blocks=everything, basis=basis)
    return _with_lifetimes(counted, bound, waits=waits)


def _observed(bound: Bound, execute: Execute, *, waits: bool, seed: bytes) -> Counted:
    """Counts from a plan by observation. Raises NoPlanError if all blocks are to be executed."""
    if waits or bound.blocks_meet:
        raise NoPlanError(WAIT)
    if bound.cluster_blocks > 1:
        raise NoPlanError(": they form clusters")
    found = observed(
        bound.geometry.grid, lambda chosen: execute([range(b, b + 1) for b in chosen]), seed
    )
    lifetimes = found.lifetimes
    return Counted(
        counts=found.counts,
        runs=found.runs,
        blocks=len(found.runs),
        basis=found.basis,
        lifetimes=lifetimes if lifetimes.any() else np.ones_like(lifetimes),  # no block accesses
        observed=found,
    )


def _limited(bound: Bound, execute: Execute, most: int) -> Counted:
    """Counts from about `most` blocks; the rest has the mean of its region."""
    chosen = limited(regions(bound.geometry.grid, PERIOD), most)
    runs = execute([range(block, block + 1) for region in chosen for block in region.members])
    counts = iter(run.counts for run in runs)
    of_regions = [(region, [next(counts) for _ in region.members]) for region in chosen]
    how = "estimated from their mean, place by place in the grid"
    if all(agree(of_region) for _, of_region in of_regions):
        how = "counted like those of its place in the grid"
    basis = f"{of_blocks(len(runs), bound.geometry.blocks)} executed; the rest {how}"
    return Counted(counts=extrapolated(of_regions), runs=runs, blocks=len(runs), basis=basis)
