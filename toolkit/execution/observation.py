"""Plan by observation: a few blocks of a kernel are executed and represent all blocks.

Blocks form classes. Those of a class take the same path and make the same accesses, in the same
order, and each address shifts evenly with the index of the block. Which blocks are of a class is
proved (`toolkit.execution.proof`), as far as counts depend on neither data nor the index in another
way. What may differ between blocks of a class is estimated from blocks drawn at random
(`toolkit.execution.sampling`). Where that leaves too much open, all blocks are executed, unless
that takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import matrix_rank, pinv
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.groups import ENTRY, BlockClass, grouped
from analysis.traffic.pieces import READ
from reports import text
from toolkit.execution.accesses import steps_of_all_work
from toolkit.execution.proof import (
    Proof,
    Prover,
    RunBlocks,
    TooManyClassesError,
    far_apart,
    index_of,
)
from toolkit.execution.representatives import Grid, extrapolated, regions
from toolkit.execution.sampling import (
    NARROW,
    Estimates,
    Metrics,
    drawn_blocks,
    estimated_counts,
    estimates,
)
from toolkit.sass.accesses import Below
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import Run
from toolkit.sass.regions import Flow

LEAST_BLOCKS = 256  # of a launch; a smaller one is executed completely
MOST_PART = 0.25  # of all blocks, for the plan; beyond it all blocks are executed
MOST_EXECUTED, MOST_SECTORS = 1024, 1 << 25  # blocks, and sectors that they access: 0.5 GB
# Blocks drawn at random: so many that at most 2% of all blocks differ unseen if none of these does;
# and, for slow paths of functions alone, so many that at most 9% take one unseen.
DRAWN, DRAWN_FOR_SLOW_PATHS = 149, 32
DRAWN_FOR_ACCESSES = 8  # blocks, whose lines must be those that others predict
MOST_SAMPLED = 1 << 28  # warp instructions of random blocks: ten seconds of two cores
# Moments per lifetime of a block: accesses in one moment are one visit. The finest is taken with
# which all blocks make at most so many visits to groups of lines.
MOMENTS, FEW_VISITS, MOST_VISITS = (1152, 384, 192, 96, 48, 24), 600_000, 1 << 22

Floats = NDArray[np.float64]

LOST = ": its blocks make too many accesses"
MISTAKEN = ": a block counts otherwise than was proved"


class NoPlanError(Exception):
    """Why all blocks are to be executed; completes the sentence "all blocks executed"."""


class UnevenError(Exception):
    """Why the accesses of some blocks are not shifted evenly; completes the same sentence."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One executed block. Its accesses are one row per sector, in order."""

    run: Run
    sectors: NDArray[np.int64]
    rows: NDArray[Any]  # step, warp and kind of each
    below: Below

    @property
    def counts(self) -> NDArray[Any]:
        return self.run.counts


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """Accesses of all blocks to global memory, by class; those of a class shift evenly.

    `class_of`: class of each block, by its linear index.
    """

    class_of: NDArray[np.uint32]
    classes: Sequence[BlockClass]
    moments: int
    below: Below


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the executed blocks say of all blocks.

    `class_of`: class of each block, by its linear index. `work`: what each block executes
    (core.WORK). `estimates`: counters that are not proved.
    `slow_paths`: the only instructions that blocks may execute otherwise are those of slow paths of
    these functions. `accesses`: those of all blocks; without them `lost` says why. `seconds`: about
    how long all blocks take.
    """

    counts: NDArray[Any]
    class_of: NDArray[np.uint32]
    work: NDArray[Any]
    runs: Sequence[Run]
    grid: Grid
    accesses: Accesses | None
    lost: str
    estimates: Estimates | None
    slow_paths: Sequence[str]
    seconds: float

    @property
    def is_sufficient(self) -> bool:
        """True if no counter is more uncertain than `sampling.NARROW`, and the time is known."""
        if self.accesses is None:
            return False
        found = self.estimates
        is_slow = bool(self.slow_paths) and found is not None and found.widest <= NARROW
        return found is None or found.is_narrow or is_slow

    @property
    def basis(self) -> str:
        executed, everything = len(self.runs), prod(self.grid)
        some = f"{executed:,} of {everything:,} blocks executed"
        found = self.estimates
        if found is None:
            kinds = int(self.class_of.max()) + 1
            classes = f"those of its class, of {kinds}" if kinds > 1 else "all others"
            return f"{some}; proved: each of them counts like {classes}"
        where = (
            f" in slow paths of {text.listing(list(self.slow_paths))}" if self.slow_paths else ""
        )
        if found.agreeing < found.drawn:
            return f"{some}; {found.drawn} of them were drawn at random and differ{where}"
        return (
            f"{some}; {found.drawn} of {found.drawn} random blocks agree{where}: up to "
            f"{100 * found.unseen_share:.2g}% of {everything:,} may differ (95%)"
        )

    def visits(self) -> NDArray[Any] | None:
        """Accesses of all blocks by groups of lines, None if there are too many."""
        assert self.accesses is not None
        return grouped(self.accesses.classes, self.accesses.class_of, self.grid, most=MOST_VISITS)


@dataclass(frozen=True, kw_only=True)
class Observable:
    """A launch as it is observed.

    `run` executes blocks; `metrics` makes counters of counts; `functions`: numbers of the first
    instructions of functions, by name. `seed` chooses the random blocks. `limit_s`: all blocks are
    executed if that is shorter.
    """

    grid: Grid
    flow: Flow
    run: RunBlocks
    metrics: Metrics
    functions: Mapping[str, int]
    seed: bytes
    limit_s: float


def observed(launch: Observable) -> Observed:
    """What a few blocks say of a launch. Raises NoPlanError if all blocks are to be executed."""
    if prod(launch.grid) < LEAST_BLOCKS:
        raise NoPlanError("")
    return _Observer(launch).observed()


@dataclass
class _Observer:
    """Blocks executed so far, and how long one of them takes in seconds of wall time."""

    launch: Observable
    samples: dict[int, Sample] = field(default_factory=dict)
    block_s: float = 0.0

    @property
    def blocks(self) -> int:
        return prod(self.launch.grid)

    @property
    def room(self) -> int:
        """Blocks that may be executed yet."""
        return min(MOST_EXECUTED, int(MOST_PART * self.blocks)) - len(self.samples)

    @property
    def all_s(self) -> float:
        return self.block_s * self.blocks

    def observed(self) -> Observed:
        try:
            proof = self._prover().proof()
        except TooManyClassesError:
            return self._without_proof()
        for block, run in proof.runs.items():
            self._keep(block, run)
        classes = range(len(proof.leaders))
        known = sorted(self.samples)
        populations = np.bincount(proof.class_of, minlength=len(classes))
        executed = np.bincount(proof.class_of[known], minlength=len(classes))
        is_open = np.flatnonzero(populations > executed).tolist()
        may_differ = proof.may_differ(is_open)
        slow_paths = self._slow_paths(proof, may_differ) if _any(may_differ) else []
        drawn = self._drawn(slow_paths) if _any(may_differ) else []
        self._check(proof, may_differ)
        of_leaders = [[self.samples[block].counts] for block in proof.leaders]
        totals = extrapolated(list(zip(populations.tolist(), of_leaders, strict=True)))
        return self._found(proof.class_of, totals, may_differ, known, drawn, slow_paths, proof)

    def _prover(self) -> Prover:
        launch = self.launch
        return Prover(grid=launch.grid, flow=launch.flow, run=self._timed, most=self.room)

    def _timed(self, blocks: Sequence[int], *more: Any) -> Sequence[Run]:
        started = time.perf_counter()
        runs = self.launch.run(blocks, *more)
        self.block_s = (time.perf_counter() - started) / max(1, len(blocks))
        return runs

    def execute(self, blocks: Sequence[int]) -> None:
        """Execute the blocks that were not yet."""
        new = sorted(set(blocks) - self.samples.keys())
        for block, run in zip(new, self._timed(new, None) if new else (), strict=True):
            self._keep(block, run)

    def _keep(self, block: int, run: Run) -> None:
        if run.accesses is None or run.accesses.spread:
            raise NoPlanError(LOST)
        self.samples[block] = _sample(run)
        if sum(len(one.sectors) for one in self.samples.values()) > MOST_SECTORS:
            raise NoPlanError(LOST)

    def _drawn(self, slow_paths: Sequence[str]) -> list[int]:
        """Random blocks, which are executed. Raises NoPlanError if all blocks take less time."""
        wanted = DRAWN_FOR_SLOW_PATHS if slow_paths else DRAWN
        if wanted > self.room and self.all_s <= self.launch.limit_s:
            raise NoPlanError(": they may differ with their data")
        of_a_block = max(int(one.counts["executed"].sum()) for one in self.samples.values())
        most = max(DRAWN_FOR_SLOW_PATHS, MOST_SAMPLED // max(1, of_a_block))
        drawn = drawn_blocks(
            sorted(self.samples),
            self.blocks,
            min(wanted, most, max(2, self.room)),
            self.launch.seed,
        )
        self.execute(drawn)
        return drawn

    def _check(self, proof: Proof, may_differ: NDArray[Any]) -> None:
        """Raise NoPlanError if a block counts otherwise than the leader of its class."""
        certain = {name: may_differ[name] == 0 for name in COUNT.names or ()}
        for block, sample in self.samples.items():
            leader = self.samples[proof.leaders[proof.class_of[block]]]
            for name, where in certain.items():
                if (sample.counts[name][where] != leader.counts[name][where]).any():
                    raise NoPlanError(MISTAKEN)

    def _slow_paths(self, proof: Proof, may_differ: NDArray[Any]) -> list[str]:
        """Functions whose slow paths alone may differ between blocks, none if more may."""
        names = {number: name for name, number in self.launch.functions.items()}
        found, left = set[str](), np.zeros(len(may_differ), dtype=np.bool_)
        for name in COUNT.names or ():
            left |= may_differ[name] > 0
        for branch in proof.branches:
            decided, apart = self.launch.flow.region(branch)
            called = [names.get(pc, "") for pc in self.launch.flow.calls(decided)]
            if called and all(map(is_internal, called)):
                found |= {_plain(name) for name in called}
                left[[branch, *decided, *apart]] = False
        return [] if left.any() else sorted(found)

    def _without_proof(self) -> Observed:
        """Estimates from random blocks alone."""
        if self.all_s <= self.launch.limit_s:
            raise NoPlanError(": they are of too many classes")
        known = sorted({b for one in regions(self.launch.grid) for b in one.members})
        self.execute(known)
        drawn = self._drawn(())
        counts = self.samples[known[0]].counts
        class_of = np.zeros(self.blocks, dtype=np.uint32)
        everything = np.ones(len(counts), dtype=COUNT)
        return self._found(class_of, np.zeros_like(counts), everything, known, drawn, [], None)

    def _found(
        self,
        class_of: NDArray[np.uint32],
        totals: NDArray[Any],
        may_differ: NDArray[Any],
        known: Sequence[int],
        drawn: Sequence[int],
        slow_paths: Sequence[str],
        proof: Proof | None,
    ) -> Observed:
        of_known, of_drawn = ([self.samples[b].counts for b in x] for x in (known, drawn))
        counts, estimated = totals, None
        if _any(may_differ):
            counts = estimated_counts(totals, may_differ, of_known, of_drawn, self.blocks)
            estimated = estimates(
                self.launch.metrics(counts),
                may_differ,
                of_drawn,
                self.blocks - len(known),
                self.launch.metrics,
            )
        accesses, lost = None, ": they are of too many classes"
        if proof is not None:
            try:
                accesses, lost = self._accesses(proof), ""
            except NoPlanError as reason:
                lost = str(reason)
        return Observed(
            counts=counts,
            class_of=class_of,
            work=self._work(class_of, drawn if _any(may_differ) and not slow_paths else ()),
            runs=[one.run for _, one in sorted(self.samples.items())],
            grid=self.launch.grid,
            accesses=accesses,
            lost=lost,
            estimates=estimated,
            slow_paths=slow_paths,
            seconds=self.all_s,
        )

    def _work(self, class_of: NDArray[np.uint32], drawn: Sequence[int]) -> NDArray[Any]:
        """What each block executes: as the executed blocks of its class, or as one of the `drawn`.

        If blocks were drawn, others execute as much as one of these, at random.
        """
        known = np.concatenate([one.run.work for one in self.samples.values()])
        blocks = np.array(list(self.samples))
        of_classes = np.zeros(int(class_of.max()) + 1, dtype=known.dtype)
        of_classes[class_of[blocks]] = known
        found = of_classes[class_of]
        if drawn:
            generator = np.random.default_rng(len(drawn))
            found = known[np.isin(blocks, drawn)][generator.integers(len(drawn), size=self.blocks)]
        found[blocks] = known
        return found

    def _accesses(self, proof: Proof) -> Accesses:
        """Accesses of all blocks. Raises NoPlanError if those of a class do not shift evenly."""
        asked, classes = Below(read=0, written_by_warps=0), list[BlockClass]()
        class_of = np.zeros(self.blocks, dtype=np.uint32)
        self.execute(drawn_blocks((), self.blocks, DRAWN_FOR_ACCESSES, self.launch.seed))
        for number in range(len(proof.leaders)):
            pending = [np.flatnonzero(proof.class_of == number)]
            while pending:
                blocks = pending.pop()
                try:
                    made = self._shifted(blocks, proof.periods)
                except UnevenError as reason:
                    if len(blocks) == 1 or self.room <= 0:
                        raise NoPlanError(str(reason)) from None
                    pending += np.array_split(blocks, 2)
                    continue
                class_of[blocks] = len(classes)
                classes.append(made)
                asked = asked + self._any_of(blocks).below.times(len(blocks))
        moments, classes = _with_moments(classes, class_of)
        return Accesses(class_of=class_of, classes=classes, moments=moments, below=asked)

    def _any_of(self, blocks: NDArray[np.int64]) -> Sample:
        return self.samples[far_apart(blocks, self.launch.grid)[0]]

    def _shifted(self, blocks: NDArray[np.int64], periods: tuple[int, int, int]) -> BlockClass:
        """The accesses of blocks, with the shifts that hold for all of them that are executed."""
        grid = self.launch.grid
        self.execute(far_apart(blocks, grid))
        members = np.intersect1d(blocks, list(self.samples)).tolist()
        at = np.array([index_of(block, grid) for block in members], dtype=np.int64)
        return _shifted([self.samples[block] for block in members], at, periods)


def is_internal(function: str) -> bool:
    """True for a function that the compiler adds, such as the slow path of a division."""
    return "__internal_" in function


def _plain(function: str) -> str:
    """ "$__internal_0_$__cuda_sm20_div_rn_f64_full" as "div_rn_f64_full"."""
    return function.rpartition("$")[2].removeprefix("__cuda_").partition("_")[2] or function


def _any(may_differ: NDArray[Any]) -> bool:
    return bool(may_differ.view(np.uint64).any())


def _sample(run: Run) -> Sample:
    assert run.accesses is not None
    rows = run.accesses.rows
    row, sector = np.nonzero(rows["mask"][:, None] >> np.arange(4) & 1)
    sectors, rows = rows["line"][row].astype(np.int64) * 4 + sector, rows[row]
    order = np.lexsort((sectors, rows["kind"], rows["step"], rows["warp"]))
    return Sample(
        run=replace(run, accesses=None),
        sectors=sectors[order],
        rows=rows[["step", "warp", "kind"]][order],
        below=run.accesses.below,
    )


def _shifted(
    samples: Sequence[Sample], at: NDArray[np.int64], periods: tuple[int, int, int]
) -> BlockClass:
    """The accesses of blocks, with the shifts that hold for all samples. `at`: their indices.

    Raises UnevenError if there are none.
    """
    first, *others = samples
    if any(not np.array_equal(one.rows["kind"], first.rows["kind"]) for one in others):
        raise UnevenError(": they make different accesses")
    shifts = np.zeros((3, len(first.sectors)), dtype=np.int64)
    if others:
        steps = at[1:] - at[0]
        rank = matrix_rank(steps)
        few = next(n for n in range(1, len(at)) if matrix_rank(steps[:n]) == rank)
        moved = [SECTOR_BYTES * (one.sectors - first.sectors) for one in others]
        shifts = np.rint(pinv(steps[:few]) @ np.array(moved[:few])).astype(np.int64)
        if any((step @ shifts != by).any() for step, by in zip(steps, moved, strict=True)):
            raise UnevenError(": addresses do not shift evenly with the index of the block")
    kinds, which = np.unique(shifts, axis=1, return_inverse=True)
    entries = np.zeros(len(first.rows), dtype=ENTRY)
    entries["sector"], entries["shift"], entries["mask"] = first.sectors, which.ravel(), 1
    entries["kind"], entries["moment"] = first.rows["kind"], first.rows["step"]
    by_period = kinds * np.array(periods)[:, None]
    whole = (by_period % LINE_BYTES == 0).all(axis=0)  # lines shift to lines
    x, y, z = at[0].tolist()
    return BlockClass(entries=_by_line(entries, whole), shifts=kinds.T, at=(x, y, z))


def _by_line(entries: NDArray[Any], whole: NDArray[np.bool_]) -> NDArray[Any]:
    """Entries whose lines shift as a whole are joined, line by line."""
    joins = whole[entries["shift"]]
    those, others = entries[joins], entries[~joins]
    line, sector = np.divmod(those["sector"], 4)
    key = those.copy()
    key["sector"] = line * 4
    names, which = np.unique(key, return_inverse=True)
    mask = np.zeros(len(names), dtype=np.uint8)
    np.bitwise_or.at(mask, which, (1 << sector).astype(np.uint8))
    names["mask"] = mask
    return np.concatenate([names, others])


def _with_moments(
    classes: Sequence[BlockClass], class_of: NDArray[np.uint32]
) -> tuple[int, list[BlockClass]]:
    """Moments per lifetime, and classes with moments in place of steps."""
    steps = np.array([_last_step(one.entries) for one in classes])
    last_reads = np.array([_last_step(one.entries[one.entries["kind"] == READ]) for one in classes])
    _, first = np.unique(class_of, return_index=True)
    until = steps_of_all_work(steps[class_of], last_reads[class_of])[first]
    populations = np.bincount(class_of, minlength=len(classes))
    for moments in MOMENTS:
        found = [_at_moments(one, moments, last) for one, last in zip(classes, until, strict=True)]
        groups = [len(np.unique(one.entries[["shift", "moment", "kind"]])) for one in found]
        if np.dot(groups, populations) <= FEW_VISITS:
            break
    return moments, found


def _last_step(entries: NDArray[Any]) -> float:
    return float(entries["moment"].max(initial=0))


def _at_moments(one: BlockClass, moments: int, last: float) -> BlockClass:
    entries = one.entries.copy()
    work = np.minimum(1.0, entries["moment"] / max(last, 1.0))
    entries["moment"] = np.rint(moments * work).astype(np.uint32)
    return replace(one, entries=np.unique(entries))
