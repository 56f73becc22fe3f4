"""Which blocks of a launch provably do the same as an executed one.

A few blocks are executed and their values followed (`toolkit.sass.origins`). Each of them stands
for the blocks within its borders, whole periods away: they take the same path, and their addresses
are shifted evenly. Where no executed block stands for a block, that one is executed next, until
there is none left. What depends on data, or on the index of the block in a way that is not
followed, is marked: there, other blocks may count otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.execution.representatives import Grid
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import Run
from toolkit.sass.origins import DATA, Origins, inside
from toolkit.sass.regions import Flow, Regions

NOBODY = np.uint32(0xFFFFFFFF)
MOST_CLASSES = 256  # of blocks: with more, executing all of them is not much slower
FIRST_LOOKED_AT = 3  # blocks that no other stands for, at a time; then twice as many, and so on

# Counts that a guard decides about, and those that addresses decide about.
_OF_ADDRESS = ("sectors", "wavefronts", "conflict_free", "ideal")
_OF_GUARD = (*_OF_ADDRESS, "predicated", "requests", "taken", "divergent", "refused")

# Runs blocks, each by itself, and follows their values if there are regions.
RunBlocks = Callable[[Sequence[int], Regions | None], Sequence[Run]]


class TooManyClassesError(Exception):
    """Blocks are of so many classes that a few cannot represent them."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Classes of blocks, each of which an executed block stands for.

    `class_of`: class of each block, by its linear index; `leaders`: the block of each class whose
    values were followed. `origins` are theirs. `periods`: blocks of a class are whole periods
    apart. `runs`: all blocks that were followed. `branches`: instructions at which blocks may part
    for another reason than the borders, with what they depend on, and their `regions`.
    """

    grid: Grid
    class_of: NDArray[np.uint32]
    leaders: Sequence[int]
    origins: Sequence[Origins]
    periods: tuple[int, int, int]
    runs: Mapping[int, Run]
    branches: Mapping[int, int]
    regions: Regions

    def may_differ(self, of_classes: Sequence[int]) -> NDArray[Any]:
        """Counts (core.COUNT) that may differ between blocks of some of the classes: 1, others
        0."""
        length = len(self.regions.counts)
        guarded, addressed = np.zeros((2, length), dtype=np.bool_)
        for k in of_classes:
            origins = self.origins[k]
            guarded |= (origins.depends["branch"] > 0) | (origins.depends["guard"] > 0)
            addressed |= origins.depends["address"] > 0
            if origins.parts(self._varying(k)):
                addressed |= origins.depends["parted"] > 0
        found = np.zeros(length, dtype=COUNT)
        for name in COUNT.names or ():
            found[name] = (
                (self.regions.counts > 0)
                | (guarded & (name in _OF_GUARD))
                | (addressed & (name in _OF_ADDRESS))
            )
        return found

    @property
    def why_open(self) -> str:
        """Why counts may differ between blocks; completes "all blocks executed"."""
        kinds = [self.regions.counts.max(initial=0)]
        for one in self.origins:
            kinds += [one.depends[name].max(initial=0) for name in ("branch", "guard", "address")]
        if max(kinds) == DATA:
            return ": they may differ with their data"
        return ": they differ with their index in another way than by comparisons"

    def _varying(self, number: int) -> tuple[bool, bool, bool]:
        """Axes along which the index of the blocks of a class varies."""
        blocks = np.flatnonzero(self.class_of == number)
        x, y, z = (bool(np.ptp(along)) for along in index_of(blocks, self.grid))
        return x, y, z


@dataclass
class Prover:
    """Follows blocks of a launch. `most`: number of blocks to follow."""

    grid: Grid
    flow: Flow
    run: RunBlocks
    most: int
    branches: dict[int, int] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)

    def proof(self) -> Proof:
        """Classes of all blocks. Raises TooManyClassesError."""
        pending, count = [self._number([n // 2 for n in self.grid])], FIRST_LOOKED_AT
        while pending:
            if len(self.runs) + len(pending) > min(self.most, MOST_CLASSES):
                raise TooManyClassesError
            self._follow(pending)
            class_of, leaders = self._classes()
            pending, count = _left_out(class_of, count), 2 * count
        return Proof(
            grid=self.grid,
            class_of=class_of,
            leaders=leaders,
            origins=[_origins(self.runs[block]) for block in leaders],
            periods=self._periods(),
            runs=self.runs,
            branches=self.branches,
            regions=self.flow.regions(self.branches),
        )

    def _follow(self, blocks: Sequence[int]) -> None:
        """Follow more blocks, and all of them again if they show another branch that may part
        them."""
        while True:
            found = self.run(blocks, self.flow.regions(self.branches))
            self.runs |= zip(blocks, found, strict=True)
            known = dict(self.branches)
            for run in found:
                kinds = _origins(run).depends["branch"]
                for pc in np.flatnonzero(kinds).tolist():
                    known[pc] = max(known.get(pc, 0), int(kinds[pc]))
            if known == self.branches:
                return
            self.branches, blocks = known, list(self.runs)

    def _periods(self) -> tuple[int, int, int]:
        x, y, z = np.max([_origins(run).periods for run in self.runs.values()], axis=0).tolist()
        return x, y, z

    def _classes(self) -> tuple[NDArray[np.uint32], list[int]]:
        """Class of each block, in the order of the blocks that were followed, and its leader."""
        class_of = np.full(self.grid[::-1], NOBODY)
        leaders, periods = list[int](), self._periods()
        for block, run in self.runs.items():
            x, y, z = at = index_of(block, self.grid)
            if class_of[z, y, x] != NOBODY:
                continue
            same_place = tuple(
                slice(k % period, None, period) for k, period in zip(at, periods, strict=True)
            )[::-1]
            part = class_of[same_place]
            part[inside(_origins(run), at, self.grid)[same_place] & (part == NOBODY)] = len(leaders)
            leaders.append(block)
        return class_of.ravel(), leaders

    def _number(self, index: Sequence[int]) -> int:
        return index[0] + self.grid[0] * (index[1] + self.grid[1] * index[2])


Index = TypeVar("Index", int, NDArray[np.int64])


def index_of(block: Index, grid: Grid) -> tuple[Index, Index, Index]:
    """Index along each axis of blocks, given by their linear indices."""
    x, y, _ = grid
    return block % x, block // x % y, block // x // y


def far_apart(blocks: NDArray[np.int64], grid: Grid) -> list[int]:
    """Some of the blocks: the first, the last, and the ends along each axis."""
    ends = {int(blocks[0]), int(blocks[-1])}
    for along in index_of(blocks, grid):
        ends |= {int(blocks[along.argmin()]), int(blocks[along.argmax()])}
    return sorted(ends)


def _left_out(class_of: NDArray[np.uint32], count: int) -> list[int]:
    """At most `count` blocks of those that are of no class: the first, the last, and some
    between."""
    left = np.flatnonzero(class_of == NOBODY)
    if not len(left):
        return []
    chosen = np.unique(np.linspace(0, len(left) - 1, count).astype(np.int64))
    return [int(block) for block in left[chosen]]


def _origins(run: Run) -> Origins:
    assert run.origins is not None
    return run.origins
