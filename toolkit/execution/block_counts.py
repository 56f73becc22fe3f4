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
    AT_ONCE,
    Exchange,
    accesses_in_time,
    exchange,
    read_by_block,
    visits_in_time,
)
from toolkit.execution.block_plan import PERIOD, WAIT, Blocks, limited, of_blocks
from toolkit.execution.observation import NoPlanError, Observed, observed
from toolkit.execution.replay import Schedule, lifetimes_of, unequal_schedule
from toolkit.execution.representatives import agree, extrapolated, regions
from toolkit.execution.traffic import Asked
from toolkit.sass.core.binding import WORK
from toolkit.sass.machine import Bound, Run

Execute = Callable[[Sequence[range]], list[Run]]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Counts per instruction, the number of blocks that they come from, and their basis.

    `work`: what each block of the launch executed (`core.WORK`), None if it is not known.
    """

    counts: NDArray[Any]
    runs: Sequence[Run]
    blocks: int
    basis: str
    lifetimes: NDArray[np.float64] | None = None
    exchange: Exchange | None = None
    observed: Observed | None = None
    work: NDArray[Any] | None = None

    def schedule(self, sms: int, per_sm: int) -> Schedule | None:
        """Schedule of the blocks if they differ and do not wait for each other."""
        if self.work is None or self.exchange is not None:
            return None
        return unequal_schedule(self.work, sms, per_sm)

    def read_by_block(self, blocks: int) -> NDArray[np.float64]:
        """Sectors that each of the `blocks` of the launch reads."""
        if self.observed is not None:
            of_classes = [
                read_by_block(one.entries, np.zeros(len(one.entries)), 1)
                for one in self.observed.classes
            ]
            return np.concatenate(of_classes)[self.observed.class_of]
        accesses = self.runs[0].accesses
        assert accesses is not None
        return read_by_block(accesses.rows, accesses.rows["block"], blocks)

    @property
    def accesses_basis(self) -> str:
        """End of the sentence "the lines that each block accesses …"."""
        if self.observed is not None:
            return "follow from those of the executed blocks"
        accesses = self.runs[0].accesses
        spread = accesses.spread if accesses else 0
        return f"were recorded (one of {1 << spread})" if spread else "were recorded"


def requests_of(counted: Counted, schedule: Schedule | None = None) -> Asked | str:
    """Requests of all blocks to L2, or why they are not known. `schedule` of blocks that differ."""
    lifetimes, differing = counted.lifetimes, schedule.lifetimes if schedule else None
    if differing is not None:
        lifetimes = differing
    if counted.observed is not None:
        visits = counted.observed.visits()
        if visits is None:
            return "too many lines are accessed, by too many groups of blocks"
        assert lifetimes is not None
        return Asked(
            below=counted.observed.below,
            lifetimes=lifetimes,
            in_time=partial(visits_in_time, visits, counted.observed.moments, lifetimes=differing),
            starts=schedule.start if schedule else None,
        )
    if lifetimes is None:
        if len(counted.runs) > 1:
            return "that takes the accesses of all blocks"
        return "too many lines are accessed; take a smaller launch"
    accesses = counted.runs[0].accesses
    assert accesses is not None
    return Asked(
        below=accesses.below,
        lifetimes=lifetimes,
        in_time=partial(
            accesses_in_time,
            accesses.rows,
            lifetimes,
            counted.exchange,
            lines=1 << accesses.spread,
            typical_steps=schedule.typical_steps if schedule else None,
        ),
        starts=schedule.start if schedule else None,
    )


def _with_lifetimes(counted: Counted, bound: Bound, *, waits: bool) -> Counted:
    """Copy of `counted` with lifetimes of blocks, and their exchange of data, from all accesses."""
    blocks, accesses = bound.geometry.blocks, counted.runs[0].accesses
    if accesses is None or counted.blocks < blocks or (waits and accesses.spread):
        return counted
    shared = exchange(accesses.rows, blocks) if waits else None
    if shared is None and bound.blocks_meet:  # the first block may have taken the work of all
        return replace(counted, lifetimes=np.ones(blocks))
    work = counted.runs[0].work
    assert work is not None
    lifetimes = lifetimes_of(work)
    of_busy = 1.0 if shared is None else lifetimes
    lifetimes = np.where(lifetimes > AT_ONCE, of_busy, 0.0)
    return replace(counted, lifetimes=lifetimes, exchange=shared, work=work)


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
    work: dict[int, NDArray[Any] | None] = {}

    def executed(chosen: Sequence[int]) -> list[Run]:
        runs = execute([range(block, block + 1) for block in chosen])
        work.update((block, run.work) for block, run in zip(chosen, runs, strict=True))
        return runs

    found = observed(bound.geometry.grid, executed, seed)
    of_classes = np.zeros(len(found.classes), dtype=WORK)
    for block, of_block in work.items():
        of_classes[found.class_of[block]] = of_block
    of_blocks = of_classes[found.class_of]
    return Counted(
        counts=found.counts,
        runs=found.runs,
        blocks=len(found.runs),
        basis=found.basis,
        lifetimes=np.where(lifetimes_of(of_blocks) > AT_ONCE, 1.0, 0.0),
        observed=found,
        work=of_blocks,
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
