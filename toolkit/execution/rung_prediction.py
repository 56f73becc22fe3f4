"""Traffic below L1 and time of a rung, from the executed blocks of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256

import numpy as np

from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from analysis.records.counters import InstructionCounts
from analysis.sm import FLAG, IN_L2, LINE_BYTES, Streams
from analysis.timing.blocks_of_sm import blocks_to_run, most_blocks
from analysis.timing.predicted import Predicted, Resource
from analysis.timing.samples import AlongK, Sample, Whole
from analysis.timing.work import Work
from analysis.traffic.block_schedule import drift
from analysis.traffic.gemm_accesses import gemm_accesses, sums_bytes
from analysis.traffic.l2 import Traffic
from kernels.closed_forms import pieces_of_c
from toolkit.execution.block_plan import period, timed_k
from toolkit.execution.predict import (
    cached_prediction,
    finish_at_different_times,
    streams_of,
    work_of,
)
from toolkit.execution.replay import (
    ExchangingBlocks,
    Replay,
    blocks_of_busiest_sm,
    first_blocks,
)
from toolkit.execution.rung_execution import PlanExecutor, Proven
from toolkit.execution.traffic import Asked, Residence, traffic_of
from toolkit.launch.host_resources import sparse_zeros
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.launch import RungLaunch
from toolkit.sass.accesses import Below
from toolkit.sass.machine import Bound, Spread
from toolkit.sass.schedule_facts import schedule_facts

LEAST_APART = 0.05  # of a lifetime, after the last wave: L2 keeps what blocks share below that
# Bounds that do not belong to a unit of the SM
NOT_OF_THE_SM = (Resource.L2, Resource.DRAM, Resource.LATENCY)


@dataclass(frozen=True, kw_only=True)
class RungModel:
    """Model of a rung, after its plan was executed, on the device of its residence."""

    executor: PlanExecutor
    proven: Proven
    residence: Residence
    instructions: Sequence[InstructionCounts]

    @property
    def launch(self) -> RungLaunch:
        return self.executor.launch

    @property
    def kernel(self) -> Kernel:
        return self.executor.translated.kernel

    def modelled(self) -> tuple[Traffic | None, Predicted | str]:
        """Traffic below L1 and time, or the reason why there is none."""
        if self.proven.below is None:
            return None, "its traffic below L1 is not known"
        traffic = self._traffic(self.proven.below)
        if self.launch.order.kinds and not self.proven.plan.kinds:
            return traffic, "which of its blocks stand for those that share tiles is not known"
        time = self._predicted(traffic)
        if drift_per_wave := self._drift_per_wave(time):
            traffic = self._traffic(self.proven.below, drift_per_wave)
            time = self._predicted(traffic)
        return traffic, time

    def _traffic(self, asked: Below, drift_per_wave: float = 0.0) -> Traffic:
        """Traffic below L1 if co-resident blocks drift apart by `drift_per_wave` of a lifetime."""
        launch, geometry = self.launch, self.launch.geometry
        pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
        of_all = Asked(
            below=asked,
            lifetimes=pieces.lifetimes(geometry.blocks),
            in_time=partial(gemm_accesses, launch.tiling, launch.executed, pieces),
        )
        facts = schedule_facts(self.kernel)
        return traffic_of(
            of_all,
            geometry,
            facts,
            self.instructions,
            self.residence,
            drift_per_wave=drift_per_wave,
        )

    def _drift_per_wave(self, time: Predicted | str) -> float:
        """Fraction of a lifetime by which co-resident blocks drift apart per wave.

        0 if it is so small that L2 keeps the data that they share.
        """
        if isinstance(time, str):
            return 0.0
        per_sm, sms = self.residence.blocks_per_sm, self.residence.device.sm_count
        busiest_s = max(bound.time_s for bound in time.bounds if bound.name not in NOT_OF_THE_SM)
        slack = 1 - busiest_s * time.clock_hz / time.cycles
        found = drift(schedule_facts(self.kernel).copies, per_sm, slack)
        return found if found * self.proven.plan.blocks > LEAST_APART * sms * per_sm else 0.0

    def _predicted(self, traffic: Traffic) -> Predicted | str:
        launch = {
            "code": sha256(self.kernel.image).hexdigest(),
            "symbol": self.kernel.symbol,
            "shape": self.launch.executed,
            "flop": self.launch.problem.flop,
            "parameters": sorted(self.launch.parameters.items()),
            "blocks per SM": self.residence.blocks_per_sm,
            "traffic": traffic.rounded,
            "replayed": self._replay,
        }
        return cached_prediction(launch, self.residence.device, lambda: self._work(traffic))

    @cached_property
    def _replay(self) -> Replay:
        launch, plan = self.launch, self.proven.plan
        blocks, k, step = launch.geometry.blocks, launch.executed.k, period(launch.tiling)
        sms, per_sm = self.residence.device.sm_count, self.residence.blocks_per_sm
        if not plan.kinds:
            found = first_blocks(blocks, sms, partial(_is_partial, launch))
            points = timed_k(k, step, launch.geometry)
            return replace(
                found, busy_blocks=launch.busy_blocks, points=points, weight=self._weight
            )
        idle = blocks - launch.busy_blocks  # the first blocks
        pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
        runs = self.proven.runs
        exchanging = ExchangingBlocks(
            first=idle,
            sharing=sum(kind.population for kind in plan.kinds if not kind.is_alone) - idle,
            work=self.proven.by_block(counts["executed"].sum() for counts, *_ in runs.groups),
            reads=self.proven.by_block(asked.read for asked in runs.below),
            bytes=float((pieces.ends < 1).sum() * sums_bytes(launch.tiling)),
            writers=int(pieces.leaves_sums.sum()),
        )
        points = [k]
        if phases := launch.order.repeats_after(launch.tiles):
            points = timed_k(k, step, launch.geometry, shares=launch.tiling.depth * phases)
        return blocks_of_busiest_sm(exchanging, sms, per_sm, points)

    def _work(self, traffic: Traffic) -> Work:
        launch, replay = self.launch, self._replay
        of_sm = most_blocks(
            launch.busy_blocks,
            self.residence.device.sm_count,
            self.residence.blocks_per_sm,
            finish_at_different_times=finish_at_different_times(
                self.kernel, launch.geometry, replay
            ),
        )
        kind = AlongK if len(replay.points) > 1 else Whole
        count = max(
            blocks_to_run(
                of_sm,
                self.residence.blocks_per_sm,
                unlike=replay.exchanged.unlike,
                waves=kind.most_waves,
            )
        )
        return work_of(
            self.kernel,
            launch.geometry,
            self.proven.counts,
            self.instructions,
            traffic,
            self.residence,
            replay,
            self._sample(replay.points, replay.blocks[:count]),
            launch.problem.flop,
        )

    @property
    def _weight(self) -> float:
        """Instructions of an average block with work, relative to a replayed one."""
        executed = sum(one.executed for one in self.instructions)
        return executed / self.launch.busy_blocks / self.proven.typical

    def _sample(self, points: Sequence[int], blocks: Sequence[int]) -> Sample:
        at = {k: self._streams(k, blocks) for k in points}
        if len(points) == 1:
            return Whole(streams=at[points[0]])
        return AlongK(at=at, k=self.launch.executed.k)

    def _streams(self, k: int, blocks: Sequence[int]) -> Streams:
        """Streams of blocks at K = k, with the row pitch of A as at K itself."""
        launch, shares_tiles = self.launch.at(k), bool(self.proven.plan.kinds)
        c = sparse_zeros((launch.executed.m, launch.executed.n), np.float32)
        bound = self.executor.bound(k, c, is_last=False if shares_tiles else None)
        if k != self.launch.executed.k:
            bound = replace(bound, spread=self._spread(bound, k, launch.executed.a_elements))
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

    def _spread(self, bound: Bound, k: int, elements: int) -> Spread:
        of_a = next(buffer for buffer in bound.buffers if buffer.name == "A")
        return Spread(
            address=of_a.address,
            size_bytes=FLOAT_BYTES * elements,
            pitch=FLOAT_BYTES * k,
            kept_pitch=FLOAT_BYTES * self.launch.executed.k,
        )


def _is_partial(launch: RungLaunch, block: int) -> bool:
    """True if the tile of a block may exceed C."""
    if not (launch.executed.m % launch.tiling.block_m or launch.executed.n % launch.tiling.block_n):
        return False
    x, y, _ = launch.geometry.grid
    return launch.variant.order is None and (block % x == x - 1 or block // x % y == y - 1)
