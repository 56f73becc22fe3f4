"""Proof that blocks of a launch behave like an executed block.

A few blocks are executed, and their values are followed (`toolkit.sass.origins`). Each of them
represents the blocks within its borders that are whole periods away: these take the same path, and
their addresses shift evenly. Blocks that no executed block represents are executed next, until none
is left. Counts that depend on data, or on the index of the block in a way that is not followed, are
marked: they may differ in the represented blocks.
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
MOST_CLASSES = 256  # with more classes, executing all blocks is not much slower
# Unrepresented blocks that are followed in the first round. Each further round takes twice as many.
FIRST_LOOKED_AT = 3

_OF_ADDRESS = ("sectors", "wavefronts", "conflict_free", "ideal")  # counts that depend on addresses
# counts that depend on the guard
_OF_GUARD = (*_OF_ADDRESS, "predicated", "requests", "taken", "divergent", "refused")

# Function that executes blocks one by one. It follows their values if regions are given.
RunBlocks = Callable[[Sequence[int], Regions | None], Sequence[Run]]


class TooManyClassesError(Exception):
    """Error: blocks form so many classes that a few cannot represent all."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Classes of blocks, each of which an executed block represents: its leader."""

    grid: Grid
    class_of: NDArray[np.uint32]  # class of each block, by its linear index
    leaders: Sequence[int]  # linear index of each class's leader, whose values were followed
    origins: Sequence[Origins]  # origins of the values of each leader
    periods: tuple[int, int, int]  # blocks of a class are whole periods apart along x, y and z
    runs: Mapping[int, Run]  # all blocks that were followed, by linear index
    # instructions at which paths may part within the borders, with the kind of their dependence
    branches: Mapping[int, int]
    regions: Regions  # code that these branches decide about

    def may_differ(self, of_classes: Sequence[int]) -> NDArray[Any]:
        """Mask of counts (core.COUNT): 1 for counts that may differ within one of the classes."""
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
        """Reason why counts may differ between blocks; completes "all blocks executed"."""
        kinds = [self.regions.counts.max(initial=0)]
        for one in self.origins:
            kinds += [one.depends[name].max(initial=0) for name in ("branch", "guard", "address")]
        if max(kinds) == DATA:
            return ": their counts may depend on the data"
        return ": their counts depend on their index in a way that is not proved"

    def _varying(self, number: int) -> tuple[bool, bool, bool]:
        """Axes along which the index of the blocks of a class varies."""
        blocks = np.flatnonzero(self.class_of == number)
        x, y, z = (bool(np.ptp(along)) for along in index_of(blocks, self.grid))
        return x, y, z


@dataclass
class Prover:
    """Prover of the classes of a launch, by following a few blocks."""

    grid: Grid
    flow: Flow
    run: RunBlocks
    most: int  # number of blocks that may be followed
    branches: dict[int, int] = field(default_factory=dict)  # as in `Proof`
    runs: dict[int, Run] = field(default_factory=dict)  # followed blocks, by linear index

    def proof(self) -> Proof:
        """Proof for all blocks. Raises TooManyClassesError if it needs too many classes."""
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
        """Follow more blocks.

        If they show a new branch at which paths may part, all blocks are followed again.
        """
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
        """Class of each block (NOBODY without a class), and the leader of each class.

        Classes are in the order in which their leaders were followed.
        """
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
    """At most `count` of the blocks without a class: the first, the last, and some between."""
    left = np.flatnonzero(class_of == NOBODY)
    if not len(left):
        return []
    chosen = np.unique(np.linspace(0, len(left) - 1, count).astype(np.int64))
    return [int(block) for block in left[chosen]]


def _origins(run: Run) -> Origins:
    assert run.origins is not None
    return run.origins
