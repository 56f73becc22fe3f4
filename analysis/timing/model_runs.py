"""Runs of the model of an SM for one launch, and the totals of the SM that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from analysis.sm import SCHEDULERS, Kind, Machine, Ran, Streams, run, run_parts, side_by_side
from analysis.timing.l2_atomics import AtomicTime, atomic_time
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.sm_totals import SmTotals

# If SMs read a line at about the same time, the first read waits for DRAM, and so do others that
# arrive before it is served. A block that waits lets others catch up: the fraction of these that
# wait is this factor times the relative slowdown if all do. Fitted on the ladder on an H200.
MEET_BY_WAITS = 2.0
MOST_IN_STEP = 1 << 20  # warp instructions after which the slowdown of waiting in step is known


def blocks_run(
    sm: ModelledSm, machine: Machine, streams: Streams, numbers: Sequence[int], begun: list[Any]
) -> tuple[Ran, ...]:
    """Runs of the first n blocks for each n in `numbers`, the largest last."""
    if sm.work.of_sm:
        orders = sm.work.of_sm.orders[: len(numbers)]
        return tuple(run(sm.code, streams, order, machine, begun) for order in orders)
    jobs = [number % streams.blocks for number in range(numbers[-1])]
    return run_parts(sm.code, streams, jobs, machine, numbers, begun)


@dataclass(frozen=True, kw_only=True)
class ModelRuns:
    """Runs of the model. Each of the streams that are replayed, the shortest first, has an entry.

    `of_blocks`: runs of the numbers of blocks. `of_one_warp`: run of one warp alone on an SM.
    `in_step`: run of the fewest blocks of the longest streams, in which every request waits for
    DRAM.
    """

    sm: ModelledSm
    of_blocks: Sequence[tuple[Ran, ...]]
    of_one_warp: Sequence[Ran]
    in_step: Ran

    @cached_property
    def total(self) -> SmTotals:
        """Totals of the modelled SM.

        Raises UnsteadyError as `Sample.extrapolated` does.
        """
        found, work = self.replayed, self.sm.work
        # other SMs wait with this SM only for what they read too: as much as the average SM reads
        relative_reads = work.exchanged.relative_l2_reads * work.relative_reads
        clocks = found.clocks * (1 + self.coupling * self.waits / relative_reads)
        # an extrapolation from a few blocks and small K may fall below the busy time of a unit
        busy = found.load_store, found.constants, found.issued / SCHEDULERS
        below_s = (*self.sm.below_l1_s, self.atomics.time_s if self.atomics else 0.0)
        least = (*busy, *(time_s * self.sm.clock_hz for time_s in below_s))
        return replace(found, clocks=max(clocks, *least))

    @cached_property
    def atomics(self) -> AtomicTime | None:
        """Time that L2 needs for atomic operations, None if there are none."""
        sm = self.sm
        if sm.work.atomics is None:
            return None
        return atomic_time(sm.work.atomics, sm.device.l2_bytes, sm.constants)

    @cached_property
    def replayed(self) -> SmTotals:
        """Totals from the replay alone, in which an SM waits for DRAM for some of its requests."""
        found = self.sm.work.sample.extrapolated([self._over_blocks(ran) for ran in self.of_blocks])
        return found.times(self.sm.work.weight)

    def _over_blocks(self, ran: Sequence[Ran]) -> SmTotals:
        """Totals over all blocks of the SM."""
        few, *more = (SmTotals.of(one) for one in ran)
        if not more:
            return few
        if self.sm.work.of_sm:
            return few.line_to(more[0], self.sm.work.of_sm.further)
        fewest, most = self.sm.numbers_of_blocks
        return few.line_to(more[0], (self.sm.blocks - fewest) / (most - fewest))

    @property
    def clocks_of_few(self) -> float:
        """Clocks of the fewest blocks."""
        few = [SmTotals.of(ran) for ran, *_ in self.of_blocks]
        return self.sm.work.sample.extrapolated(few).clocks

    @property
    def clocks_of_one_warp(self) -> float:
        """Clocks of one warp alone on an SM: only its own latencies count."""
        return self.sm.work.sample.extrapolated([SmTotals.of(x) for x in self.of_one_warp]).clocks

    @property
    def waits(self) -> float:
        """Relative slowdown if every request waits for DRAM."""
        few, *_ = self.of_blocks[-1]
        return self.in_step.marked / few.marked - 1

    @property
    def coupling(self) -> float:
        """Fraction of the requests that wait for DRAM because other SMs read the same lines."""
        if self.sm.machine.dram_share == 0:
            return 0.0
        if self.sm.work.blocks <= self.sm.device.sm_count:
            return 1.0
        if not (self.sm.code["kind"] == Kind.BARRIER).any():
            return 0.0
        return float(np.clip(MEET_BY_WAITS * self.waits, 0, 1))


def model_runs(sm: ModelledSm, begun: list[Any]) -> ModelRuns:
    """Run the model; `begun` gets what `analysis.sm.end_runs` ends the runs by."""
    streams, numbers = sm.work.sample.replayed, sm.numbers_of_blocks
    longest = streams[-1]
    executed = longest.executed * numbers[0] // longest.blocks
    usual = replace(sm.machine, mark=sm.work.sample.marked_at(MOST_IN_STEP, executed))
    in_step = replace(usual, waiting_share=1.0, stops_at_mark=1)
    # the longest begin first, so that none is left over
    jobs = [partial(blocks_run, sm, usual, one, numbers, begun) for one in reversed(streams)]
    jobs += [partial(_one_warp_run, sm, one) for one in reversed(streams)]
    jobs.append(partial(blocks_run, sm, in_step, longest, numbers[:1], begun))
    *found, (of_step,) = side_by_side(jobs, 2, begun)
    of_blocks, of_one_warp = found[: len(streams)], found[len(streams) :]
    return ModelRuns(
        sm=sm,
        of_blocks=of_blocks[::-1],
        of_one_warp=[ran for (ran,) in of_one_warp[::-1]],
        in_step=of_step,
    )


def _one_warp_run(sm: ModelledSm, streams: Streams) -> tuple[Ran, ...]:
    """Run of the first warp of some streams."""
    first = streams.first_warp[0]
    ends = np.append(streams.first_step, np.uint64(len(streams.steps)))
    one = replace(
        streams,
        steps=streams.steps[: int(ends[first + 1])],
        first_step=streams.first_step[:1],
        first_line=streams.first_line[:1],
        first_warp=np.array([0, 1]),
    )
    return (run(sm.code, one, [0], replace(sm.machine, slots=1)),)
