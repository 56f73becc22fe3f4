"""Execute the blocks of a rung's plan, and prove that they stand for all.

The elements that executed blocks wrote are held against float64 like a GPU's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import LaunchError
from analysis.geometry import WARP_SIZE
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.rounding import Check
from kernels.closed_forms import tile_of_c
from kernels.variant import Copies, Words
from kernels.workspace import row_floats
from toolkit.execution.accesses import MOST_ACCESSES, Below, below
from toolkit.execution.block_plan import (
    DIFFER,
    KINDS_DIFFER,
    NOT_AFFINE,
    BlockPlan,
    Kind,
    listed,
    of_blocks,
    rung_plans,
)
from toolkit.execution.representatives import agree
from toolkit.execution.residency import most_resident
from toolkit.launch.host_resources import blas_on_one_thread, sparse_zeros
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.inputs import ANCHOR_BYTES, LadderInputs, input_bytes
from toolkit.rungs.launch import RungLaunch
from toolkit.rungs.matrices import Matrix, Tile
from toolkit.sass.faults import MOST_INSTRUCTIONS, describe
from toolkit.sass.machine import Bound, FaultError, Run, run_blocks
from toolkit.sass.requests import Noted, noted
from toolkit.sass.translate import Translated, bind

Counts = NDArray[Any]

MOST_GUARDS = 16  # of a block: corrections of divisions, which depend on the numbers
# What stops an endless loop in a rung that somebody works on: so many times its closed forms, which
# no rung comes near with what it does besides, and warps enough for the smallest shapes.
EXCESS, FEWEST_INSTRUCTIONS = 32, 10**7
ENDLESS = f"{EXCESS} times what its closed forms count: an endless loop?"


@dataclass(frozen=True, kw_only=True)
class BlockRuns:
    """What blocks did at one K: the counts of each group's members, and verdicts on their tiles.

    `below` is what the first member of each group asked of L2; `requests` are the first ones of
    each instruction, in the first member of the first group.
    """

    k: int
    groups: Sequence[Sequence[Counts]] = ()
    verdicts: Sequence[Check] = ()
    below: Sequence[Below] = ()
    requests: Sequence[Noted] = ()
    checked: int = 0  # blocks whose tiles of C the verdicts are on

    @property
    def alike(self) -> bool:
        """Whether the members of each group counted the same, instruction by instruction."""
        return all(map(agree, self.groups))


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What all blocks of a launch do, from those of a plan that stand for them.

    `below` is what they ask of L2, None where that is not known; `runs` are the first blocks.
    """

    plan: BlockPlan
    executed: int  # blocks, which gave the counts
    basis: str
    counts: Counts
    check: Check
    below: Below | None
    runs: BlockRuns

    def by_block(self, values: Iterable[float]) -> NDArray[Any]:
        """For each block of a plan of kinds the value of its kind."""
        found = np.zeros(self.plan.blocks)
        for kind, value in zip(self.plan.kinds, values, strict=True):
            found[kind.blocks] = value
        return found


class PlanExecutor:
    """Executes blocks of one rung, on the inputs of its ladder."""

    def __init__(
        self, ladder: LadderInputs, translated: Translated, launch: RungLaunch, *, notes: bool
    ) -> None:
        """`notes` asks for what the blocks touch."""
        self.ladder, self.translated, self.launch = ladder, translated, launch
        self.most_accesses = MOST_ACCESSES if notes else 0

    def proven(self) -> Proven:
        """What the first plan says whose proof holds."""
        why = ""
        for plan in rung_plans(self.launch, self.has_room):
            found = self._of_kinds(plan) if plan.kinds else self._of_places(plan)
            if isinstance(found, Proven):
                return replace(found, basis=found.basis + why)
            why = found + why
        raise AssertionError("the last plan needs no proof")

    def has_room(self) -> bool:
        """Whether blocks can be executed at K itself just to prove what is extrapolated to it."""
        executed = self.launch.executed
        return input_bytes(executed) <= ANCHOR_BYTES and self.ladder.has_room(executed)

    def _of_places(self, plan: BlockPlan) -> Proven | str:
        """Blocks that do not wait for others, or why they do not stand for all."""
        k = self.launch.executed.k
        runs = [self._execute(point, plan.members) for point in plan.points or [k]]
        if not all(run.alike for run in runs):
            return "" if plan.points else DIFFER
        of_places, anchored = [counts for counts, *_ in runs[0].groups], BlockRuns(k=k)
        if plan.points:
            anchored = self._execute(k, [plan.places[n].members[-1:] for n in plan.anchors])
            lines = [
                affine({run.k: run.groups[n][0] for run in runs}, k)
                for n in range(len(plan.places))
            ]
            of_places = [line for line in lines if line is not None]
            proofs = zip(plan.anchors, anchored.groups, strict=True)
            if len(of_places) < len(lines) or not all(
                agree([of_places[n], counts]) for n, (counts,) in proofs
            ):
                return NOT_AFFINE
        return self._proven(plan, of_places, runs, [anchored, *runs])

    def _of_kinds(self, plan: BlockPlan) -> Proven | str:
        """Each kind of block by itself, and meanwhile the first blocks together."""
        stop = Event()
        with ThreadPoolExecutor(1) as pool:  # those take turns, and leave a core to these
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
        found = self._proven(plan, of_kinds, [run], looked_at)
        if (proof.checked, proof.k) != (plan.blocks, run.k):
            return found
        ((counts,),) = proof.groups
        if not _agree_but_for_guards([found.counts, counts]):  # these have asked again and again
            return found
        basis = f"{of_blocks(plan.blocks, plan.blocks)} executed together"
        return replace(found, counts=counts, executed=plan.blocks, basis=basis)

    def _proven(
        self,
        plan: BlockPlan,
        of_places: Sequence[Counts],
        runs: Sequence[BlockRuns],
        looked_at: Sequence[BlockRuns],
    ) -> Proven:
        """The sums over all blocks; what they ask of L2 is on a line through the first two K."""
        populations = [place.population for place in plan.places]
        total = np.zeros_like(of_places[0])
        for counts, population in zip(of_places, populations, strict=True):
            for name in total.dtype.names or ():
                total[name] += counts[name] * np.uint64(population)
        asked = summed(runs[0].below, populations)
        if plan.points and asked is not None:
            high = summed(runs[1].below, populations)
            steps = (self.launch.executed.k - runs[0].k) // (runs[1].k - runs[0].k)
            asked = None if high is None else asked + (high + asked.times(-1)).times(steps)
        return Proven(
            plan=plan,
            executed=plan.executed,
            basis=plan.basis,
            counts=total,
            check=self._verdict(looked_at),
            below=asked,
            runs=runs[0],
        )

    def _verdict(self, runs: Sequence[BlockRuns]) -> Check:
        """One verdict on all runs, which says on what: blocks at K itself, and at small K."""
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

    def _served(self, kinds: Sequence[Kind]) -> BlockRuns:
        """A group of blocks of each kind; the last of all blocks finds that it is."""
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
            requests=parts[0].requests,
            checked=sum(part.checked for part in parts),
        )

    def _together(self, blocks: int, k: int, stop: Event) -> BlockRuns:
        """The verdict on the first blocks at K = k, run together."""
        if not blocks:
            return BlockRuns(k=k)
        launch = self.launch.at(k)
        tiles = _tiles(launch, range(blocks))
        c = _poisoned(launch.executed, tiles)
        (run,) = self._run(self.bound(k, c), [range(blocks)], blocks, stop)
        with blas_on_one_thread():
            workload = self.ladder.at(launch.problem.k)
            verdicts = workload.check_tiles(c, tiles)
        return BlockRuns(k=k, groups=[[run.counts]], verdicts=verdicts, checked=blocks)

    def _execute(
        self,
        k: int,
        groups: Sequence[Sequence[int]],
        owners: Sequence[int] | None = None,
        *,
        is_last: bool | None = None,
    ) -> BlockRuns:
        """Run groups of blocks at K = k and look at what they wrote.

        Where only the `owners` of tiles write, all find what they wait for.
        """
        blocks = [block for group in groups for block in group]
        if not blocks:
            return BlockRuns(k=k)
        launch = self.launch.at(k)
        owners = blocks if owners is None else owners
        tiles = _tiles(launch, owners)
        c = _poisoned(launch.executed, tiles)
        bound = replace(
            self.bound(k, c, is_last=is_last), most_accesses=self.most_accesses, most_requests=1
        )
        ran = iter(self._run(bound, [range(b, b + 1) for b in blocks], len(blocks)))
        of_groups = [[next(ran) for _ in group] for group in groups]
        accesses = [of_group[0].accesses for of_group in of_groups]
        references = self.ladder.references(self.ladder.at(launch.problem.k), tiles)
        return BlockRuns(
            k=k,
            groups=[[run.counts for run in of_group] for of_group in of_groups],
            verdicts=[references[tile].check(c) for tile in tiles],
            checked=len(owners),
            below=[below(one) for one in accesses if one is not None],
            requests=noted(of_groups[0][0].requests, bound),
        )

    def bound(self, k: int, c: Matrix, *, is_last: bool | None = None) -> Bound:
        """The launch at K = k on the ladder's matrices.

        Where `is_last` is given, blocks find all that they wait for, the last of them or the
        others.
        """
        launch = self.launch.at(k)
        a, b = self.ladder.matrices(self.ladder.at(launch.problem.k), launch.executed)
        served = None if is_last is None else launch.served(is_last=is_last)
        return bind_in_place(self.translated, launch, a, b, c, served=served)

    def _run(
        self, bound: Bound, chosen: Sequence[range], blocks: int, stop: Event | None = None
    ) -> list[Run]:
        """Run some blocks, and tell how many are done but of what may be stopped."""
        done = 0

        def advance(finished: int) -> None:
            nonlocal done
            done += finished
            if stop is None:
                self.ladder.advance(done, blocks)

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
                advance=advance,
                stop=stop,
            )
        except FaultError as error:
            raise LaunchError(describe(error.fault, self.translated, bound, limit)) from None


def _tiles(launch: RungLaunch, blocks: Iterable[int]) -> list[Tile]:
    """The rows and columns of the product that each block owns, if it owns any."""
    found = []
    for block in blocks:
        rows, columns = tile_of_c(launch.variant, launch.parameters, launch.executed, block)
        found.append((rows, range(columns.start, min(columns.stop, launch.problem.n))))
    return [tile for tile in found if all(tile)]


def _agree_but_for_guards(counts: Sequence[Counts]) -> bool:
    """Whether blocks counted the same, whatever the guards of a few steps of divisions were."""
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


def affine(counts: Mapping[int, Counts], k: int) -> Counts | None:
    """The counts at `k` on the line through the first two points, in exact integers.

    None unless each other point lies on that line too, for every instruction and quantity, and
    no count at `k` is negative. `counts` maps at least three values of K to counts; all of them
    and `k` are whole steps apart, the first two one step.
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
    """What all blocks ask of L2, those of each place like its first; None where one is missing."""
    if len(found) != len(populations) or not found:
        return None
    of_places = [one.times(blocks) for one, blocks in zip(found, populations, strict=True)]
    return reduce(Below.__add__, of_places)


def bind_in_place(
    translated: Translated,
    launch: RungLaunch,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    *,
    served: Sequence[Words] | None = None,
) -> Bound:
    """A launch of alpha = 1, beta = 0 on the matrices themselves, where `bind` would copy them.

    A and B may be read-only: a store to one of them is then a fault. Where blocks are `served`,
    none waits for another: these words in the workspace say that all others are done, and copies
    of A and B are there.
    """
    size_bytes = launch.variant.workspace(launch.parameters, launch.executed)
    arrays = {"A": a, "B": b, "C": c}
    if size_bytes is not None:
        arrays["workspace"] = sparse_zeros((max(size_bytes // FLOAT_BYTES, 1),), np.float32)
        if served is not None:
            _copy_rows(arrays, launch.copies)
        for words in served or ():
            begin = words.offset // FLOAT_BYTES
            arrays["workspace"].view(np.uint32)[begin : begin + words.count] = words.value
    arguments = rung_arguments(
        launch.variant,
        launch.parameters,
        launch.executed,
        (a, b, c),
        workspace=arrays.get("workspace"),
    )
    bound, _ = bind(translated, launch.geometry, arguments, in_place=True)
    names = {
        f"argument {k}": next(name for name, known in arrays.items() if known is array)
        for k, array in buffers_of(arguments).items()
    }
    bound = replace(
        bound,
        buffers=[replace(one, name=names.get(one.name, one.name)) for one in bound.buffers],
        most_resident=most_resident(None, translated.kernel, bound),
    )
    return bound if served is None else replace(bound, blocks_meet=False, in_order=False)


def _copy_rows(arrays: Mapping[str, NDArray[Any]], copies: Copies) -> None:
    """Do what leading blocks do: rows of A and B to rows of whole quads in the workspace."""
    for name, begin in (("A", copies.a), ("B", copies.b)):
        if begin is None:
            continue
        rows, columns = arrays[name].shape
        pitch = row_floats(columns)
        first = begin // FLOAT_BYTES
        copy = arrays["workspace"][first : first + rows * pitch]
        copy.reshape(rows, pitch)[:, :columns] = arrays[name]


def _poisoned(shape: Gemm, tiles: Sequence[Tile]) -> Matrix:
    """C with NaN where it will be looked at; the rest is never touched, and takes no memory."""
    c = sparse_zeros((shape.m, shape.n), np.float32)
    for rows, columns in tiles:
        c[rows.start : rows.stop, columns.start : columns.stop] = np.nan
    return c


def merged(verdicts: Sequence[Check], where: str) -> Check:
    """One verdict of several: the worst of them, on all that they looked at."""

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
