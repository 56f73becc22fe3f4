"""Runs of the SM model for one launch, and the SM's totals derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.sm import SCHEDULERS, Kind, Machine, Ran, Streams, run, run_parts, side_by_side
from analysis.timing.l2_atomics import AtomicTime, atomic_time
from analysis.timing.l2_stores import store_time
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.samples import Whole
from analysis.timing.sm_totals import SmTotals
from analysis.timing.work import NO_EXCHANGE
from analysis.traffic.l2 import share_within

# If several SMs read a line at about the same time, the first read waits for DRAM, and so does each
# read that arrives before the data. While a block waits, blocks of other SMs catch up, so that more
# of their reads coincide. The fraction of reads that wait for another SM's fetch is this factor
# times the relative slowdown of a run in which every read waits. Fitted on the ladder on an H200.
MEET_BY_WAITS = 2.0
# Traffic counts what each block reads once. If the L1 of the replayed SM keeps lines from block to
# block, so that less than this fraction of it comes to L2, what comes to L2 is counted instead.
BEYOND_L1 = 0.9
MOST_IN_STEP = 1 << 20  # warp instructions after which the slowdown of waiting in step is known


def blocks_run(
    sm: ModelledSm,
    machine: Machine,
    streams: Streams,
    numbers: Sequence[int],
    begun: list[Any],
    code: NDArray[Any] | None = None,
) -> tuple[Ran, ...]:
    """Runs of the first n blocks for each n in `numbers`, the largest last. `code`: of the SM."""
    code = sm.code if code is None else code
    if sm.work.of_sm:
        orders = sm.work.of_sm.orders[: len(numbers)]
        return tuple(run(code, streams, order, machine, begun) for order in orders)
    jobs = [number % streams.blocks for number in range(numbers[-1])]
    return run_parts(code, streams, jobs, machine, numbers, begun)


def over_blocks(sm: ModelledSm, ran: Sequence[Ran]) -> SmTotals:
    """Totals over all blocks of an SM, from runs of its numbers of blocks."""
    few, *more = (SmTotals.of(one) for one in ran)
    if not more:
        return few
    if sm.work.of_sm:
        return few.line_to(more[0], sm.work.of_sm.further)
    fewest, most = sm.numbers_of_blocks
    return few.line_to(more[0], (sm.blocks - fewest) / (most - fewest))


@dataclass(frozen=True, kw_only=True)
class ModelRuns:
    """Runs of the SM model for one launch.

    The sequences have one entry for each of `Sample.replayed`, the shortest streams first.
    """

    sm: ModelledSm
    of_blocks: Sequence[tuple[Ran, ...]]  #: one run for each of `ModelledSm.numbers_of_blocks`
    #: one warp alone on an SM, and twice in a row: the second time, caches are warm
    of_one_warp: Sequence[tuple[Ran, Ran]]
    in_step: Ran  #: the longest streams, fewest blocks; every request waits for DRAM

    @cached_property
    def total(self) -> SmTotals:
        """Totals of the modelled SM.

        Raises UnsteadyError as `Sample.extrapolated` does.
        """
        found = self.replayed
        clocks = found.clocks * (1 + self.slowdown)
        # an extrapolation from a few blocks and small K may fall below the busy time of a unit
        busy = found.load_store, found.shared, found.constants, found.issued / SCHEDULERS
        below_s = (*self.sm.below_l1_s, self.stores.time_s if self.stores else 0.0)
        least = (
            *busy,
            *(time_s * self.sm.clock_hz for time_s in below_s),
            self.clocks_with_atomics(found.clocks),
        )
        return replace(found, clocks=max(clocks, *least, self.sm.work.clocks_of_waits))

    @property
    def slowdown(self) -> float:
        """Relative slowdown because other SMs wait for the same lines of DRAM.

        They wait with this SM only for what they read too: as much as the average SM reads.
        """
        work = self.sm.work
        relative_reads = work.exchanged.relative_l2_reads * work.relative_reads
        return self.coupling * self.waits / relative_reads

    @cached_property
    def atomics(self) -> AtomicTime | None:
        """Time that L2 needs for atomic operations, None if there are none."""
        sm = self.sm
        if sm.work.atomics is None:
            return None
        return atomic_time(sm.work.atomics, sm.device.l2_bytes, sm.constants)

    def clocks_with_atomics(self, clocks: float, share: float = 1.0) -> float:
        """Clocks after which L2 has done the atomic operations, 0 if there are none.

        L2 begins when a block makes the first of them. `clocks`: of the SM without their queue, to
        which that grows in proportion; `share`: of the time that L2 takes.
        """
        if self.atomics is None or not share:
            return 0.0
        begins = self._clocks_before_atomics * clocks / self.replayed.clocks
        return begins + share * self.atomics.time_s * self.sm.clock_hz

    @cached_property
    def _clocks_before_atomics(self) -> float:
        """Clocks until the first atomic operation: a share, by steps, of the first block to end."""
        sample = self.sm.work.sample
        if not isinstance(sample, Whole):
            return 0.0
        streams, kind = sample.streams, self.sm.code["kind"]
        is_atomic = (kind[streams.steps["pc"]] == Kind.ATOMIC) & (streams.steps["lines"] > 0)
        at = np.flatnonzero(is_atomic)
        if not at.size:
            return 0.0
        first = streams.first_step.astype(np.int64)
        ends = np.append(first[1:], len(streams.steps))
        next_one = np.append(at, len(streams.steps))[np.searchsorted(at, first)]
        has_any = next_one < ends
        share = ((next_one - first)[has_any] / (ends - first)[has_any]).min()
        *_, most = self.of_blocks[0]
        return float(share * most.ends.min())

    @cached_property
    def stores(self) -> AtomicTime | None:
        """Time that L2 needs for stores that meet at lines, None if there are none."""
        sm = self.sm
        if sm.work.stores is None:
            return None
        return store_time(sm.work.stores, sm.device.l2_bytes, sm.constants)

    @cached_property
    def replayed(self) -> SmTotals:
        """Totals from the replay alone, in which an SM waits for DRAM for some of its requests."""
        found = self.sm.work.sample.extrapolated(
            [over_blocks(self.sm, ran) for ran in self.of_blocks]
        )
        return found.times(self.sm.work.weight)

    @property
    def read_beyond_l1(self) -> float | None:
        """Bytes that the launch reads from L2, if L1 keeps lines for later blocks; None if not.

        DRAM sends as many bytes all the same, so that more of the other requests wait for it.
        """
        work = self.sm.work
        if work.exchanged is not NO_EXCHANGE:
            return None
        found = self.replayed.l2_read_bytes / work.relative_reads * self.sm.busy_sms
        found = max(found, work.loaded_from_dram)
        return found if 0 < found < BEYOND_L1 * work.l2_read_bytes else None

    @property
    def clocks_of_few(self) -> float:
        """Clocks of the run with the fewest blocks, extrapolated to complete blocks."""
        few = [SmTotals.of(ran) for ran, *_ in self.of_blocks]
        return self.sm.work.sample.extrapolated(few).clocks

    @property
    def latency_of_a_block(self) -> tuple[float, float]:
        """Clocks that a block takes at least, even if it does not wait for a busy unit.

        That is one warp alone on the SM, or the shortest of the replayed blocks: there, other warps
        may have fetched the lines that the warp alone waits for. The first number is for the first
        block of an SM, the second one for a later block, which finds warm caches.
        """
        extended = self.sm.work.sample.extended
        once, twice = (
            extended([SmTotals.of(ran[n]) for ran in self.of_one_warp]).clocks for n in (0, 1)
        )
        shortest = extended([_of_shortest_block(few) for few, *_ in self.of_blocks]).clocks
        return min(once, shortest), min(twice - once, shortest)

    @property
    def waits(self) -> float:
        """Relative slowdown of a run in which every request waits for DRAM."""
        few, *_ = self.of_blocks[-1]
        return self.in_step.marked / few.marked - 1

    @property
    def coupling(self) -> float:
        """Fraction of the requests that wait for DRAM because other SMs read the same lines."""
        if self.sm.machine.dram_share == 0:
            return 0.0
        if self.sm.work.blocks <= self.sm.device.sm_count:
            latency = self.sm.machine.l2_latency + self.sm.machine.dram_latency
            return share_within(self.sm.work.soon_shares, latency / self.clocks_of_few)
        if not (self.sm.code["kind"] == Kind.BARRIER).any():
            return 0.0
        return float(np.clip(MEET_BY_WAITS * self.waits, 0, 1))


def _of_shortest_block(ran: Ran) -> SmTotals:
    """Totals of a run, but with the clocks of its shortest block."""
    return replace(SmTotals.of(ran), clocks=float((ran.ends - ran.starts).min()))


def model_runs(sm: ModelledSm, begun: list[Any]) -> ModelRuns:
    """Run the model for a launch.

    Each run is appended to `begun`, so that `analysis.sm.end_runs` can end it.
    """
    streams, numbers = sm.work.sample.replayed, sm.numbers_of_blocks
    longest = streams[-1]
    executed = longest.executed * numbers[0] // longest.blocks
    usual = replace(sm.machine, mark=sm.work.sample.marked_at(MOST_IN_STEP, executed))
    in_step = replace(usual, waiting_share=1.0, stops_at_mark=1)
    # longest first: otherwise a long run might start last and keep one thread busy alone
    jobs = [partial(blocks_run, sm, usual, one, numbers, begun) for one in reversed(streams)]
    jobs += [partial(_one_warp_run, sm, one) for one in reversed(streams)]
    jobs.append(partial(blocks_run, sm, in_step, longest, numbers[:1], begun))
    *found, (of_step,) = side_by_side(jobs, 2, begun)
    of_blocks, of_one_warp = found[: len(streams)], found[len(streams) :]
    return ModelRuns(
        sm=sm,
        of_blocks=of_blocks[::-1],
        of_one_warp=of_one_warp[::-1],
        in_step=of_step,
    )


def _one_warp_run(sm: ModelledSm, streams: Streams) -> tuple[Ran, ...]:
    """Runs of the first warp of `streams`, alone on the SM: once, and twice in a row."""
    first = streams.first_warp[0]
    ends = np.append(streams.first_step, np.uint64(len(streams.steps)))
    one = replace(
        streams,
        steps=streams.steps[: int(ends[first + 1])],
        first_step=streams.first_step[:1],
        first_line=streams.first_line[:1],
        first_warp=np.array([0, 1]),
    )
    return run_parts(sm.code, one, [0, 0], replace(sm.machine, slots=1), [1, 2])
