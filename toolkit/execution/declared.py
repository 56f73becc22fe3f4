"""Counts of a rung, from the blocks that its registry entry declares to represent all blocks.

`plan_executor` executes these blocks, and proves what is declared. K may be reduced: counts and
times are then extrapolated along K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest
from analysis.rounding import Check
from analysis.sm import FLAG, IN_L2, LINE_BYTES, Streams
from analysis.timing.blocks_of_sm import blocks_to_run, most_blocks
from analysis.timing.samples import AlongK, Sample, Whole
from analysis.traffic.block_schedule import BlockProgress
from analysis.traffic.gemm_accesses import gemm_accesses, sums_bytes
from analysis.traffic.grid import Pieces
from kernels.closed_forms import pieces_of_c
from toolkit.execution.accesses import AT_ONCE
from toolkit.execution.launch_counts import LaunchCounts
from toolkit.execution.recorded_blocks import RecordedBlocks, lines_basis
from toolkit.execution.replay import (
    ExchangingBlocks,
    Replay,
    blocks_of_busiest_sm,
    first_blocks,
    spread_blocks,
)
from toolkit.execution.replayed_streams import streams_of
from toolkit.execution.representatives import agree
from toolkit.execution.rung_plan import (
    BlockPlan,
    period,
    timed_k,
)
from toolkit.execution.schedule import Schedule, lifetimes_of
from toolkit.execution.traffic import Asked, Residence
from toolkit.launch.host_resources import sparse_zeros
from toolkit.rungs.launch import RungLaunch
from toolkit.sass.accesses import Below
from toolkit.sass.bound_launch import BoundLaunch, Spread
from toolkit.sass.translate import Translated

Counts = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class BlockRuns:
    """Results of blocks at one K: counts of the members of each group, and verdicts on their tiles.

    Of the first member of each group, `below` holds the requests to L2, `work` the instructions
    (core.WORK, an array of one block), `mean_reads` and `last_reads` the instructions of a warp
    before a read on average and before the last one. `requests`: the first request of each
    instruction, in the first member of the first group. `checked`: number of blocks whose tiles of
    C have verdicts. `exchanging`: all blocks of the launch, if they ran together and exchange data.
    """

    k: int
    groups: Sequence[Sequence[Counts]] = ()
    verdicts: Sequence[Check] = ()
    below: Sequence[Below] = ()
    work: Sequence[NDArray[Any]] = ()
    mean_reads: Sequence[float] = ()
    last_reads: Sequence[float] = ()
    requests: Mapping[int, FirstRequest] = field(default_factory=dict)
    checked: int = 0
    exchanging: RecordedBlocks | None = None

    @property
    def alike(self) -> bool:
        """True if the members of each group have equal counts for every instruction."""
        return all(map(agree, self.groups))


@dataclass(frozen=True, kw_only=True)
class DeclaredCounts(LaunchCounts):
    """Counts of a rung, from the blocks of a plan.

    `bind`: binds the launch at K = k to C and, where blocks wait for others, to the data that they
    wait for (`PlanExecutor.bound`). `below`: requests to L2, None if not known. `runs`: results at
    the largest K at which a block of each region was executed. `exchanging`: all blocks, if they
    ran together at K itself and exchange data.
    """

    launch: RungLaunch
    bind: Callable[..., BoundLaunch]
    plan: BlockPlan
    below: Below | None
    runs: BlockRuns
    exchanging: RecordedBlocks | None = None

    @property
    def why_no_traffic(self) -> str:
        return "too many lines are accessed; take a smaller shape" if self.below is None else ""

    @property
    def traffic_basis(self) -> str:
        if self.exchanging is not None:
            return lines_basis("were recorded")
        return (
            "what each block asks of L2 follows from the executed blocks, what caches keep of it "
            "from the order in which blocks run and the sizes of their tiles (analysis.traffic.l2)"
        )

    def asked(self, schedule: Schedule | None) -> Asked | str:
        if self.exchanging is not None:
            return self.exchanging.asked()
        assert self.below is not None
        launch = self.launch
        in_time = partial(
            gemm_accesses, launch.tiling, launch.executed, self._pieces, lead=self._lead
        )
        if schedule is None:
            lifetimes = self._pieces.lifetimes(launch.geometry.blocks)
            return Asked(below=self.below, lifetimes=lifetimes, in_time=in_time)
        progress = BlockProgress.even(schedule.lifetimes)
        return Asked(
            below=self.below,
            lifetimes=schedule.lifetimes,
            in_time=lambda starts, _: in_time(starts, progress),
            starts=schedule.start,
        )

    def replay(
        self,
        residence: Residence,
        schedule: Schedule | None,
        instructions: Sequence[InstructionCounts],
    ) -> Replay:
        found = super().replay(residence, schedule, instructions)
        return replace(found, points=_replayed_k(self.launch, shares_tiles=bool(self.plan.kinds)))

    def unscheduled_replay(
        self, residence: Residence, instructions: Sequence[InstructionCounts]
    ) -> Replay:
        launch = self.launch
        if launch.order.kinds and not self.plan.kinds:
            raise UnavailableError(
                "which of its blocks stand for those that share tiles is not known"
            )
        sms, per_sm = residence.device.sm_count, residence.blocks_per_sm
        if not self.plan.kinds:
            assert self.work is not None
            if len(_replayed_k(launch, shares_tiles=False)) > 1:
                chosen = first_blocks(launch.geometry.blocks, sms, partial(_is_partial, launch))
                chosen = replace(chosen, busy_blocks=launch.busy_blocks)
            else:
                chosen = spread_blocks(np.flatnonzero(lifetimes_of(self.work) > AT_ONCE), sms)
            executed = sum(one.executed for one in instructions)
            average = executed / chosen.busy_blocks
            # relative to these blocks at K itself: they may be executed at smaller K
            return replace(chosen, weight=average / self.work["executed"][chosen.blocks].mean())
        recorded = self.exchanging and self.exchanging.exchanging
        return blocks_of_busiest_sm(recorded or self._exchanging_kinds, sms, per_sm)

    @property
    def _exchanging_kinds(self) -> ExchangingBlocks:
        """The blocks of the launch, from those of each kind."""
        launch = self.launch
        idle = launch.geometry.blocks - launch.busy_blocks  # the first blocks
        return ExchangingBlocks(
            first=idle,
            sharing=sum(kind.population for kind in self.plan.kinds if not kind.is_alone) - idle,
            work=self._by_block(one["longest"].item() for one in self.runs.work),
            reads=self.read_by_block(),
            bytes=float((self._pieces.ends < 1).sum() * sums_bytes(launch.tiling)),
            writers=int(self._pieces.leaves_sums.sum()),
        )

    def sample(self, translated: Translated, residence: Residence, replay: Replay) -> Sample:
        kind = AlongK if len(replay.points) > 1 else Whole
        blocks = replay.blocks
        if replay.of_sm is None:
            blocks = blocks[: self._count(translated, residence, replay, kind.most_waves)]
        at = {k: self._streams(k, blocks) for k in replay.points}
        if len(at) == 1:
            return Whole(streams=at[replay.points[0]])
        return AlongK(at=at, k=self.launch.executed.k)

    def _count(
        self, translated: Translated, residence: Residence, replay: Replay, waves: int
    ) -> int:
        """Number of blocks of an SM that are replayed, at most. `waves` is as in `Sample`."""
        of_sm = most_blocks(
            self.launch.busy_blocks,
            residence.device.sm_count,
            residence.blocks_per_sm,
            finish_at_different_times=replay.finish_at_different_times(
                translated.kernel, self.launch.geometry
            ),
        )
        return max(
            blocks_to_run(
                of_sm, residence.blocks_per_sm, unlike=replay.exchanged.unlike, waves=waves
            )
        )

    def flop(self, instructions: Sequence[InstructionCounts]) -> int:
        return self.launch.problem.flop

    @property
    def key(self) -> Mapping[str, object]:
        return {
            "shape": self.launch.executed,
            "flop": self.launch.problem.flop,
            "parameters": sorted(self.launch.parameters.items()),
        }

    @cached_property
    def _pieces(self) -> Pieces:
        return pieces_of_c(self.launch.variant, self.launch.parameters, self.launch.executed)

    def read_by_block(self) -> NDArray[Any]:
        return self._by_block(asked.read for asked in self.runs.below)

    @cached_property
    def _lead(self) -> NDArray[Any]:
        """Time of each block until its first read, beyond that of a block of the largest region.

        In lifetimes of a block, relative to the time until its last read, as other kernels'
        accesses (`steps_of_all_work`). Instructions before the loop over K take this time, so it
        becomes a smaller part of a lifetime with larger K; instructions after the last read, too.
        """
        if self.launch.order.kinds:
            return np.zeros(self.plan.blocks)
        assert self.work is not None
        runs = self.runs
        largest = int(np.argmax([region.population for region in self.plan.regions]))
        mean = np.array(runs.mean_reads) / np.maximum(1, runs.last_reads)
        after_last = int(runs.work[largest]["longest"][0]) - runs.last_reads[largest]
        lifetime = int(self.work["longest"][self.plan.region_of == largest][0])
        until_last = 1 - after_last / lifetime
        # reads are even from the first to the last: their mean is half as late as the first
        late = 2 * (mean - mean[largest]) * until_last
        return self._by_block(late * runs.k / self.launch.executed.k)

    def _by_block(self, values: Iterable[float]) -> NDArray[Any]:
        """Value of each block, from one value for each region."""
        of_regions = np.array(list(values), dtype=np.float64)
        found: NDArray[Any] = of_regions[self.plan.region_of]
        return found

    def _streams(self, k: int, blocks: Sequence[int]) -> Streams:
        """Streams of blocks at K = k, with the row pitch of A as at K itself."""
        launch, shares_tiles = self.launch.at(k), bool(self.plan.kinds)
        c = sparse_zeros((launch.executed.m, launch.executed.n), np.float32)
        bound = self.bind(k, c, is_last=False if shares_tiles else None)
        if k != self.launch.executed.k:
            bound = replace(
                bound, spread=_spread(self.launch, bound, k, launch.executed.a_elements)
            )
        streams = streams_of(bound, blocks)
        if not shares_tiles:
            return streams
        workspace = next(buffer for buffer in bound.buffers if buffer.name == "workspace")
        flags, *_ = launch.ready_words(is_last=False)
        flags_bytes = FLOAT_BYTES * flags.count
        begins = [begin for begin in (launch.copies.a, launch.copies.b) if begin is not None]
        end = min(begins, default=workspace.bytes)
        first, behind, last = (
            ceil_div(workspace.address + offset, LINE_BYTES)
            for offset in (flags.offset, flags_bytes, end)
        )
        streams = streams.with_mark(IN_L2, np.arange(behind, last))
        return streams.with_mark(FLAG, np.arange(first, behind))


def _spread(launch: RungLaunch, bound: BoundLaunch, k: int, elements: int) -> Spread:
    """Rows of A at K = k, with the pitch that they have at K itself."""
    of_a = next(buffer for buffer in bound.buffers if buffer.name == "A")
    return Spread(
        address=of_a.address,
        size_bytes=FLOAT_BYTES * elements,
        pitch=FLOAT_BYTES * k,
        kept_pitch=FLOAT_BYTES * launch.executed.k,
    )


def _replayed_k(launch: RungLaunch, *, shares_tiles: bool) -> Sequence[int]:
    """Values of K at which blocks are replayed: K itself, or two to extrapolate from."""
    k, step = launch.executed.k, period(launch.tiling)
    if not shares_tiles:
        return timed_k(k, step, launch.geometry)
    if phases := launch.order.repeats_after(launch.tiles):
        return timed_k(k, step, launch.geometry, shares=launch.tiling.depth * phases)
    return [k]


def _is_partial(launch: RungLaunch, block: int) -> bool:
    """True if the tile of a block may exceed C."""
    if not (launch.executed.m % launch.tiling.block_m or launch.executed.n % launch.tiling.block_n):
        return False
    x, y, _ = launch.geometry.grid
    return launch.variant.order is None and (block % x == x - 1 or block // x % y == y - 1)
