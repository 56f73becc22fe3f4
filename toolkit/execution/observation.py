"""Plan by observation: a few blocks of a kernel are executed and represent all blocks.

Blocks form classes. All blocks of a class take the same path and make the same accesses in the same
order, and each address shifts evenly with the index of the block. The classes are proved
(`toolkit.execution.proof`), as far as counts do not depend on data, or on the index of the block in
a way that the proof cannot follow. Counts that may differ within a class are estimated from blocks
drawn at random (`toolkit.execution.sampling`). If the estimates are too uncertain, all blocks are
executed, unless that takes too long.

Blocks that execute very much are not followed: as many of them are executed as there is time for,
one from each of equal parts of the launch, and all counters are estimates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.traffic.groups import grouped
from reports import text
from toolkit.execution.class_accesses import (
    DRAWN_FOR_ACCESSES,
    ClassAccesses,
    class_accesses,
)
from toolkit.execution.executed import MOST_SECTORS, Executed, ExecutedBlock, NoPlanError
from toolkit.execution.proof import Proof, Prover, RunBlocks, TooManyClassesError
from toolkit.execution.representatives import Grid, extrapolated, regions
from toolkit.execution.sampling import (
    NARROW,
    Estimates,
    Metrics,
    drawn_blocks,
    drawn_from_parts,
    estimated_counts,
    estimates,
    further_draws,
    nearest_drawn,
)
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import LIMIT, FaultError, Run
from toolkit.sass.polls import may_depend_on_data
from toolkit.sass.regions import Flow, Regions

LEAST_BLOCKS = 256  # a launch with fewer blocks is executed completely
# Blocks drawn at random. If all of them agree, at most 2% of all blocks differ (95% confidence).
DRAWN = 149
# The same if only slow paths of functions may differ: at most 9% of all blocks take one unseen.
DRAWN_FOR_SLOW_PATHS = 32
# Warp instructions of further random blocks, where those do not suffice: two seconds of two cores.
MOST_FURTHER = 1 << 25
MOST_SAMPLED = 1 << 28  # warp instructions of random blocks: ten seconds of two cores
# Warp instructions of blocks that are followed: 30 s of a core. Those of blocks of one launch that
# execute too much for that, of which FEWEST_LONG are executed at least: ten seconds of two cores.
MOST_FOLLOWED = 1 << 27
# Warp instructions of a block that is too long for a proof, if counts may depend on data: at each
# new branch of this kind all blocks are followed again. Of a block that executes more than
# FIRST_FOLLOWED, it is found out without following it.
MOST_OF_FOLLOWED, FIRST_FOLLOWED = 1 << 23, 1 << 21
MOST_OF_LONG = 1 << 29
MOST_OF_LONG_S = 12.0  # and fewer, if these blocks would take longer
FEWEST_LONG = 4
MOST_VISITS = 1 << 22  # visits of all blocks to groups of lines
# If all blocks make too many visits, those of the first blocks stand for them, of at least as many:
# the second half of them begins with what the first one leaves in L2.
FEWEST_FIRST = 1 << 13

GLOBAL_ACCESSES = {"LD", "LDG", "LDGSTS", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG"}

MANY = ": they form too many classes"
MISTAKEN = ": the counts of a block contradict the proof"
LONG = ": they take too long to be followed"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts and accesses of all blocks of a launch, from a few executed blocks."""

    counts: NDArray[Any]  # of all blocks, per instruction (core.COUNT)
    class_of: NDArray[np.uint32]  # class of each block, by its linear index
    work: NDArray[Any]  # instructions of each block (core.WORK)
    stand_in: NDArray[np.int64]  # the block whose instructions each block is taken to execute
    run_of: Mapping[int, Run]  # of each executed block, by its linear index
    grid: Grid
    accesses: ClassAccesses | None  # accesses of all blocks; None if unknown
    lost: str  # reason why the executed blocks do not suffice, if they do not
    estimates: Estimates | None  # counters that are not proved
    # functions whose slow paths are the only code that may differ between blocks; or empty
    slow_paths: Sequence[str]
    is_in_part: bool = False  # blocks are so long that only some of them were executed
    # the executed blocks by their linear index, if the accesses of the others are unknown
    samples: Mapping[int, ExecutedBlock] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """Number of blocks of the launch."""
        return len(self.class_of)

    @property
    def runs(self) -> list[Run]:
        return list(self.run_of.values())

    @property
    def is_sufficient(self) -> bool:
        """True if accesses are known, and no counter is more uncertain than `sampling.NARROW`."""
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
            classes = f"the others of its class ({kinds} classes)" if kinds > 1 else "all others"
            return f"{some}; proved: each block has the same counts as {classes}"
        where = (
            f" in slow paths of {text.listing(list(self.slow_paths))}" if self.slow_paths else ""
        )
        return f"{some}; {found.seen(everything, where)}"

    @cached_property
    def visits(self) -> tuple[NDArray[Any], int] | None:
        """Visits of the first blocks to groups of lines, and how many these blocks are.

        They are all blocks, or a part of them if all make too many visits: at least FEWEST_FIRST.
        None if even this part makes too many.
        """
        assert self.accesses is not None
        blocks, fewest = self.blocks, min(self.blocks, FEWEST_FIRST)
        while blocks >= fewest:
            some = self.accesses.class_of[:blocks]
            found = grouped(self.accesses.classes, some, self.grid, most=MOST_VISITS)
            if found is not None:
                return found, blocks
            blocks //= 2
        return None


@dataclass(frozen=True, kw_only=True)
class Observable:
    """Launch whose blocks can be executed one by one."""

    grid: Grid
    flow: Flow
    run: RunBlocks  # executes blocks
    # executes blocks as `run` does. Raises FaultError (LIMIT) if a worker executes more warp
    # instructions than the last argument.
    run_at_most: Callable[[Sequence[int], Regions | None, int], Sequence[Run]]
    metrics: Metrics  # computes counters from counts
    functions: Mapping[str, int]  # number of the first instruction of each function, by name
    seed: bytes  # determines the random blocks
    is_short: Callable[[], bool]  # true if all blocks can be executed instead
    limit_s: float  # if a few blocks show that all take no longer, all are executed
    # blocks that are executed in any case, by their linear indices
    always: Sequence[int] = ()
    restore: Callable[[], None] = lambda: None  # undoes what executed blocks stored


def observed(launch: Observable) -> Observed:
    """Counts and accesses of a launch, from a few of its blocks.

    Raises NoPlanError if all blocks must be executed.
    """
    observer = _Observer(launch, Executed(grid=launch.grid, run=launch.run))
    is_few = prod(launch.grid) < LEAST_BLOCKS
    return observer.observed_in_part() if is_few else observer.observed()


class _LongBlocksError(Exception):
    """Error: blocks execute or access so much that they are not followed."""


@dataclass
class _Observer:
    """Observation of a launch, with its blocks executed so far."""

    launch: Observable
    executed: Executed
    followed: int = 0  # warp instructions of the blocks that were followed

    def observed(self) -> Observed:
        try:
            proof = self._prover().proof()
        except TooManyClassesError:
            return self._without_proof()
        except _LongBlocksError:
            return self.observed_in_part()
        for block, run in proof.runs.items():
            self.executed.keep(block, run)
        self.executed.execute(self.launch.always)
        classes = range(len(proof.leaders))
        known = sorted(self.executed.samples)
        populations = np.bincount(proof.class_of, minlength=len(classes))
        executed = np.bincount(proof.class_of[known], minlength=len(classes))
        is_open = np.flatnonzero(populations > executed).tolist()
        may_differ = proof.may_differ(is_open)
        slow_paths = self._slow_paths(proof, may_differ) if _has_any(may_differ) else []
        drawn = self._drawn(slow_paths, proof.why_open) if _has_any(may_differ) else []
        drawn += self._further(drawn)
        self._check(proof, may_differ, is_open)
        totals = extrapolated(
            [
                (
                    population,
                    [
                        self.executed.samples[b].counts
                        for b in self._standing_for(proof, k, k in is_open)
                    ],
                )
                for k, population in enumerate(populations.tolist())
            ]
        )
        return self._found(proof.class_of, totals, may_differ, known, drawn, slow_paths, proof)

    def _drawn(self, slow_paths: Sequence[str], why: str) -> list[int]:
        """Execute random blocks, and return their linear indices.

        Raises NoPlanError if a plan has no room for them and all blocks take little time.
        """
        wanted = DRAWN_FOR_SLOW_PATHS if slow_paths else DRAWN
        if wanted > self.executed.room and self.launch.is_short():
            raise NoPlanError(why)
        of_a_block = max(
            int(one.counts["executed"].sum()) for one in self.executed.samples.values()
        )
        most = max(DRAWN_FOR_SLOW_PATHS, MOST_SAMPLED // max(1, of_a_block))
        drawn = drawn_blocks(
            sorted(self.executed.samples),
            self.executed.blocks,
            min(wanted, most, max(2, self.executed.room)),
            self.launch.seed,
        )
        self.executed.execute(drawn)
        return drawn

    def _further(self, drawn: Sequence[int]) -> list[int]:
        """Execute further random blocks where the work of those `drawn` is too uncertain.

        Not if all blocks can be executed instead.
        """
        if len(drawn) < DRAWN:
            return []
        counts = [self.executed.samples[block].counts for block in drawn]
        work = np.array([float(one["executed"].sum()) for one in counts])
        needed = further_draws(work, self.executed.blocks)
        most = int(MOST_FURTHER // max(1.0, work.mean()))
        count = min(needed, most, self.executed.room // 2)  # the rest is for accesses
        if count <= 0 or self.launch.is_short():
            return []
        known = sorted(self.executed.samples)
        found = drawn_blocks(known, self.executed.blocks, count, self.launch.seed + b"further")
        self.executed.execute(found)
        return found

    def _standing_for(self, proof: Proof, number: int, is_open: bool) -> list[int]:
        """Executed blocks that represent class `number`: its leader, or all blocks of the class.

        `is_open`: some blocks of the class are not executed.
        """
        if is_open:
            return [proof.leaders[number]]
        return [b for b in self.executed.samples if proof.class_of[b] == number]

    def _check(self, proof: Proof, may_differ: NDArray[Any], is_open: Sequence[int]) -> None:
        """Raise NoPlanError if proved counts of a block differ from those of its class's leader."""
        certain = {name: may_differ[name] == 0 for name in COUNT.names or ()}
        for block, sample in self.executed.samples.items():
            if proof.class_of[block] not in is_open:
                continue
            leader = self.executed.samples[proof.leaders[proof.class_of[block]]]
            for name, where in certain.items():
                if (sample.counts[name][where] != leader.counts[name][where]).any():
                    raise NoPlanError(MISTAKEN)

    def _slow_paths(self, proof: Proof, may_differ: NDArray[Any]) -> list[str]:
        """Names of the functions whose slow paths may differ between blocks.

        Empty if any other code may differ, too.
        """
        names = {number: name for name, number in self.launch.functions.items()}
        found, left = set[str](), np.zeros(len(may_differ), dtype=np.bool_)
        for name in COUNT.names or ():
            left |= may_differ[name] > 0
        for branch in proof.branches:
            decided, apart = self.launch.flow.region(branch)
            called = [names.get(pc, "") for pc in self.launch.flow.calls(decided)]
            if called and all(map(is_internal, called)):
                found |= {_short_name(name) for name in called}
                left[[branch, *decided, *apart]] = False
        return [] if left.any() else sorted(found)

    def _without_proof(self) -> Observed:
        """Estimates from random blocks alone, if the proof has too many classes."""
        if self.launch.is_short():
            raise NoPlanError(MANY)
        of_regions = {b for one in regions(self.launch.grid) for b in one.members}
        known = sorted(of_regions.union(self.launch.always))
        self.executed.execute(known)
        drawn = self._drawn((), MANY)
        drawn += self._further(drawn)
        counts = self.executed.samples[known[0]].counts
        class_of = np.zeros(self.executed.blocks, dtype=np.uint32)
        everything = np.ones(len(counts), dtype=COUNT)
        return self._found(class_of, np.zeros_like(counts), everything, known, drawn, [], None)

    def observed_in_part(self) -> Observed:
        """Estimates from blocks of all parts of the launch, as many as MOST_OF_LONG allows.

        Raises NoPlanError if these are all blocks, or if all take no longer than `limit_s`.
        """
        executed = Executed(grid=self.launch.grid, run=self.launch.run)
        self.executed = executed
        if executed.blocks <= FEWEST_LONG:
            raise NoPlanError("")
        self.launch.restore()  # blocks that were followed may be drawn again
        started = time.perf_counter()
        drawn = self._from_parts(FEWEST_LONG)
        taken_s = time.perf_counter() - started
        if taken_s * executed.blocks / FEWEST_LONG <= self.launch.limit_s:
            raise NoPlanError("" if executed.blocks < LEAST_BLOCKS else LONG)
        mean = np.mean([one.counts["executed"].sum() for one in executed.samples.values()])
        further = int(min(MOST_OF_LONG / mean, FEWEST_LONG * MOST_OF_LONG_S / taken_s))
        further -= FEWEST_LONG
        if further >= FEWEST_LONG:
            drawn += self._from_parts(min(further, executed.blocks // 2, DRAWN))
        executed.execute(self.launch.always)
        if len(executed.samples) == executed.blocks:
            raise NoPlanError("")
        counts = executed.samples[drawn[0]].counts
        class_of = np.zeros(executed.blocks, dtype=np.uint32)
        everything = np.ones(len(counts), dtype=COUNT)
        known = list(self.launch.always)
        found = self._found(class_of, np.zeros_like(counts), everything, known, drawn, [], None)
        return replace(found, is_in_part=True)

    def _from_parts(self, count: int) -> list[int]:
        """Execute a random block of each of `count` parts of the launch. Return the new ones."""
        drawn = drawn_from_parts(self.executed.blocks, count, self.launch.seed)
        known = self.executed.samples.keys() | set(self.launch.always)
        new = [block for block in drawn if block not in known]
        self.executed.execute(new)
        return new

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
        of_known, of_drawn = ([self.executed.samples[b].counts for b in x] for x in (known, drawn))
        counts, estimated = totals, None
        if _has_any(may_differ):
            counts = estimated_counts(totals, may_differ, of_known, of_drawn, self.executed.blocks)
            estimated = estimates(
                self.launch.metrics(counts, None),
                may_differ,
                of_drawn,
                self.executed.blocks - len(known),
                self.launch.metrics,
            )
        accesses, lost = None, MANY
        if proof is not None:
            try:
                is_open = self._has_open_accesses(may_differ)
                accesses = class_accesses(self.executed, proof, self.launch.seed, is_open=is_open)
                lost = proof.why_open
            except NoPlanError as reason:
                lost = str(reason)
        work, stand_in = self._work_of_blocks(
            class_of, drawn if _has_any(may_differ) and not slow_paths else ()
        )
        return Observed(
            counts=counts,
            class_of=class_of,
            work=work,
            stand_in=stand_in,
            run_of={block: one.run for block, one in sorted(self.executed.samples.items())},
            grid=self.launch.grid,
            accesses=accesses,
            lost=lost,
            estimates=estimated,
            slow_paths=slow_paths,
            samples={} if accesses else self.executed.samples,
        )

    def _has_open_accesses(self, may_differ: NDArray[Any]) -> bool:
        """True if requests or sectors of an access to global memory may differ between blocks."""
        rows = np.flatnonzero((may_differ["requests"] > 0) | (may_differ["sectors"] > 0))
        opcodes = {self.launch.flow.instructions[row].opcode for row in rows.tolist()}
        return bool(opcodes & GLOBAL_ACCESSES)

    def _work_of_blocks(
        self, class_of: NDArray[np.uint32], drawn: Sequence[int]
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Instructions of each block (core.WORK), and the block that executes them in its place.

        A block that was not executed gets those of an executed block of its class, and is replayed
        itself. If blocks were `drawn`, the nearest of them in its class stands for it in both:
        neighbours often have about as much work, and are on different SMs.
        """
        known = np.concatenate([one.run.work for one in self.executed.samples.values()])
        blocks = np.array(list(self.executed.samples))
        of_classes = np.zeros(int(class_of.max()) + 1, dtype=known.dtype)
        of_classes[class_of[blocks]] = known
        found, stand_in = of_classes[class_of], np.arange(self.executed.blocks)
        if drawn:
            stand_in = nearest_drawn(drawn, list(self.executed.samples), class_of)
            order = np.argsort(blocks)
            found = known[order][np.searchsorted(blocks[order], stand_in)]
        found[blocks], stand_in[blocks] = known, blocks
        return found, stand_in

    def _prover(self) -> Prover:
        launch, executed = self.launch, self.executed
        return Prover(grid=launch.grid, flow=launch.flow, run=self._follow, most=executed.room)

    def _follow(self, blocks: Sequence[int], regions: Regions | None) -> Sequence[Run]:
        """Run blocks with their values followed. Raises _LongBlocksError if that takes too long."""
        runs = None
        if not self.followed:
            runs = _run_at_most(self.launch, blocks, regions, FIRST_FOLLOWED)
            if runs is None:
                self._check_length(blocks)
        if runs is None:
            runs = _run_at_most(self.launch, blocks, regions, MOST_FOLLOWED - self.followed)
        if runs is None:
            raise _LongBlocksError
        self.followed += sum(int(run.counts["executed"].sum()) for run in runs)
        if self.followed >= MOST_FOLLOWED or any(_has_lost(run) for run in runs):
            raise _LongBlocksError
        return runs

    def _check_length(self, blocks: Sequence[int]) -> None:
        """Raise _LongBlocksError if counts may depend on data and blocks are long."""
        self.launch.restore()
        if not may_depend_on_data(self.launch.flow):
            return
        if _run_at_most(self.launch, blocks, None, MOST_OF_FOLLOWED) is None:
            raise _LongBlocksError
        self.launch.restore()


def _run_at_most(
    launch: Observable, blocks: Sequence[int], regions: Regions | None, most: int
) -> Sequence[Run] | None:
    """Run blocks; None if a worker executes more than `most` warp instructions."""
    try:
        return launch.run_at_most(blocks, regions, most)
    except FaultError as error:
        if error.fault.kind != LIMIT:
            raise
        return None


def _has_lost(run: Run) -> bool:
    """True if a block makes so many accesses that those of a few blocks have no room."""
    if run.accesses is None or run.accesses.spread:
        return True
    return run.accesses.below.read > MOST_SECTORS // DRAWN_FOR_ACCESSES


def is_internal(function: str) -> bool:
    """True for a function that the compiler adds, such as the slow path of a division."""
    return "__internal_" in function


def _short_name(function: str) -> str:
    """Short name of a function: "div_rn_f64_full" for
    "$__internal_0_$__cuda_sm20_div_rn_f64_full"."""
    return function.rpartition("$")[2].removeprefix("__cuda_").partition("_")[2] or function


def _has_any(may_differ: NDArray[Any]) -> bool:
    return bool(may_differ.view(np.uint64).any())
