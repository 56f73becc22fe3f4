"""Counts of the blocks of a launch of any kernel, and their requests to L2.

The executed blocks are all blocks, a few that represent all (`observation`), or a given number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES
from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.samples import Sample
from reports import text
from toolkit.execution.accesses import (
    AT_ONCE,
    Exchange,
    read_by_block,
    visits_in_time,
)
from toolkit.execution.assumed_accesses import assumed_accesses
from toolkit.execution.atomics import of_all_blocks, of_executed_blocks
from toolkit.execution.blocks_alone import BlocksAlone
from toolkit.execution.executed import NoPlanError
from toolkit.execution.launch_counts import LaunchCounts
from toolkit.execution.observation import LEAST_BLOCKS, Observable, Observed, observed
from toolkit.execution.recorded_blocks import (
    RecordedBlocks,
    blocks_that_exchange,
    lines_basis,
)
from toolkit.execution.replay import (
    Replay,
    blocks_of_busiest_sm,
    spread_blocks,
)
from toolkit.execution.representatives import Blocks, of_blocks, regions
from toolkit.execution.sampling import (
    Metrics,
    drawn_blocks,
    estimated_counts,
    estimates,
    longest_missed,
)
from toolkit.execution.schedule import Schedule, lifetimes_of
from toolkit.execution.traffic import L2Requests, Residence
from toolkit.execution.wall_time import Execute, WallTime
from toolkit.sass.accesses import RecordedAccesses
from toolkit.sass.atomics import Atomics
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import DEADLOCK, LIMIT, FaultError, Run, one_by_one
from toolkit.sass.regions import Flow
from toolkit.sass.requests import first_requests
from toolkit.sass.translate import Translated

WAIT = ": blocks wait for others"  # why all of them are executed
# Blocks that may take work from a queue have work of their own if each has at least this fraction
# of the average lifetime.
LEAST_OF_OWN = 0.25


@dataclass(frozen=True, kw_only=True)
class RecordedCounts(LaunchCounts):
    """Counts of a launch whose executed blocks recorded their accesses."""

    runs: Sequence[Run]
    # lifetime of each block, relative to a typical one; None without traffic and time
    lifetimes: NDArray[np.float64] | None = None
    exchange: Exchange | None = None  # None if no block waits for another's data
    observed: Observed | None = None  # None unless a few blocks represent all
    # assumed accesses of all blocks, if those of the executed blocks do not tell them
    assumed: RecordedAccesses | None = None
    # numbers that the executed blocks found changed (`core.TICKET`)
    tickets: NDArray[np.void] | None = None
    is_alone: bool = False  # blocks were executed alone that ask for what others write
    why_no_time: str = ""  # reason for a launch without traffic and time

    @property
    def why_no_traffic(self) -> str:
        if self.lifetimes is not None:
            return ""
        return self.why_no_time or "too many lines are accessed; take a smaller launch"

    @property
    def traffic_basis(self) -> str:
        return lines_basis(self._accesses_basis)

    @property
    def _accesses_basis(self) -> str:
        if self.assumed is not None:
            return "are assumed to be like those of the executed blocks"
        if self.observed is not None:
            _, known = self.observed.visits or (None, self.observed.blocks)
            those = "follow from those of the executed blocks"
            if known == self.observed.blocks:
                return those
            return f"{those}, for the first {known:,} blocks, whose second half stands for the rest"
        accesses = self._accesses
        spread = accesses.spread if accesses else 0
        return f"were recorded (one of {1 << spread})" if spread else "were recorded"

    @property
    def _accesses(self) -> RecordedAccesses | None:
        """Accesses of all blocks, one by one."""
        return self.assumed or self.runs[0].accesses

    @cached_property
    def atomics(self) -> AtomicOperations | None:
        return _operations(self, lambda run: run.atomics)

    @cached_property
    def stores(self) -> AtomicOperations | None:
        return _operations(self, lambda run: run.stores)

    def schedule(self, residence: Residence) -> Schedule | None:
        return super().schedule(residence) if self.exchange is None else None

    def longer(self, residence: Residence) -> float:
        resident = residence.device.sm_count * residence.blocks_per_sm
        if self.observed is None or not self.observed.is_in_part or self.observed.blocks > resident:
            return 0.0
        executed = [float(run.counts["executed"].sum()) for run in self.runs]
        return longest_missed(np.array(executed), self.observed.blocks)

    def asked(self, schedule: Schedule | None) -> L2Requests | str:
        assert self.lifetimes is not None
        differing = schedule.lifetimes if schedule else None
        lifetimes = self.lifetimes if differing is None else differing
        starts = schedule.start if schedule else None
        if self.observed is not None and self.observed.accesses is not None:
            found = self.observed.visits
            if found is None:
                return "too many lines are accessed, by too many groups of blocks"
            every, known = found
            moments, below = self.observed.accesses.moments, self.observed.accesses.below

            def of_first(blocks: int) -> L2Requests:
                visits = every if blocks == known else every[every["block"] < blocks]
                return L2Requests(
                    below=below,
                    lifetimes=lifetimes[:blocks],
                    in_time=partial(visits_in_time, visits, moments, lifetimes=differing),
                    starts=None if starts is None else starts[:blocks],
                )

            is_whole = known == len(lifetimes)
            of_half = None if is_whole else of_first(known // 2)
            return replace(of_first(known), of_half=of_half)
        return self._recorded.asked(schedule)

    @property
    def _recorded(self) -> RecordedBlocks:
        accesses, lifetimes = self._accesses, self.lifetimes
        assert accesses is not None
        assert lifetimes is not None
        return RecordedBlocks(accesses=accesses, lifetimes=lifetimes, exchange=self.exchange)

    def unscheduled_replay(
        self, residence: Residence, instructions: Sequence[InstructionCounts]
    ) -> Replay:
        del instructions
        assert self.lifetimes is not None
        sms, per_sm = residence.device.sm_count, residence.blocks_per_sm
        exchanging = self._recorded.exchanging if self.exchange is not None else None
        if exchanging is None:
            executed = None if self.work is None else self.work["executed"].astype(np.float64)
            return spread_blocks(np.flatnonzero(self.lifetimes), sms, executed)
        return blocks_of_busiest_sm(exchanging, sms, per_sm)

    def read_by_block(self) -> NDArray[np.float64]:
        if self.observed is not None and self.observed.accesses is not None:
            of_classes = [
                read_by_block(one.entries, np.zeros(len(one.entries)), 1)
                for one in self.observed.accesses.classes
            ]
            return np.concatenate(of_classes)[self.observed.accesses.class_of]
        return self._recorded.read_by_block

    def sample(self, translated: Translated, residence: Residence, replay: Replay) -> Sample:
        bound = self.again()
        if self.is_alone:
            bound = replace(bound, blocks_meet=False, tickets=self.tickets)
        if self.observed is not None:
            stand_in = self.observed.stand_in[list(replay.blocks)]
            replay = replace(replay, blocks=tuple(stand_in.tolist()))
        return BlocksAlone(
            translated=translated,
            device=residence.device,
            blocks=replay.blocks,
            work=None if self.work is None else self.work[list(replay.blocks)],
            counts=self.counts,
            exchange=self.exchange,
            again=self.again,
        ).sample(bound)

    def unchecked(self, blocks: int) -> Iterator[str]:
        yield from unchecked_blocks(blocks - self.blocks)


def _operations(
    counts: RecordedCounts, of_run: Callable[[Run], Atomics | None]
) -> AtomicOperations | None:
    """Operations on lines of all blocks, from those of the executed blocks."""
    if counts.observed is None:
        (run,) = counts.runs
        found = of_run(run)
        return of_all_blocks(found) if found else None
    known = {
        block: found
        for block, run in counts.observed.run_of.items()
        if (found := of_run(run)) is not None
    }
    return of_executed_blocks(known, counts.observed.class_of)


def unchecked_blocks(left: int) -> Iterator[str]:
    """Yield the note on `left` blocks that were not executed, if there are any."""
    if left:
        yield (
            f"{text.many(left, 'block')} not executed, so faults in them are not found "
            "(--blocks all)"
        )


def _with_lifetimes(found: RecordedCounts, bound: BoundLaunch, *, waits: bool) -> RecordedCounts:
    """Copy of `found` with the lifetimes of blocks and their exchange of data.

    Unchanged if the accesses of some blocks are unknown. `waits`: a loop waits for other blocks.
    """
    blocks, accesses = bound.geometry.blocks, found.runs[0].accesses
    if accesses is None or found.blocks < blocks or (waits and accesses.spread):
        return found
    work = found.runs[0].work
    shared = blocks_that_exchange(accesses, work) if waits else None
    if shared is not None:
        return replace(found, lifetimes=shared.lifetimes, exchange=shared.exchange, work=work)
    assert work is not None
    lifetimes = lifetimes_of(work)
    # blocks may take work from a queue: in the simulator the first block may have taken all of it
    own = lifetimes[_may_have_asked(accesses, blocks)]
    if bound.blocks_meet and len(own) and own.min() < LEAST_OF_OWN * own.mean():
        return replace(found, lifetimes=np.ones(blocks))
    return replace(found, lifetimes=np.where(lifetimes > AT_ONCE, 1.0, 0.0), work=work)


def _may_have_asked(accesses: RecordedAccesses, blocks: int) -> NDArray[np.bool_]:
    """True for each block that may have asked a queue for work: those that accessed memory."""
    if accesses.spread:  # not all lines were recorded
        return np.ones(blocks, dtype=bool)
    return np.isin(np.arange(blocks), accesses.rows["block"])


@dataclass(frozen=True, kw_only=True)
class BlockSelection:
    """Selection of the blocks to execute, and what the selection depends on."""

    blocks: Blocks  # as the caller of `simulate` gave it
    waits: bool  # a loop waits for data that other blocks write
    seed: bytes  # determines the blocks that are drawn at random
    limit_s: float  # all blocks are executed, rather than counters estimated, within this time
    # estimates the time of all blocks by executing a few, and undoes their stores
    trial: Callable[[], WallTime]
    again: Callable[[], BoundLaunch]  # binds the launch to its arguments as they were before
    flow: Flow
    metrics: Metrics
    functions: Mapping[str, int]  # number of the first instruction of each function, by name
    # returns a launch and a function that executes single blocks of it, if blocks ask for what
    # others write, but do not wait for it; else None
    alone: Callable[[BoundLaunch], tuple[BoundLaunch, Execute] | None]


def counted_blocks(
    bound: BoundLaunch,
    selection: BlockSelection,
    execute: Execute,
    execute_few: Execute,
    execute_soon: Callable[[], list[Run] | None],
    announce: Callable[[], None],
) -> RecordedCounts:
    """Counts of a launch, from the selected blocks.

    `execute` runs all blocks as one range, `execute_few` runs single blocks. `execute_soon` runs
    all blocks unless they execute much. `announce` is called before all blocks are executed.
    """
    everything, why, runs = bound.geometry.blocks, "", None
    if selection.blocks == "representative":
        if everything < LEAST_BLOCKS:
            runs = execute_soon()
        try:
            if runs is None:
                return _observed(bound, selection, execute_few)
        except NoPlanError as reason:
            why = str(reason)
            bound.restore()
    elif selection.blocks != "all" and selection.blocks < everything:
        if not selection.waits:
            return _counts_of_some(bound, selection, execute_few, selection.blocks)
        why = WAIT
    if runs is None:
        announce()
        runs = execute([range(everything)], None, None)
    basis = f"{of_blocks(everything, everything)} executed{why}"
    found = RecordedCounts(
        counts=runs[0].counts,
        requests=_requests(runs, bound),
        runs=runs,
        blocks=everything,
        basis=basis,
        again=selection.again,
    )
    return _with_lifetimes(found, bound, waits=selection.waits)


def _observed(bound: BoundLaunch, selection: BlockSelection, execute: Execute) -> RecordedCounts:
    """Counts from a plan by observation. Raises NoPlanError if all blocks must be executed."""
    if bound.cluster_blocks > 1:
        raise NoPlanError(": they form clusters")
    is_alone = selection.waits or bound.blocks_meet
    try:
        if is_alone:
            alone = None if selection.waits or _is_short(selection) else selection.alone(bound)
            if alone is None:
                raise NoPlanError(WAIT)
            bound, execute = alone
        found = observed(_observable(bound, selection, execute))
    except FaultError as error:
        if not is_alone or error.fault.kind not in (DEADLOCK, LIMIT):
            raise
        raise NoPlanError(WAIT) from None  # for what another block writes
    if not found.is_sufficient and not found.is_in_part and _is_short(selection):
        raise NoPlanError(found.lost)
    assumed = None
    if found.accesses is None:
        starts = sorted(buffer.address // LINE_BYTES for buffer in bound.buffers)
        assumed = assumed_accesses(found.samples, bound.geometry.blocks, starts)
        found = replace(found, samples={})
    return RecordedCounts(
        counts=found.counts,
        requests=_requests(found.runs, bound),
        runs=found.runs,
        again=selection.again,
        blocks=len(found.runs),
        basis=found.basis,
        lifetimes=np.where(lifetimes_of(found.work) > AT_ONCE, 1.0, 0.0),
        assumed=assumed,
        observed=found,
        tickets=bound.tickets,
        is_alone=is_alone,
        estimates=found.estimates,
        uncertainty=_doubt(found, bound),
        work=found.work,
    )


def _observable(bound: BoundLaunch, selection: BlockSelection, execute: Execute) -> Observable:
    return Observable(
        grid=bound.geometry.grid,
        flow=selection.flow,
        run=lambda chosen, followed: execute(one_by_one(chosen), followed, None),
        run_at_most=lambda chosen, followed, most: execute(one_by_one(chosen), followed, most),
        metrics=selection.metrics,
        functions=selection.functions,
        seed=selection.seed,
        is_short=partial(_is_short, selection),
        limit_s=selection.limit_s,
        # a block that finds all others done may do more than they
        always=() if bound.tickets is None else (bound.geometry.blocks - 1,),
        restore=bound.restore,
    )


def _requests(runs: Sequence[Run], bound: BoundLaunch) -> dict[int, FirstRequest]:
    """First request of each instruction, by its number, in the first block that executes it."""
    found: dict[int, FirstRequest] = {}
    for run in runs:
        found = first_requests(run.requests, bound) | found
    return found


def _doubt(found: Observed, bound: BoundLaunch) -> str:
    """Text that warns of estimates; empty if no counter needs it."""
    if found.is_sufficient:
        return ""
    said = _uncertainty(len(found.runs), bound)
    drawn = found.estimates
    if found.is_in_part and drawn and drawn.agreeing == drawn.drawn:
        said += ", which do the same: if another one takes longer, so does the launch"
    elif found.is_in_part:
        said += ", which differ: the longest block may be another one"
    return said


def _uncertainty(executed: int, bound: BoundLaunch) -> str:
    return f"Counters are estimates from {of_blocks(executed, bound.geometry.blocks)}"


def _is_short(selection: BlockSelection) -> bool:
    """True if all blocks take no longer than `limit_s`."""
    if not selection.limit_s:
        return False
    estimate = selection.trial()
    return not estimate.is_least and estimate.seconds <= selection.limit_s


def _counts_of_some(
    bound: BoundLaunch, selection: BlockSelection, execute: Execute, most: int
) -> RecordedCounts:
    """Counts estimated from `most` blocks.

    Up to half of them are from corners, edges and the interior; the others are drawn at random.
    """
    everything = bound.geometry.blocks
    known = sorted({b for one in regions(bound.geometry.grid) for b in one.members})[: most // 2]
    drawn = drawn_blocks(known, everything, most - len(known), selection.seed)
    chosen = sorted([*known, *drawn])
    runs = execute(one_by_one(chosen), None, None)
    counts = dict(zip(chosen, (run.counts for run in runs), strict=True))
    of_known, of_drawn = ([counts[b] for b in blocks] for blocks in (known, drawn))
    may_differ = np.ones(len(of_drawn[0]), dtype=COUNT)
    rest = everything - len(known)
    total = estimated_counts(np.zeros_like(of_drawn[0]), may_differ, of_known, of_drawn, everything)
    found = estimates(selection.metrics(total, None), may_differ, of_drawn, rest, selection.metrics)
    return RecordedCounts(
        counts=total,
        requests=_requests(runs, bound),
        runs=runs,
        again=selection.again,
        blocks=len(runs),
        basis=f"{of_blocks(len(runs), everything)} executed; {found.seen(everything)}",
        estimates=found,
        uncertainty=_uncertainty(len(runs), bound),
        why_no_time="it needs the accesses of all blocks: --blocks all executes them",
    )
