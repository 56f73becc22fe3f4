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
from toolkit.execution.accesses import AT_ONCE
from toolkit.execution.footprint import Footprint
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
from toolkit.execution.rung_accesses import RungAccesses
from toolkit.execution.rung_plan import (
    BlockPlan,
    period,
    timed_k,
)
from toolkit.execution.schedule import Schedule, lifetimes_of
from toolkit.execution.traffic import L2Requests, Residence
from toolkit.launch.host_resources import sparse_zeros
from toolkit.rungs.launch import RungLaunch
from toolkit.sass.accesses import Below
from toolkit.sass.bound_launch import BoundLaunch, Spread
from toolkit.sass.translate import Translated

Counts = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class BlockRuns:
    """Results of blocks at one K: counts of the members of each group, and verdicts on their tiles.

    Of the first member of each group, `below` holds the requests to L2, `footprints` the accesses
    to global memory, and `work` the instructions (core.WORK, an array of one block). `requests`:
    the first request of each instruction, in the first member of the first group. `checked`: number
    of blocks whose tiles of C have verdicts. `exchanging`: all blocks of the launch, if they ran
    together and exchange data.
    """

    k: int
    groups: Sequence[Sequence[Counts]] = ()
    verdicts: Sequence[Check] = ()
    below: Sequence[Below] = ()
    work: Sequence[NDArray[Any]] = ()
    footprints: Sequence[Footprint] = ()
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
    the largest K at which a block of each region was executed. `footprints`: accesses of a block of
    each region at K itself. `exchanging`: all blocks, if they ran together at K itself and exchange
    data.
    """

    launch: RungLaunch
    bind: Callable[..., BoundLaunch]
    plan: BlockPlan
    below: Below | None
    runs: BlockRuns
    footprints: Sequence[Footprint] = ()
    exchanging: RecordedBlocks | None = None

    @property
    def why_no_traffic(self) -> str:
        return "too many lines are accessed; take a smaller shape" if self.below is None else ""

    @property
    def traffic_basis(self) -> str:
        if self.exchanging is not None:
            return lines_basis("were recorded")
        return lines_basis("follow from those of executed blocks")

    def asked(self, schedule: Schedule | None) -> L2Requests | str:
        if self.exchanging is not None:
            return self.exchanging.asked()
        assert self.below is not None
        lifetimes = self._lifetimes if schedule is None else schedule.lifetimes
        return L2Requests(
            below=self.below,
            lifetimes=lifetimes,
            in_time=partial(
                self._accesses.in_time,
                lifetimes,
                typical_steps=schedule.typical_steps if schedule else None,
            ),
            starts=None if schedule is None else schedule.start,
        )

    @cached_property
    def _accesses(self) -> RungAccesses:
        return RungAccesses(
            self.launch, self.footprints, self.plan.region_of, waits=bool(self.launch.order.kinds)
        )

    @property
    def _lifetimes(self) -> NDArray[Any]:
        """Lifetime of each block, relative to a typical one, or 1 if blocks share no tiles.

        It is 0 for a block that exits at once.
        """
        work = (
            np.concatenate(self.runs.work)[self.plan.region_of] if self.work is None else self.work
        )
        found = lifetimes_of(work)
        usual = found if self.launch.order.kinds else 1.0
        return np.where(found > AT_ONCE, usual, 0.0)

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
            bytes=self._accesses.sums_bytes,
            writers=self._accesses.sums_writers,
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

    def read_by_block(self) -> NDArray[Any]:
        return self._by_block(asked.read for asked in self.runs.below)

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
