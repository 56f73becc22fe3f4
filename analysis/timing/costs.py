"""Time of a launch, divided by what it is spent on and by source line.

Each part is the difference of two replays, with an effect and without it. Effects overlap: they are
removed one after the other, and each part is what the time falls by after the parts before it. The
order is that of their savings if each is removed alone, so that the first part is what a programmer
would save by removing this effect. Waiting comes after effects that save nearly as much: it is
exposed because of them. Loads wait for DRAM, L2 and L1 one after the other, and starting them
earlier hides all three, so that what they save together counts too (`rank`), but not the first
access of a launch, before which there is nothing to do. What is left is the roof, and what does not
overlap with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.sm import LOST, SCHEDULERS, Ran, Unit, side_by_side
from analysis.timing.effects import (
    ATOMICS,
    GLOBAL,
    LOADS,
    REMOVABLE,
    STORES,
    Removable,
    Scene,
    skipping,
)
from analysis.timing.l2_stores import shares_of_instructions
from analysis.timing.model_runs import ModelRuns, blocks_run, over_blocks
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.order_of_effects import farthest_first, waits_beside_sectors, without
from analysis.timing.predicted import WAITS_FOR_LOADS, Cost, Effect, LineCost, rank
from analysis.timing.samples import STEADY, Sample, Whole
from analysis.timing.sm_totals import SmTotals

THREADS = 2
AT_ROOF = 1.05  # times the roof: further effects are not removed
# If no effect saves more alone, effects that hide each other are looked for
MUCH_ALONE = 1 / 3
MUCH_LEFT = 0.05  # of the time: what is left above the roof, so that unlikely effects are removed
LEAST_LOST = 0.02  # of the clocks of the schedulers, that the reasons of an effect take
MOST_LINES, LEAST_OF_LINE = 5, 0.03
# Effects of long blocks may be ranked by what the SM does from the first of these numbers of
# instructions to the second. More instructions ranked them no better (decision 118).
RANKED_BY = (1 << 17, 3 << 17)
# Note of an effect that costs nothing
LONGER = "0: after those before it, the replay takes longer without it"
MOSTLY = 0.5  # of the work of a pipe
# Detail of the FP32 pipe, which also multiplies and copies integers (IMAD)
_INTEGER = re.compile(r"(@\S+ )?I")
OF_INTEGERS = "mostly integer products and copies"
MANY_TIMES = 4  # as many instructions: such blocks are long


@dataclass(frozen=True, kw_only=True)
class SceneTime:
    """Clocks of a launch in a scene, lower bounds on them by roof, and lost shares by reason."""

    clocks: float
    roofs: Mapping[Effect, float]
    lost: Mapping[str, float]

    @property
    def roof(self) -> float:
        return max(self.roofs.values())

    @property
    def is_at_roof(self) -> bool:
        return self.clocks <= AT_ROOF * self.roof


class Replayed(NamedTuple):
    """Totals of the SM in a replay of a sample, and lost shares of its last run by reason."""

    totals: SmTotals
    lost: Mapping[str, float]
    sample: Sample  # kept: a replay is known by the identity of its sample


@dataclass(frozen=True, kw_only=True)
class Pricing:
    """Replays of a launch with effects removed, relative to a replay of the complete model.

    `runs`: the runs that the predicted time is from. `begun` gets what `analysis.sm.end_runs` ends
    runs by. `replays`: those made so far, by `Scene.replayed_by`.
    """

    runs: ModelRuns
    base: Scene
    begun: list[Any]
    replays: dict[Hashable, Replayed] = field(default_factory=dict)

    @cached_property
    def complete(self) -> SceneTime:
        return self.time(self.base)

    def times(self, scenes: Sequence[Scene]) -> list[SceneTime]:
        """Times of the scenes, whose replays are made side by side."""
        missing = {
            key: partial(self._replayed, scene)
            for scene in scenes
            if (key := scene.replayed_by) not in self.replays
        }
        made = side_by_side(missing.values(), THREADS, self.begun)
        self.replays.update(zip(missing, made, strict=True))
        return [self.time(scene) for scene in scenes]

    def ranking_times(self, scenes: Sequence[Scene]) -> list[SceneTime]:
        """Times of the scenes to rank them by: in long blocks, from their first instructions."""
        if not self._has_long_blocks:
            return self.times(scenes)
        jobs = [partial(self._at_first, scene) for scene in (self.base, *scenes)]
        complete, *of_scenes = side_by_side(jobs, THREADS, self.begun)
        return [
            self._time(scene, found.relative_to(complete, self._complete), {})
            for scene, found in zip(scenes, of_scenes, strict=True)
        ]

    @property
    def _has_long_blocks(self) -> bool:
        sm = self.base.sm
        if not isinstance(sm.work.sample, Whole) or sm.work.of_sm:
            return False
        streams = sm.work.sample.streams
        executed = streams.executed * sm.numbers_of_blocks[0] // streams.blocks
        return executed > MANY_TIMES * RANKED_BY[-1]

    def _at_first(self, scene: Scene) -> SmTotals:
        """Totals of the SM between the two numbers of instructions in RANKED_BY."""
        sm, (streams,) = scene.sm, scene.streams
        first, second = (
            SmTotals.of(
                blocks_run(
                    sm,
                    replace(scene.machine, mark=mark, stops_at_mark=1),
                    streams,
                    sm.numbers_of_blocks[:1],
                    self.begun,
                    scene.code,
                )[0]
            )
            for mark in RANKED_BY
        )
        return second.since(first)

    def time(self, scene: Scene) -> SceneTime:
        found, lost, _ = self._replay(scene)
        return self._time(scene, found, lost)

    def _time(self, scene: Scene, found: SmTotals, lost: Mapping[str, float]) -> SceneTime:
        """Time of a scene whose replay has the totals `found`."""
        spread = scene.sm.work.relative_work(scene.sm.device) if scene.is_spread else 1.0
        totals = found.relative_to(self._complete, self.runs.replayed).times(1 / spread)
        l2, dram = (time_s * scene.sm.clock_hz for time_s in scene.below_l1_s)
        issue, fp32 = (
            (totals.issued + totals.written_slots) / SCHEDULERS,
            totals.multiply_adds / SCHEDULERS / scene.sm.constants.fma_halves,
        )
        roofs = {
            Effect.OTHER_INSTRUCTIONS: issue,
            Effect.FP32_PIPE: fp32,
            Effect.DRAM_BANDWIDTH: dram,
            Effect.L2_BANDWIDTH: max(l2, totals.stores, totals.lookups),
            Effect.SHARED_WAVEFRONTS: totals.bound_by_shared,
            Effect.L1_WAVEFRONTS: totals.bound_by_l1,
            Effect.INTEGER_PIPE: totals.products / SCHEDULERS,
            Effect.LOGIC_PIPE: totals.logic / SCHEDULERS,
            Effect.FP64_PIPE: totals.double / SCHEDULERS,
            Effect.FP16_PIPE: totals.half / SCHEDULERS,
            Effect.SPECIAL_PIPE: totals.special / SCHEDULERS,
            Effect.TENSOR_PIPE: totals.tensor / SCHEDULERS,
        }
        clocks = totals.clocks * (1 + (self.runs.slowdown if scene.is_coupled else 0))
        least = max(totals.load_store, totals.shared, totals.constants, issue, l2, dram)
        least = max(least, self.runs.clocks_with_atomics(totals.clocks, scene.atomics_share))
        if self.runs.stores is not None:
            stores_s = scene.stores_share * self.runs.stores.time_s
            least = max(least, stores_s * scene.sm.clock_hz)
        if scene.waits_for_blocks:
            least = max(least, scene.sm.work.clocks_of_waits)
        return SceneTime(clocks=max(clocks, least), roofs=roofs, lost=lost)

    @cached_property
    def _complete(self) -> SmTotals:
        return self._replay(self.base).totals

    @property
    def is_of_steady_sample(self) -> bool:
        """False if the complete blocks take another time than this sample of them says.

        Then transients of the sample are extrapolated, and differences of its replays mean nothing.
        """
        own = self._complete.clocks * self.base.sm.work.weight
        return abs(own - self.runs.replayed.clocks) <= STEADY * self.runs.replayed.clocks

    def _replay(self, scene: Scene) -> Replayed:
        key = scene.replayed_by
        if key not in self.replays:
            self.replays[key] = self._replayed(scene)
        return self.replays[key]

    def _replayed(self, scene: Scene) -> Replayed:
        sm, numbers = scene.sm, scene.sm.numbers_of_blocks
        return _replayed_in(
            sm,
            [
                blocks_run(sm, scene.machine, streams, numbers, self.begun, scene.code)
                for streams in sm.work.sample.longest
            ],
        )


def _replayed_in(sm: ModelledSm, of_blocks: Sequence[tuple[Ran, ...]]) -> Replayed:
    """The replay that these runs of `sm` are, the shortest streams first."""
    last, sample = of_blocks[-1][-1], sm.work.sample
    of_all = SCHEDULERS * max(1, last.clocks)
    return Replayed(
        totals=sample.extended([over_blocks(sm, ran) for ran in of_blocks]),
        lost={name: last.lost[name] / of_all for name in LOST},
        sample=sample,
    )


def pricing_of(runs: ModelRuns, sm: ModelledSm, begun: list[Any]) -> Pricing:
    """Pricing of a launch by replays of `sm`, which has the sample of `runs` or a shorter one.

    `begun` gets what `analysis.sm.end_runs` ends runs by. The complete model has run already,
    unless `sm` has another sample.
    """
    base = Scene(sm=sm, code=sm.code)
    pricing = Pricing(runs=runs, base=base, begun=begun)
    if sm.work.sample is runs.sm.work.sample:
        pricing.replays[base.replayed_by] = _replayed_in(sm, runs.of_blocks)
    return pricing


def costs_of(pricing: Pricing, *, ranks_briefly: bool = False) -> tuple[Cost, ...]:
    """Parts of the time of a launch.

    `ranks_briefly`: effects of long blocks are ranked by a part of each block, so that `alone_s` is
    less exact than the parts.
    """
    runs, sm = pricing.runs, pricing.base.sm
    base, before, hz = pricing.base, pricing.complete, runs.sm.clock_hz
    present = [one for one in REMOVABLE if one.is_present(base)]
    likely = [one for one in present if _may_matter(one, base, before)]
    alone = [one.removed(base) for one in likely]
    loads = [one for one in likely if one.effect in WAITS_FOR_LOADS]
    times_of = pricing.ranking_times if ranks_briefly else pricing.times
    times = times_of([*alone, without(loads, base)])
    *savings, of_loads = [max(0.0, before.clocks - one.clocks) for one in times]
    saved = {one.effect: saving for one, saving in zip(likely, savings, strict=True)}
    first = {one.effect: _clocks_of_access(one.effect, sm) for one in loads}
    together = {one.effect: max(0.0, of_loads - sum(first.values())) for one in loads}

    def worth(one: Removable) -> tuple[float, float]:
        own = max(0.0, saved[one.effect] - first.get(one.effect, 0.0))
        return rank(one.effect, own, together.get(one.effect, 0.0)), own

    order = farthest_first(sorted(likely, key=worth, reverse=True), saved)
    shared: list[Removable] = []
    if max(savings, default=0.0) < MUCH_ALONE * before.clocks:
        shared = waits_beside_sectors(
            present,
            lambda scene: before.clocks - pricing.time(scene).clocks,
            base,
            saved,
            of_loads,
        )
        order = [*shared, *(one for one in order if one not in shared)]
    order += [one for one in present if one not in order]
    scene, now, clocks = base, before, before.clocks
    costs = []
    for one in order:
        is_much_left = clocks - now.roof > MUCH_LEFT * before.clocks
        is_unlikely = one not in likely and one not in shared
        if not (one in shared or _may_matter(one, scene, now) or (is_much_left and is_unlikely)):
            continue
        is_first = scene is base and one in likely
        scene = alone[likely.index(one)] if is_first else one.removed(scene)
        now = pricing.time(scene)
        part = max(0.0, clocks - now.clocks)
        alone_clocks = part if is_first else saved.get(one.effect, 0.0)
        if now.clocks != clocks:
            detail = LONGER if now.clocks > clocks else _detail(one.effect, runs.sm)
            costs.append((one.effect, part, alone_clocks, detail))
        clocks = min(clocks, now.clocks)
    for effect, part in _at_roof(now, clocks):
        if part > 0:
            detail = {
                Effect.SPECIAL_PIPE: lambda: _of_conversions(base),
                Effect.FP32_PIPE: lambda: _of_integers(base),
                Effect.REMAINDER: lambda: _beside_roof(now, hz),
            }.get(effect, str)()
            costs.append((effect, part, 0.0, detail))
    launch_s = runs.sm.constants.launch_s
    return (
        *(
            Cost(
                effect=e,
                time_s=part / hz,
                alone_s=a / hz,
                together_s=together.get(e, 0.0) / hz,
                first_s=first.get(e, 0.0) / hz,
                detail=detail,
            )
            for e, part, a, detail in costs
        ),
        Cost(effect=Effect.LAUNCH, time_s=launch_s, alone_s=0.0),
    )


def _clocks_of_access(effect: Effect, sm: ModelledSm) -> float:
    """Clocks that the first access of a launch waits for DRAM, L2 or L1."""
    machine = sm.machine
    return {
        Effect.DRAM_LATENCY: machine.dram_latency + machine.dram_start,
        Effect.L2_LATENCY: machine.l2_latency,
        Effect.L1_LATENCY: machine.l1_latency,
    }[effect]


def _detail(effect: Effect, sm: ModelledSm) -> str:
    """Reason for an effect in words, empty if its name says it all."""
    if effect != Effect.IDLE_SMS:
        return ""
    blocks, sms = sm.work.blocks, sm.device.sm_count
    if blocks < sms:
        return f"{sms - blocks} of {sms} SMs have no block"
    if sm.work.of_sm:
        return "blocks take different times"
    return f"up to {sm.blocks:,} of {blocks:,} blocks per SM"


def _of_conversions(scene: Scene) -> str:
    """Main work of the special-function pipe, if it converts between FP32 and FP64."""
    if not scene.instructions:
        return ""
    executed = (scene.code["unit"] == Unit.XU) * scene.of_each(lambda one: one.executed)
    of_fp64 = scene.of_each(lambda one: one.text.startswith("F2F") and ".F64" in one.text)
    share = (executed * of_fp64).sum() / max(1.0, executed.sum())
    return "mostly conversions between FP32 and FP64" if share > MOSTLY else ""


def _of_integers(scene: Scene) -> str:
    """Name of what the FP32 pipe mostly does, empty if that is FP32 arithmetic."""
    if not scene.instructions:
        return ""
    unit = scene.code["unit"]
    on_pipe = (unit == Unit.FMA) | (unit == Unit.FMA_HEAVY) | (unit == Unit.FMA_WIDE)
    executed = on_pipe * scene.of_each(lambda one: one.executed)
    integers = scene.of_each(lambda one: bool(_INTEGER.match(one.text)))
    share = (executed * integers).sum() / max(1.0, executed.sum())
    return OF_INTEGERS if share > MOSTLY else ""


def _named_roof(time: SceneTime) -> Effect:
    """The roof that is named: a pipe or memory if it is nearly as busy as the schedulers."""
    issue = Effect.OTHER_INSTRUCTIONS
    roof = max((one for one in time.roofs if one != issue), key=lambda one: time.roofs[one])
    return issue if AT_ROOF * time.roofs[roof] < time.roofs[issue] else roof


def _at_roof(time: SceneTime, clocks: float) -> Iterator[tuple[Effect, float]]:
    """The roof of a scene, and the clocks that are left."""
    issue, roof = Effect.OTHER_INSTRUCTIONS, _named_roof(time)
    bound = min(clocks, time.roofs[roof])
    if roof == issue:
        fp32 = min(bound, time.roofs[Effect.FP32_PIPE])
        yield Effect.FP32_PIPE, fp32
        yield roof, bound - fp32
    else:
        yield roof, bound
    yield Effect.REMAINDER, clocks - bound


def _beside_roof(time: SceneTime, hz: float) -> str:
    """Unit that needs the most time beside the roof, in words."""
    roof = _named_roof(time)
    others = {effect: clocks for effect, clocks in time.roofs.items() if effect != roof and clocks}
    if not others:
        return ""
    effect = max(others, key=lambda one: others[one])
    words = "issue slots" if effect == Effect.OTHER_INSTRUCTIONS else effect
    return f"{words}, busy for {1e6 * others[effect] / hz:,.1f} µs, overlap only in part"


def _may_matter(one: Removable, scene: Scene, time: SceneTime) -> bool:
    """False if the time without an effect is known to be the same, up to a negligible part."""
    if one.most_clocks is not None and one.most_clocks(scene) < LEAST_LOST * time.clocks:
        return False
    if one.moves_roof:
        return True
    if time.is_at_roof:
        return False
    return not one.reasons or sum(time.lost[name] for name in one.reasons) >= LEAST_LOST


def line_costs(pricing: Pricing) -> tuple[LineCost, ...]:
    """Time that each of the most expensive source lines costs, the rest last. See `costs_of`."""
    runs = pricing.runs
    atomics, stores = (
        found.time_s * runs.sm.clock_hz / pricing.complete.clocks if found is not None else 0.0
        for found in (runs.atomics, runs.stores)
    )
    rows = _rows_of_lines(pricing.base, atomics, stores)

    def without(lines: Sequence[tuple[str, int]]) -> Scene:
        return without_lines(pricing.base, np.concatenate([rows[line] for line in lines]))

    alone = dict(zip(rows, pricing.times([without([line]) for line in rows]), strict=True))
    order = sorted(rows, key=lambda line: alone[line].clocks)
    of_first = pricing.times([without(order[: n + 1]) for n in range(len(order))])
    clocks, hz, costs = pricing.complete.clocks, runs.sm.clock_hz, []
    for (file, line), after in zip(order, of_first, strict=True):
        costs.append(LineCost(file=file, line=line, time_s=max(0.0, clocks - after.clocks) / hz))
        clocks = min(clocks, after.clocks)
    rest_s = clocks / hz + runs.sm.constants.launch_s
    return (*costs, LineCost(file=None, line=None, time_s=rest_s))


def _rows_of_lines(
    scene: Scene, atomics_share: float, stores_share: float
) -> dict[tuple[str, int], Any]:
    """Indices of the instructions of the lines that may cost most.

    `atomics_share`, `stores_share`: of the time that L2 needs for atomic operations and for stores
    that meet, however few instructions.
    """
    rows: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row, one in enumerate(scene.instructions):
        if one.charged is not None and one.executed:
            rows[one.charged].append(row)
    shares = np.zeros(len(scene.instructions))
    for name in ("executed", "sectors", "wavefronts"):
        values = np.array([getattr(one, name) for one in scene.instructions], dtype=np.float64)
        shares = np.maximum(shares, values / max(values.sum(), 1.0))
    operations = _sectors_of(scene, ATOMICS)
    shares = np.maximum(shares, atomics_share * operations / max(operations.sum(), 1.0))
    if scene.sm.work.stores is not None:
        meeting = shares_of_instructions(scene.sm.work.stores, len(shares))
        shares = np.maximum(shares, stores_share * meeting)
    share = {line: shares[those].sum() for line, those in rows.items()}
    largest = sorted(share, key=lambda line: -share[line])[:MOST_LINES]
    return {line: np.array(rows[line]) for line in largest if share[line] >= LEAST_OF_LINE}


def _sectors_of(scene: Scene, actions: tuple[str, ...]) -> NDArray[np.float64]:
    """For each instruction, its sectors if it makes one of these accesses to global memory."""
    return scene.of_each(
        lambda one: one.sectors if one.action in actions and one.space in GLOBAL else 0
    )


def without_lines(scene: Scene, rows: Any) -> Scene:
    """Scene without these instructions, and without their share of the work of L2 and DRAM."""
    work, skipped = scene.sm.work, np.zeros(len(scene.code))
    skipped[rows] = 1

    def left(actions: tuple[str, ...]) -> float:
        """Share of the sectors of some accesses to global memory that other lines access."""
        sectors = _sectors_of(scene, actions)
        return 1 - (sectors * skipped).sum() / sectors.sum() if sectors.sum() else 1.0

    reads, writes = left(LOADS), left(STORES)
    changed = replace(
        work,
        l2_read_bytes=work.l2_read_bytes * reads,
        dram_read_bytes=work.loaded_from_dram * reads + work.dram_fill_bytes * writes,
        l2_write_bytes=work.l2_write_bytes * writes,
        dram_write_bytes=work.dram_write_bytes * writes,
        dram_fill_bytes=work.dram_fill_bytes * writes,
        dram_lone_pairs=work.dram_lone_pairs * max(reads, writes),
        dram_lone_writes=work.dram_lone_writes * writes,
    )
    meeting_left = 1.0
    if work.stores is not None:
        meeting_left -= float(shares_of_instructions(work.stores, len(skipped)) @ skipped)
    without = replace(
        scene,
        sm=replace(scene.sm, work=changed),
        atomics_share=left(ATOMICS),
        stores_share=meeting_left,
    )
    return skipping(without, skipped)
