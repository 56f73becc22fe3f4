"""The `Execution` of a counted launch of any kernel: counters, traffic below L1, predicted time.

A few blocks that one SM would run are executed again, and their streams are replayed. They
represent all blocks of the launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from analysis.comparison.interval import with_estimates
from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from analysis.records.counters import InstructionCounts, of_traffic, totals
from analysis.records.metrics import WARP_INSTRUCTIONS
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.l2_stores import stores_that_meet
from analysis.timing.predict import predict
from analysis.timing.predicted import Explanation, Predicted, Resource
from analysis.timing.samples import Sample
from analysis.timing.work import Work
from analysis.traffic.block_schedule import drift
from analysis.traffic.l2 import Traffic
from toolkit.execution.doubts import doubts
from toolkit.execution.in_time import Waits
from toolkit.execution.launch_counts import LaunchCounts
from toolkit.execution.prediction_cache import cached_prediction, key_of
from toolkit.execution.replay import Replay, clusters_of_blocks, of_copying_blocks
from toolkit.execution.sampling import relative_half_width
from toolkit.execution.schedule import Schedule
from toolkit.execution.traffic import STORES, L2Requests, Residence, traffic_of
from toolkit.launch.launch import Execution
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.left_out import summary
from toolkit.sass.schedule_facts import ScheduleFacts, schedule_facts
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.timing_table import machine_code
from toolkit.sass.translate import Translated

# Fraction of a lifetime by which blocks must have drifted apart after the last wave. With less, L2
# still holds the data that blocks share.
LEAST_APART = 0.05
# Bounds that do not belong to a unit of the SM.
NOT_OF_THE_SM = (
    Resource.L2,
    Resource.ATOMICS,
    Resource.STORES,
    Resource.DRAM,
    Resource.LATENCY,
)
REDUCTIONS = "reduction", "atomic", "bulk reduction"


def counted_execution(
    translated: Translated,
    counts: LaunchCounts,
    geometry: Geometry,
    *,
    simulation_s: float,
    outputs: tuple[NDArray[np.generic], ...] = (),
    notes: Sequence[str] = (),
) -> Execution:
    """Execution with counters, without traffic below L1 and time."""
    kernel, found = translated.kernel, counts.estimates
    instructions = instruction_counts(translated, counts.counts)
    return Execution(
        outputs=outputs,
        geometry=geometry,
        resources=kernel.resources,
        counters=totals(instructions),
        instructions=instructions,
        basis=counts.basis,
        notes=(*summary(kernel.left_out), *notes),
        cubin=kernel,
        executed_blocks=counts.blocks,
        simulation_s=simulation_s,
        estimates={**(found.intervals if found else {}), **counts.bounds},
        unseen_share=found.unseen_share if found else None,
        uncertainty=counts.uncertainty,
        requests=counts.requests,
        check=counts.check,
    )


def modelled_execution(
    execution: Execution,
    translated: Translated,
    geometry: Geometry,
    counts: LaunchCounts,
    residence: Residence,
    *,
    explanation: Explanation = Explanation.COSTS,
) -> Execution:
    """Copy of an execution with traffic below L1 and time on a device, or why it has none."""
    device = residence.device
    launch = CountedLaunch(
        translated=translated,
        geometry=geometry,
        residence=residence,
        counts=counts,
        instructions=execution.instructions,
        explanation=explanation,
    )
    traffic, time, replayed = launch.modelled()
    execution = replace(execution, device=device)
    if isinstance(traffic, str):
        execution = replace(execution, traffic_basis=f"not modelled: {traffic}")
    else:
        execution = replace(
            execution,
            counters={**execution.counters, **of_traffic(traffic)},
            traffic_basis=f"modelled for {device.name}: {counts.traffic_basis}",
        )
    if not isinstance(time, Predicted):
        return replace(execution, prediction_basis=f"not predicted: {time}")
    if counts.uncertainty and WARP_INSTRUCTIONS in execution.estimates:
        half_width = relative_half_width(execution.estimates[WARP_INSTRUCTIONS])
        time = with_estimates(time, half_width, counts.longer(residence))
    reasons = [
        *doubts(
            translated.kernel,
            execution.instructions,
            execution.requests,
            prints=bool(execution.printed),
            is_followed=launch.is_followed,
        ),
        execution.uncertainty,
    ]
    return replace(
        execution,
        predicted=time,
        prediction_basis=f"{time.basis}{replayed}",
        uncertainty=". ".join(filter(None, reasons)),
    )


def unmodelled_execution(execution: Execution, reason: str) -> Execution:
    """Copy of an execution, with the reason why it has neither traffic below L1 nor a time."""
    return replace(
        execution,
        traffic_basis=f"not modelled: {reason}",
        prediction_basis=f"not predicted: {_of_traffic(reason)}",
    )


class Modelled(NamedTuple):
    """Traffic below L1 and time of a launch. A text in their place says why there is none."""

    traffic: Traffic | str
    time: Predicted | str
    replayed: str = ""  # text on the blocks that represent all; completes the basis of the time


@dataclass(frozen=True, kw_only=True)
class CountedLaunch:
    """A launch whose blocks are counted, on the device of its residence."""

    translated: Translated
    geometry: Geometry
    residence: Residence
    counts: LaunchCounts
    instructions: Sequence[InstructionCounts]
    explanation: Explanation = Explanation.COSTS

    @property
    def kernel(self) -> Kernel:
        return self.translated.kernel

    def modelled(self) -> Modelled:
        """Traffic and time."""
        if why := self.counts.why_no_traffic:
            return _not_modelled(why)
        asked = self.counts.asked(self._schedule)
        if isinstance(asked, str):
            return _not_modelled(asked)
        traffic = self._traffic(asked)
        try:
            time = self._time(traffic)
            if drift_per_wave := self._drift_per_wave(time):
                traffic = self._traffic(asked, drift_per_wave)
                time = self._time(traffic)
        except (ToolkitError, MemoryError) as error:
            return Modelled(traffic, str(error) or "not enough memory")
        return Modelled(traffic, time, self._stand_for)

    def _traffic(self, asked: L2Requests, drift_per_wave: float = 0.0) -> Traffic:
        """Traffic below L1 if co-resident blocks drift apart by `drift_per_wave` of a lifetime."""
        return traffic_of(
            asked,
            self.geometry,
            self._facts,
            self.instructions,
            self.residence,
            drift_per_wave=drift_per_wave,
        )

    def _time(self, traffic: Traffic) -> Predicted | str:
        """Predicted time, from the cache if it is there, or the reason why there is none."""
        device = self.residence.device
        return cached_prediction(
            {**self._key(traffic), "explanation": self.explanation},
            device,
            lambda: predict(self._work(traffic), device, self.explanation),
        )

    def _drift_per_wave(self, time: Predicted | str) -> float:
        """Fraction of a lifetime by which co-resident blocks drift apart per wave.

        0 if L2 still holds the data that blocks share, and for a launch whose blocks differ.
        """
        if isinstance(time, str) or self._schedule is not None:
            return 0.0
        per_sm, sms = self.residence.blocks_per_sm, self.residence.device.sm_count
        busiest_s = max(bound.time_s for bound in time.bounds if bound.name not in NOT_OF_THE_SM)
        slack = 1 - busiest_s * time.clock_hz / time.cycles
        found = drift(self._facts.copies, per_sm, slack)
        return found if found * self.geometry.blocks > LEAST_APART * sms * per_sm else 0.0

    def _work(self, traffic: Traffic) -> Work:
        return work_of(
            kernel=self.kernel,
            geometry=self.geometry,
            counts=self.counts.counts,
            instructions=self.instructions,
            traffic=traffic,
            residence=self.residence,
            replay=self._replay,
            sample=self._streams,
            flop=self.counts.flop(self.instructions),
            atomics=self.counts.atomics,
            stores=self.counts.stores,
            clocks_of_waits=self._waits.clocks,
        )

    def _key(self, traffic: Traffic) -> Mapping[str, object]:
        """Key that identifies the launch among all whose predictions may differ."""
        known = self.counts.key
        if known is None:
            return key_of(self._work(traffic))
        return {
            "code": sha256(self.kernel.image).hexdigest(),
            "symbol": self.kernel.symbol,
            "blocks per SM": self.residence.blocks_per_sm,
            "L2": self.residence.l2,
            "traffic": traffic.rounded,
            "replayed": self._replay,
            **known,
        }

    @cached_property
    def _waits(self) -> Waits:
        return self.counts.waits(self.kernel, self.residence)

    @property
    def is_followed(self) -> bool:
        """True unless blocks wait for each other and were not executed in time to the end.

        Of rungs this is not asked: the model knows what their blocks exchange.
        """
        return self.counts.key is not None or self._waits.is_whole

    @cached_property
    def _facts(self) -> ScheduleFacts:
        return schedule_facts(self.kernel)

    @cached_property
    def _schedule(self) -> Schedule | None:
        return self.counts.schedule(self.residence)

    @cached_property
    def _replay(self) -> Replay:
        found = self.counts.replay(self.residence, self._schedule, self.instructions)
        if prod(self.kernel.cluster) == 1:
            return found
        cluster_of = clusters_of_blocks(self.geometry.grid, self.kernel.cluster)
        return of_copying_blocks(found, self.counts.read_by_block(), cluster_of)

    @cached_property
    def _streams(self) -> Sample:
        return self.counts.sample(self.translated, self.residence, self._replay)

    @property
    def _stand_for(self) -> str:
        """Text that names the blocks that represent all, and a foreign architecture."""
        blocks, everything = self._replay.blocks, self.geometry.blocks
        if self._schedule is not None:
            said = "; blocks differ, and this SM finishes last"
        elif len(blocks) == everything:
            said = ""
        elif len(blocks) == 1:
            said = f"; block {blocks[0]} represents all {everything:,}"
        else:
            said = f"; blocks {', '.join(map(str, blocks))} represent all {everything:,}"
        compiled, device = self.kernel.architecture, self.residence.device.sm_arch
        if compiled.rstrip("af") == device:
            return said
        return f"{said}; the machine code was compiled for {compiled}, the device is {device}"


def _not_modelled(why: str) -> Modelled:
    return Modelled(why, _of_traffic(why))


def _of_traffic(why: str) -> str:
    return f"its traffic below L1 is not modelled ({why})"


def work_of(
    *,
    kernel: Kernel,
    geometry: Geometry,
    counts: NDArray[Any],
    instructions: Sequence[InstructionCounts],
    traffic: Traffic,
    residence: Residence,
    replay: Replay,
    sample: Sample,
    flop: int,
    atomics: AtomicOperations | None,
    stores: AtomicOperations | None,
    clocks_of_waits: float,
) -> Work:
    """Input of the timing model for a launch.

    `counts`, `instructions`: counts of all blocks. `sample`: streams of the blocks of `replay`.
    Bytes at L2 are those that SMs request, without transfers between partitions of L2.
    """
    stored = _sectors(instructions, STORES + REDUCTIONS)
    sent = traffic.written_sectors + _sectors(instructions, REDUCTIONS)
    weight = replay.weight
    if weight is None:
        *_, streams = sample.replayed
        executed = sum(one.executed for one in instructions)
        counted = getattr(sample, "counted", None) or streams.executed
        weight = executed / replay.busy_blocks / (counted / streams.blocks)
    return Work(
        code=machine_code(kernel, counts),
        sample=sample,
        blocks=replay.busy_blocks,
        blocks_per_sm=residence.blocks_per_sm,
        shared_bytes_per_block=kernel.resources.static_shared_bytes + geometry.dynamic_shared_bytes,
        flop=flop,
        l2_read_bytes=SECTOR_BYTES * traffic.fetched_sectors,
        l2_write_bytes=SECTOR_BYTES * sent,
        dram_read_bytes=traffic.dram_read_bytes,
        dram_write_bytes=traffic.dram_write_bytes,
        l2=residence.l2,
        code_stays=residence.code_stays,
        dram_lone_pairs=traffic.dram_lone_pairs,
        dram_lone_writes=traffic.dram_lone_writes,
        dram_fill_bytes=traffic.dram_fill_bytes,
        weight=weight,
        merged_share=traffic.merged_share,
        copies_past_l1=schedule_facts(kernel).past_l1,
        soon_shares=traffic.soon_shares,
        sent_share=sent / stored if sent else 1.0,
        exchanged=replay.exchanged,
        finish_at_different_times=replay.finish_at_different_times(kernel, geometry),
        atomics=atomics,
        stores=stores and stores_that_meet(stores),
        clocks_of_waits=clocks_of_waits,
        local_bytes_per_block=sample.replayed[0].local_bytes_per_block,
        of_sm=replay.of_sm,
        copied_for_cluster=replay.relative_reads,
        instructions=instructions,
    )


def _sectors(instructions: Sequence[InstructionCounts], actions: Sequence[str]) -> int:
    spaces = ("global", "generic")
    return sum(one.sectors for one in instructions if one.space in spaces and one.action in actions)
