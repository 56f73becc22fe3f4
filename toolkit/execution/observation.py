"""Plan by observation: a few blocks of a kernel are executed and represent all blocks.

Blocks form classes. Those of a class take the same path and make the same accesses, in the same
order, and each address shifts evenly with the index of the block. Which blocks are of a class is
proved (`toolkit.execution.proof`), as far as counts depend on neither data nor the index in another
way. What may differ between blocks of a class is estimated from blocks drawn at random
(`toolkit.execution.sampling`). Where that leaves too much open, all blocks are executed, unless
that takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.traffic.groups import grouped
from reports import text
from toolkit.execution.class_accesses import ClassAccesses, class_accesses
from toolkit.execution.executed import Executed, NoPlanError
from toolkit.execution.proof import Proof, Prover, RunBlocks, TooManyClassesError, index_of
from toolkit.execution.representatives import Grid, extrapolated, regions
from toolkit.execution.sampling import (
    NARROW,
    Estimates,
    Metrics,
    drawn_blocks,
    estimated_counts,
    estimates,
)
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import Run
from toolkit.sass.regions import Flow

LEAST_BLOCKS = 256  # of a launch; a smaller one is executed completely
# Blocks drawn at random: so many that at most 2% of all blocks differ unseen if none of these does;
# and, for slow paths of functions alone, so many that at most 9% take one unseen.
DRAWN, DRAWN_FOR_SLOW_PATHS = 149, 32
MOST_SAMPLED = 1 << 28  # warp instructions of random blocks: ten seconds of two cores
MOST_VISITS = 1 << 22  # of all blocks to groups of lines

GLOBAL_ACCESSES = {"LD", "LDG", "LDGSTS", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG"}

MANY = ": they are of too many classes"
MISTAKEN = ": a block counts otherwise than was proved"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the executed blocks say of all blocks.

    `class_of`: class of each block, by its linear index. `work`: what each block executes
    (core.WORK). `estimates`: counters that are not proved.
    `slow_paths`: the only instructions that blocks may execute otherwise are those of slow paths of
    these functions. `accesses`: those of all blocks, None where they are not known. `lost`: why
    the executed blocks do not suffice, if they do not.
    """

    counts: NDArray[Any]
    class_of: NDArray[np.uint32]
    work: NDArray[Any]
    runs: Sequence[Run]
    grid: Grid
    accesses: ClassAccesses | None
    lost: str
    estimates: Estimates | None
    slow_paths: Sequence[str]

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
        return f"{some}; {found.seen(everything, where)}"

    def visits(self) -> NDArray[Any] | None:
        """Accesses of all blocks by groups of lines, None if there are too many."""
        assert self.accesses is not None
        index = np.stack(index_of(np.arange(prod(self.grid)), self.grid), axis=1)
        return grouped(self.accesses.classes, self.accesses.class_of, index, most=MOST_VISITS)


@dataclass(frozen=True, kw_only=True)
class Observable:
    """A launch as it is observed.

    `run` executes blocks; `metrics` makes counters of counts; `functions`: numbers of the first
    instructions of functions, by name. `seed` chooses the random blocks. `is_short`: true if all
    blocks can be executed instead.
    """

    grid: Grid
    flow: Flow
    run: RunBlocks
    metrics: Metrics
    functions: Mapping[str, int]
    seed: bytes
    is_short: Callable[[], bool]


def observed(launch: Observable) -> Observed:
    """What a few blocks say of a launch. Raises NoPlanError if all blocks are to be executed."""
    if prod(launch.grid) < LEAST_BLOCKS:
        raise NoPlanError("")
    return _Observer(launch, Executed(grid=launch.grid, run=launch.run)).observed()


@dataclass
class _Observer:
    """A launch and its blocks executed so far."""

    launch: Observable
    executed: Executed

    def observed(self) -> Observed:
        try:
            proof = self._prover().proof()
        except TooManyClassesError:
            return self._without_proof()
        for block, run in proof.runs.items():
            self.executed.keep(block, run)
        classes = range(len(proof.leaders))
        known = sorted(self.executed.samples)
        populations = np.bincount(proof.class_of, minlength=len(classes))
        executed = np.bincount(proof.class_of[known], minlength=len(classes))
        is_open = np.flatnonzero(populations > executed).tolist()
        may_differ = proof.may_differ(is_open)
        slow_paths = self._slow_paths(proof, may_differ) if _any(may_differ) else []
        drawn = self._drawn(slow_paths, proof.why_open) if _any(may_differ) else []
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
        """Random blocks, which are executed. Raises NoPlanError if all blocks take less time."""
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

    def _standing_for(self, proof: Proof, number: int, is_open: bool) -> list[int]:
        """Blocks whose counts are those of a class: its leader, or all if all are executed."""
        if is_open:
            return [proof.leaders[number]]
        return [b for b in self.executed.samples if proof.class_of[b] == number]

    def _check(self, proof: Proof, may_differ: NDArray[Any], is_open: Sequence[int]) -> None:
        """Raise NoPlanError if a block counts otherwise than the leader of its class."""
        certain = {name: may_differ[name] == 0 for name in COUNT.names or ()}
        for block, sample in self.executed.samples.items():
            if proof.class_of[block] not in is_open:
                continue
            leader = self.executed.samples[proof.leaders[proof.class_of[block]]]
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
        if self.launch.is_short():
            raise NoPlanError(MANY)
        known = sorted({b for one in regions(self.launch.grid) for b in one.members})
        self.executed.execute(known)
        drawn = self._drawn((), MANY)
        counts = self.executed.samples[known[0]].counts
        class_of = np.zeros(self.executed.blocks, dtype=np.uint32)
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
        of_known, of_drawn = ([self.executed.samples[b].counts for b in x] for x in (known, drawn))
        counts, estimated = totals, None
        if _any(may_differ):
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
        return Observed(
            counts=counts,
            class_of=class_of,
            work=self._work(class_of, drawn if _any(may_differ) and not slow_paths else ()),
            runs=[one.run for _, one in sorted(self.executed.samples.items())],
            grid=self.launch.grid,
            accesses=accesses,
            lost=lost,
            estimates=estimated,
            slow_paths=slow_paths,
        )

    def _has_open_accesses(self, may_differ: NDArray[Any]) -> bool:
        """True if requests or sectors of an access to global memory may differ between blocks."""
        rows = np.flatnonzero((may_differ["requests"] > 0) | (may_differ["sectors"] > 0))
        opcodes = {self.launch.flow.instructions[row].opcode for row in rows.tolist()}
        return bool(opcodes & GLOBAL_ACCESSES)

    def _work(self, class_of: NDArray[np.uint32], drawn: Sequence[int]) -> NDArray[Any]:
        """What each block executes: as the executed blocks of its class, or as one of the `drawn`.

        If blocks were drawn, others execute as much as one of these, at random.
        """
        known = np.concatenate([one.run.work for one in self.executed.samples.values()])
        blocks = np.array(list(self.executed.samples))
        of_classes = np.zeros(int(class_of.max()) + 1, dtype=known.dtype)
        of_classes[class_of[blocks]] = known
        found = of_classes[class_of]
        if drawn:
            generator = np.random.default_rng(len(drawn))
            found = known[np.isin(blocks, drawn)][
                generator.integers(len(drawn), size=self.executed.blocks)
            ]
        found[blocks] = known
        return found

    def _prover(self) -> Prover:
        launch, executed = self.launch, self.executed
        return Prover(grid=launch.grid, flow=launch.flow, run=launch.run, most=executed.room)


def is_internal(function: str) -> bool:
    """True for a function that the compiler adds, such as the slow path of a division."""
    return "__internal_" in function


def _plain(function: str) -> str:
    """ "$__internal_0_$__cuda_sm20_div_rn_f64_full" as "div_rn_f64_full"."""
    return function.rpartition("$")[2].removeprefix("__cuda_").partition("_")[2] or function


def _any(may_differ: NDArray[Any]) -> bool:
    return bool(may_differ.view(np.uint64).any())
