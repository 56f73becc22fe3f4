"""Execution of the blocks of a rung's plan, and proof that they represent all blocks.

The elements of C that executed blocks write are compared with a float64 reference, as on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import LaunchError
from analysis.geometry import WARP_SIZE
from analysis.problem import Gemm
from analysis.records.counters import totals
from analysis.rounding import Check
from kernels.closed_forms import tiles_of_c
from toolkit.execution.accesses import MOST_ACCESSES
from toolkit.execution.declared import BlockRuns, DeclaredCounts
from toolkit.execution.footprint import Footprint, Recorder, extrapolated
from toolkit.execution.recorded_blocks import blocks_that_exchange
from toolkit.execution.representatives import agree, of_blocks
from toolkit.execution.rung_binding import bind_in_place
from toolkit.execution.rung_plan import (
    DIFFER,
    KINDS_DIFFER,
    NOT_AFFINE,
    BlockKind,
    BlockPlan,
    listed,
    rung_plans,
)
from toolkit.launch.host_resources import blas_on_one_thread, sparse_zeros
from toolkit.launch.progress import FinishedBlocks
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.inputs import ANCHOR_BYTES, LadderInputs, input_bytes
from toolkit.rungs.launch import RungLaunch
from toolkit.rungs.matrices import Matrix, Tile
from toolkit.sass.accesses import Below
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.faults import MOST_INSTRUCTIONS, describe
from toolkit.sass.machine import FaultError, Run, one_by_one, run_blocks
from toolkit.sass.requests import first_requests
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated

Counts = NDArray[Any]

# Guarded instructions (corrections of divisions) that may differ between blocks of one kind.
MOST_GUARDS = 16
ADDITIONS = ("IADD3", "IADD", "VIADD")  # opcodes of these instructions
# The limit of instructions stops an endless loop in a rung under development. It is a multiple of
# the closed forms that no correct rung approaches, plus a minimum for the smallest shapes.
EXCESS = 32
FEWEST_INSTRUCTIONS = 10**7
ENDLESS = f"{EXCESS} times the number by its closed forms: an endless loop?"


class PlanExecutor:
    """Executor of the blocks of one rung, on the inputs of its ladder."""

    def __init__(
        self, ladder: LadderInputs, translated: Translated, launch: RungLaunch, *, notes: bool
    ) -> None:
        """`notes`: record the accesses of the blocks."""
        self.ladder, self.translated, self.launch = ladder, translated, launch
        self.most_accesses = MOST_ACCESSES if notes else 0

    def counted(self) -> DeclaredCounts:
        """Counts by the first plan whose proof holds."""
        why = ""
        for plan in rung_plans(self.launch, self.has_room):
            found = self._counts_of_kinds(plan) if plan.kinds else self._counts_of_regions(plan)
            if isinstance(found, DeclaredCounts):
                return replace(found, basis=found.basis + why)
            why = found + why
        raise AssertionError("the last plan needs no proof")

    def has_room(self) -> bool:
        """True if there is memory to verify an extrapolation with blocks at K itself."""
        executed = self.launch.executed
        return input_bytes(executed) <= ANCHOR_BYTES and self.ladder.has_room(executed)

    def _counts_of_regions(self, plan: BlockPlan) -> DeclaredCounts | str:
        """Counts from blocks that do not wait for others, or why they do not represent all."""
        k = self.launch.executed.k
        *before, last = plan.points or [k]
        runs = [self._execute(point, plan.members, places=False) for point in before]
        runs.append(self._execute(last, plan.members))
        if not all(run.alike for run in runs):
            return "" if plan.points else DIFFER
        of_regions = [counts for counts, *_ in runs[0].groups]
        work, looked_at = runs[0].work, runs
        if plan.points:
            at_k = self._execute(k, [plan.regions[n].members[-1:] for n in plan.anchors])
            extrapolated = _extrapolated_counts(plan, runs, at_k)
            if extrapolated is None:
                return NOT_AFFINE
            of_regions, looked_at = extrapolated, [at_k, *runs]
            work = _extrapolated_work(runs[0], runs[-1], k)
        found = self._declared(plan, of_regions, runs, looked_at, work)
        if plan.points and not _meets(found.footprints, plan.anchors, at_k.footprints):
            return NOT_AFFINE
        if self.launch.order.kinds:  # blocks that wait have no schedule by their work alone
            return found
        return replace(found, work=np.concatenate(work)[plan.region_of])

    def _counts_of_kinds(self, plan: BlockPlan) -> DeclaredCounts | str:
        """Counts from blocks of each kind alone, or why they do not represent all.

        At the same time, the first blocks run together in another thread.
        """
        stop = Event()
        with ThreadPoolExecutor(1) as pool:  # blocks run together take turns on one core
            together = pool.submit(self._together, plan.together, plan.together_k, stop)
            try:
                run = self._served(plan.kinds)
                proof = together.result()
            except BaseException:
                stop.set()
                raise
        if not all(map(_agree_but_for_guards, run.groups)):
            return KINDS_DIFFER
        of_kinds = [counts for counts, *_ in run.groups]
        looked_at = [proof] if proof.checked == plan.blocks else [run, proof]
        found = self._declared(plan, of_kinds, [run], looked_at, run.work)
        executed = [counts for group in run.groups for counts in group]
        guards = _guards_of_divisions(self.translated.kernel, executed)
        found = replace(found, bounds=_bounds(self.translated, found.counts, guards))
        if (proof.checked, proof.k) != (plan.blocks, run.k):
            return found
        ((counts,),) = proof.groups
        if not _agree_but_for_guards([found.counts, counts]):  # `counts` include spin-wait polls
            return found
        basis = f"{of_blocks(plan.blocks, plan.blocks)} executed together"
        return replace(found, counts=counts, blocks=plan.blocks, basis=basis, bounds={})

    def _declared(
        self,
        plan: BlockPlan,
        of_regions: Sequence[Counts],
        runs: Sequence[BlockRuns],
        looked_at: Sequence[BlockRuns],
        work: Sequence[NDArray[Any]],
    ) -> DeclaredCounts:
        """Counts of all blocks, from the counts and the work of one block of each region.

        Requests to L2 are extrapolated linearly from the first two values of K.
        """
        populations = [region.population for region in plan.regions]
        total = np.zeros_like(of_regions[0])
        for counts, population in zip(of_regions, populations, strict=True):
            for name in total.dtype.names or ():
                total[name] += counts[name] * np.uint64(population)
        asked = summed(runs[0].below, populations)
        if plan.points and asked is not None:
            high = summed(runs[1].below, populations)
            steps = (self.launch.executed.k - runs[0].k) // (runs[1].k - runs[0].k)
            asked = None if high is None else asked + (high + asked.times(-1)).times(steps)
        last = runs[-1]
        longer = [
            float(at_k["longest"][0]) - float(low["longest"][0])
            for at_k, low in zip(work, last.work, strict=True)
        ]
        footprints = [
            extrapolated(one, last.k, self.launch, more)
            for one, more in zip(last.footprints, longer, strict=False)
        ]
        return DeclaredCounts(
            launch=self.launch,
            bind=self.bound,
            again=self._bound_again,
            plan=plan,
            blocks=plan.executed,
            basis=plan.basis,
            counts=total,
            check=self._verdict(looked_at),
            below=asked,
            # at the smallest K, loops of a pipeline of phases may not begin
            requests=max((run.requests for run in runs), key=len),
            runs=last,
            footprints=footprints,
            exchanging=looked_at[-1].exchanging,
        )

    def _verdict(self, runs: Sequence[BlockRuns]) -> Check:
        """Common verdict on all runs, which names the blocks checked at K itself and at small K."""
        k, blocks = self.launch.executed.k, self.launch.geometry.blocks
        at_k = [of_blocks(run.checked, blocks) for run in runs if run.k == k and run.checked]
        small = [run for run in runs if run.k != k]
        looked_at = at_k
        if small:
            checked = small[0].checked
            said = f"{checked:,}" if at_k else of_blocks(checked, blocks)
            looked_at = [*at_k, f"{said} at K = {listed([run.k for run in small])}"]
        where = f"on {', and on '.join(looked_at)}"
        return merged([verdict for run in runs for verdict in run.verdicts], where)

    def _served(self, kinds: Sequence[BlockKind]) -> BlockRuns:
        """Run blocks of each kind alone, with all data that they wait for provided.

        For the last block of the launch, this data says that all other blocks are done.
        """
        parts = [
            self._execute(
                self.launch.executed.k,
                [kind.members for kind in chosen],
                owners=[b for kind in chosen if kind.is_alone for b in kind.members],
                is_last=chosen[0].is_last,
            )
            for is_last in (False, True)
            if (chosen := [kind for kind in kinds if kind.is_last == is_last])
        ]
        return BlockRuns(
            k=self.launch.executed.k,
            groups=[group for part in parts for group in part.groups],
            verdicts=[verdict for part in parts for verdict in part.verdicts],
            below=[one for part in parts for one in part.below],
            footprints=[one for part in parts for one in part.footprints],
            work=[one for part in parts for one in part.work],
            requests=parts[0].requests,
            checked=sum(part.checked for part in parts),
        )

    def _together(self, blocks: int, k: int, stop: Event) -> BlockRuns:
        """Run the first blocks together at K = k, and check the elements that they write."""
        if not blocks:
            return BlockRuns(k=k)
        launch = self.launch.at(k)
        tiles = _tiles(launch, range(blocks))
        c = _poisoned(launch.executed, tiles)
        bound = self.bound(k, c)
        is_whole = (blocks, k) == (launch.geometry.blocks, self.launch.executed.k)
        if is_whole:
            bound = replace(bound, most_accesses=self.most_accesses, notes_work=True)
        (run,) = self._run(bound, [range(blocks)], blocks, stop)
        with blas_on_one_thread():
            workload = self.ladder.at(launch.problem.k)
            verdicts = workload.check_tiles(c, tiles, self.launch.tiling.product_error)
        return BlockRuns(
            k=k,
            groups=[[run.counts]],
            verdicts=verdicts,
            checked=blocks,
            exchanging=blocks_that_exchange(run.accesses, run.work) if is_whole else None,
        )

    def _execute(
        self,
        k: int,
        groups: Sequence[Sequence[int]],
        owners: Sequence[int] | None = None,
        *,
        is_last: bool | None = None,
        places: bool = True,
    ) -> BlockRuns:
        """Run groups of blocks at K = k and check the elements that they write.

        If `owners` are given, only these blocks write tiles. `is_last` is as for `bound`. `places`:
        find out which parts of the matrices the blocks access.
        """
        blocks = [block for group in groups for block in group]
        if not blocks:
            return BlockRuns(k=k)
        launch = self.launch.at(k)
        owners = blocks if owners is None else owners
        tiles = _tiles(launch, owners)
        c = _poisoned(launch.executed, tiles)
        bound = replace(
            self.bound(k, c, is_last=is_last),
            most_accesses=self.most_accesses,
            notes_requests=True,
            notes_work=True,
        )
        ran = iter(self._run(bound, one_by_one(blocks), len(blocks)))
        of_groups = [[next(ran) for _ in group] for group in groups]
        first = [of_group[0] for of_group in of_groups]
        accesses = [one.accesses for one in first if one.accesses is not None]
        recorder = Recorder(launch, bound)
        leaders = [group[0] for group in groups if places]
        references = self.ladder.references(self.ladder.at(launch.problem.k), tiles)
        n = launch.executed.n
        return BlockRuns(
            k=k,
            groups=[[run.counts for run in of_group] for of_group in of_groups],
            verdicts=[references[tile].check(c, launch.tiling.product_error) for tile in tiles],
            checked=len(owners),
            below=[one.below for one in accesses],
            work=[one.work for one in first if one.work is not None],
            footprints=[
                recorder.footprint(block, one.rows)
                for block, one in zip(leaders, accesses, strict=False)
            ],
            requests=first_requests(
                of_groups[0][0].requests, bound, k=k, row_floats={"A": k, "B": n, "C": n}
            ),
        )

    def bound(self, k: int, c: Matrix, *, is_last: bool | None = None) -> BoundLaunch:
        """The launch at K = k on the ladder's matrices.

        If `is_last` is given, the data that a block waits for is provided: as the last block of the
        launch finds it if true, as the other blocks find it if false.
        """
        launch = self.launch.at(k)
        a, b = self.ladder.matrices(self.ladder.at(launch.problem.k), launch.executed)
        served = None if is_last is None else launch.ready_words(is_last=is_last)
        return bind_in_place(self.translated, launch, a, b, c, served=served)

    def _bound_again(self) -> BoundLaunch:
        executed = self.launch.executed
        return self.bound(executed.k, sparse_zeros((executed.m, executed.n), np.float32))

    def _run(
        self, bound: BoundLaunch, chosen: Sequence[range], blocks: int, stop: Event | None = None
    ) -> list[Run]:
        """Run some blocks. Progress is reported unless the run can be stopped."""
        progress = FinishedBlocks(of=blocks, advance=self.ladder.advance if stop is None else None)
        most = FEWEST_INSTRUCTIONS + int(EXCESS * self.launch.cost * blocks / WARP_SIZE)
        limit = ENDLESS
        if (asked := self.ladder.max_instructions) is not None and asked < most:
            most, limit = asked, MOST_INSTRUCTIONS
        try:
            return run_blocks(
                bound,
                chosen,
                max_instructions=most,
                workers=self.ladder.workers,
                advance=progress.add,
                stop=stop,
            )
        except FaultError as error:
            raise LaunchError(describe(error.fault, self.translated, bound, limit)) from None


def _tiles(launch: RungLaunch, blocks: Sequence[int]) -> list[Tile]:
    """Rows and columns of the tile that each block owns. Blocks that own none are left out."""
    found = tiles_of_c(launch.variant, launch.parameters, launch.executed, blocks)
    n = launch.problem.n
    within = [(rows, range(columns.start, min(columns.stop, n))) for rows, columns in found]
    return [tile for tile in within if all(tile)]


def _extrapolated_counts(
    plan: BlockPlan, runs: Sequence[BlockRuns], at_k: BlockRuns
) -> list[Counts] | None:
    """Counts of a block of each region at K itself, on lines along K.

    None if counts are on no line, or if a line does not meet the counts of the blocks `at_k`.
    """
    lines = [
        affine({run.k: run.groups[n][0] for run in runs}, at_k.k) for n in range(len(plan.regions))
    ]
    found = [line for line in lines if line is not None]
    if len(found) < len(lines):
        return None
    proofs = zip(plan.anchors, at_k.groups, strict=True)
    return found if all(agree([found[n], counts]) for n, (counts,) in proofs) else None


def _meets(found: Sequence[Footprint], anchors: Sequence[int], at_k: Sequence[Footprint]) -> bool:
    """True if footprints have the accesses of blocks at K itself."""
    return all(found[n].same_accesses(one) for n, one in zip(anchors, at_k, strict=False))


def _extrapolated_work(low: BlockRuns, high: BlockRuns, k: int) -> list[NDArray[Any]]:
    """Instructions of a block of each region (core.WORK) at `k`, on a line along K."""
    steps = (k - low.k) / (high.k - low.k)
    found = [one.copy() for one in low.work]
    for one, other in zip(found, high.work, strict=True):
        for name in one.dtype.names or ():
            first, second = one[name].astype(np.float64), other[name].astype(np.float64)
            one[name] = np.rint(first + steps * (second - first))
    return found


def _agree_but_for_guards(counts: Sequence[Counts]) -> bool:
    """True if blocks have equal counts, except for the guards of a few division steps."""
    if len(counts) == 1:
        return True
    without = [one.copy() for one in counts]
    for one in without:
        one["predicated"] = 0
    guards = [one["predicated"] for one in counts]
    differ = np.any([other != guards[0] for other in guards], axis=0)
    return (
        agree(without) and differ.sum() <= MOST_GUARDS and not counts[0]["requests"][differ].any()
    )


def _guards_of_divisions(kernel: Kernel, counts: Sequence[Counts]) -> NDArray[np.int64]:
    """Numbers of the instructions that correct quotients in some blocks of a kind only.

    They are guarded integer additions whose guards are not true equally often in all executed
    blocks. `counts`: those of the executed blocks.
    """
    lanes, true = (np.array([one[name] for one in counts]) for name in ("threads", "predicated"))
    share = true / np.maximum(lanes, 1)
    differs = np.where(lanes, share, 0).max(axis=0) > np.where(lanes, share, 1).min(axis=0)
    return np.array(
        [
            number
            for number in np.flatnonzero(differs).tolist()
            if kernel.instructions[number].guard and kernel.instructions[number].opcode in ADDITIONS
        ],
        dtype=np.int64,
    )


def _bounds(
    translated: Translated, counts: Counts, guards: NDArray[np.int64]
) -> Mapping[str, tuple[float, float]]:
    """Least and greatest value of each counter that depends on the guards of some instructions."""
    never, always = counts.copy(), counts.copy()
    never["predicated"][guards] = 0
    always["predicated"][guards] = counts["threads"][guards]
    least, greatest = (totals(instruction_counts(translated, one)) for one in (never, always))
    return {name: (least[name], greatest[name]) for name in least if least[name] < greatest[name]}


def affine(counts: Mapping[int, Counts], k: int) -> Counts | None:
    """Counts at `k` on the line through the first two points, in exact integers, or None.

    `counts` maps at least three values of K to counts. The first two values differ by one step, and
    all values and `k` differ by whole steps. None unless every other point lies on the line, for
    every instruction and quantity, and no count at `k` is negative.
    """
    first, second, *others = sorted(counts)
    assert others, "a line through two points proves nothing"
    names = counts[first].dtype.names or ()
    found = np.zeros_like(counts[first])
    for name in names:
        start = counts[first][name].astype(np.int64)
        slope = counts[second][name].astype(np.int64) - start

        def on_line(at: int, start: Any = start, slope: Any = slope) -> Any:
            steps, remainder = divmod(at - first, second - first)
            assert not remainder, f"K = {at} is not on the grid of {first} and {second}"
            return start + steps * slope

        if any((on_line(other) != counts[other][name]).any() for other in others):
            return None
        if (on_line(k) < 0).any():
            return None
        found[name] = on_line(k)
    return found


def summed(found: Sequence[Below], populations: Sequence[int]) -> Below | None:
    """Requests of all blocks to L2, from those of one block per region; None if one is missing."""
    if len(found) != len(populations) or not found:
        return None
    of_regions = [one.times(blocks) for one, blocks in zip(found, populations, strict=True)]
    return reduce(Below.__add__, of_regions)


def _poisoned(shape: Gemm, tiles: Sequence[Tile]) -> Matrix:
    """C with NaN in the tiles to check. The rest is never accessed, and takes no memory."""
    c = sparse_zeros((shape.m, shape.n), np.float32)
    for rows, columns in tiles:
        c[rows.start : rows.stop, columns.start : columns.stop] = np.nan
    return c


def merged(verdicts: Sequence[Check], where: str) -> Check:
    """Worst of several verdicts, with a description of the elements that all of them checked."""

    def badness(check: Check) -> float:
        return np.inf if check.worst_ratio is None else check.worst_ratio

    worst = max(verdicts, key=badness)
    errors = [check.max_absolute_error for check in verdicts]
    return replace(
        worst,
        passed=all(check.passed for check in verdicts),
        max_absolute_error=None if None in errors else max(e for e in errors if e is not None),
        bound=f"{worst.bound}; {where}",
    )
