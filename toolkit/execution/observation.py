"""Plan by observation: a few blocks of a kernel are executed and represent all blocks.

Blocks form classes. Those of a class execute the same instructions equally often and make the same
accesses, in the same order, and each address shifts evenly with the index of the block. Where rows
begin anywhere in a line, only every second, fourth, … block of an axis is in the same class: its
period. Where the classes are in the grid is found by subdivision: a box of such blocks whose
corners and centre are of one class is taken to be of that class, another one is divided. In the end
blocks chosen at random, with a seed that depends on the launch alone, must be what the plan says
they are, to the sector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import product
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.linalg import matrix_rank, pinv
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.groups import ENTRY, BlockClass, grouped
from analysis.traffic.pieces import READ
from toolkit.execution.accesses import AT_ONCE, steps_of_all_work
from toolkit.execution.representatives import Grid, Region, RegionCounts, extrapolated
from toolkit.sass.accesses import Below
from toolkit.sass.machine import Run

LEAST_BLOCKS = 256  # of a launch; a smaller one is executed completely
MOST_PART = 0.25  # of all blocks, for the plan; beyond it all blocks are executed
MOST_EXECUTED, MOST_SECTORS = 1024, 1 << 25  # blocks, and sectors that they access: 0.5 GB
RANDOM_BLOCKS = 32
SMALL_BOX = 4  # blocks: a box is executed completely rather than divided
PERIODS = (1, 2, 4, 8, 16, 32)  # blocks: the last one is that of odd rows of floats in lines
REPEATS = 3  # of a period, before it is taken for one
# Moments per lifetime of a block: accesses in one moment are one visit. The finest is taken with
# which all blocks make at most so many visits to groups of lines.
MOMENTS, FEW_VISITS, MOST_VISITS = (1152, 384, 192, 96, 48, 24), 600_000, 1 << 22
# Counts that may depend on the data although all else agrees: of instructions without accesses,
# how many threads had a true guard.
OF_DATA = ("predicated", "refused", "reissued_threads")
STANDARD_ERRORS = 2.0  # of a 95% interval

DIFFER = ": blocks differ too much for a few to represent them"
LOST = ": its blocks make too many accesses"

Box = tuple[range, range, range]
Kind = tuple[str, tuple[int, int, int]]
Floats = NDArray[np.float64]


class NoPlanError(Exception):
    """Why all blocks are to be executed; completes the sentence "all blocks executed"."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One executed block. Its accesses are one row per sector, in order."""

    run: Run
    sectors: NDArray[np.int64]
    rows: NDArray[Any]  # step, warp and kind of each
    below: Below
    key: str


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts of all blocks, and their accesses by class.

    `class_of`: class of each block, by its linear index. `steps`: instructions of the longest warp
    of a block of each class. `interval`: relative half width of the 95% interval of the counts in
    OF_DATA that differ between blocks of a class, 0 if none does.
    """

    counts: NDArray[Any]
    classes: Sequence[BlockClass]
    moments: int
    class_of: NDArray[np.uint32]
    steps: NDArray[np.float64]
    below: Below
    runs: Sequence[Run]
    interval: float
    grid: Grid

    @property
    def basis(self) -> str:
        kinds = f"{len(self.classes)} classes" if len(self.classes) > 1 else "one class"
        found = (
            f"{len(self.runs):,} of {prod(self.grid):,} blocks executed, in {kinds} of equal counts"
            f" and evenly shifted addresses; {RANDOM_BLOCKS} of them, chosen at random, are as the "
            "others predict"
        )
        if self.interval:
            found += f"; threads with a true guard are estimated, ±{100 * self.interval:.1g}% (95%)"
        return found

    @property
    def lifetimes(self) -> NDArray[np.float64]:
        """1 for each block with work, 0 for blocks that exit at once."""
        found: NDArray[np.float64] = np.where(self.steps > AT_ONCE * self.steps.max(), 1.0, 0.0)
        return found[self.class_of]

    def visits(self) -> NDArray[Any] | None:
        """Accesses of all blocks by groups of lines, None if there are too many."""
        return grouped(self.classes, self.class_of, self.grid, most=MOST_VISITS)


@dataclass
class _Observer:
    """Blocks executed so far. `execute`: function from blocks to their runs."""

    grid: Grid
    execute: Callable[[Sequence[int]], Sequence[Run]]
    samples: dict[int, Sample] = field(default_factory=dict)

    def sample(self, blocks: Sequence[int]) -> None:
        """Execute the blocks that were not yet. Raises NoPlanError if they are too many."""
        new = sorted(set(blocks) - self.samples.keys())
        if len(self.samples) + len(new) > min(MOST_EXECUTED, int(MOST_PART * prod(self.grid))):
            raise NoPlanError(DIFFER)
        for block, run in zip(new, self.execute(new) if new else (), strict=True):
            if run.accesses is None or run.accesses.spread:
                raise NoPlanError(LOST)
            self.samples[block] = _sample(run)
            if sum(len(one.sectors) for one in self.samples.values()) > MOST_SECTORS:
                raise NoPlanError(LOST)

    @cached_property
    def periods(self) -> tuple[int, int, int]:
        """Of each axis: every how many blocks counts repeat, and addresses shift evenly."""
        x, y, z = (self._period(axis) for axis in range(3))
        return x, y, z

    def _period(self, axis: int) -> int:
        """1 as well if there is none."""
        index = [n // 2 for n in self.grid]
        centre, after = self.number(index), self.grid[axis] - index[axis] - 1
        stride = prod(self.grid[:axis])
        for period in PERIODS:
            if REPEATS * period >= after:
                break
            blocks = [centre + stride * period * n for n in range(REPEATS + 1)]
            self.sample(blocks)
            samples = [self.samples[block] for block in blocks]
            if len({one.key for one in samples}) == 1:
                moved = np.diff([one.sectors for one in samples], axis=0)
                if (moved == moved[0]).all():
                    return period
        return 1

    def kind(self, block: int) -> Kind:
        """Blocks of one kind may be of one class."""
        x, y, z = (at % period for at, period in zip(self.index(block), self.periods, strict=True))
        return self.samples[block].key, (x, y, z)

    def number(self, index: Sequence[int]) -> int:
        return index[0] + self.grid[0] * (index[1] + self.grid[1] * index[2])

    def index(self, block: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return block % x, block // x % y, block // x // y

    def corners(self, box: Box) -> list[int]:
        """Corners and centre of a box."""
        ends = [sorted({part[0], part[-1]}) for part in box]
        centre = [part[len(part) // 2] for part in box]
        return [self.number(index) for index in (*product(*ends), centre)]


def observed(
    grid: Grid, execute: Callable[[Sequence[int]], Sequence[Run]], seed: bytes
) -> Observed:
    """The plan of a launch. Raises NoPlanError if all blocks are to be executed.

    `execute` runs blocks and records their accesses; `seed` chooses the random blocks.
    """
    if prod(grid) < LEAST_BLOCKS:
        raise NoPlanError("")
    observer = _Observer(grid=grid, execute=execute)
    kinds: dict[Kind, int] = {}
    class_of = np.zeros(grid[::-1], dtype=np.uint32)
    for x, y, z in _leaves(observer):
        kind = observer.kind(observer.number((x[0], y[0], z[0])))
        class_of[np.ix_(z, y, x)] = kinds.setdefault(kind, len(kinds))
    flat = class_of.ravel()
    random = np.random.default_rng(int.from_bytes(sha256(seed).digest()[:8]))
    chosen = random.choice(prod(grid), size=RANDOM_BLOCKS, replace=False).tolist()
    observer.sample(chosen)
    if any(kinds.get(observer.kind(block)) != flat[block] for block in observer.samples):
        raise NoPlanError(": blocks chosen at random differ from their neighbours")
    return _of_classes(observer, list(kinds), flat)


def _leaves(observer: _Observer) -> list[Box]:
    """Boxes of blocks of one class each."""
    pending, leaves = list(_first_boxes(observer)), list[Box]()
    while pending:
        observer.sample([block for box in pending for block in _looked_at(observer, box)])
        divided: list[Box] = []
        for box in pending:
            if len({observer.samples[b].key for b in _looked_at(observer, box)}) == 1:
                leaves.append(box)
            elif prod(map(len, box)) <= SMALL_BOX:
                leaves += [(x, y, z) for x, y, z in product(*map(_single, box))]
            else:
                divided += _halves(box)
        pending = divided
    return leaves


def _looked_at(observer: _Observer, box: Box) -> list[int]:
    if prod(map(len, box)) <= SMALL_BOX:
        return [observer.number(index) for index in product(*box)]
    return observer.corners(box)


def _first_boxes(observer: _Observer) -> Iterator[Box]:
    """The corners, edges and the interior of a grid, by the place in a period."""
    cuts = [
        [range(1), *(range(1 + k, n - 1, step) for k in range(step)), range(max(1, n - 1), n)]
        for n, step in zip(observer.grid, observer.periods, strict=True)
    ]
    yield from ((x, y, z) for x, y, z in product(*cuts) if x and y and z)


def _single(part: range) -> list[range]:
    return [range(n, n + 1) for n in part]


def _halves(box: Box) -> list[Box]:
    axis = max(range(3), key=lambda n: len(box[n]))
    part = box[axis]
    middle = len(part) // 2
    found = []
    for half in (part[:middle], part[middle:]):
        x, y, z = (half if n == axis else whole for n, whole in enumerate(box))
        found.append((x, y, z))
    return found


def _sample(run: Run) -> Sample:
    assert run.accesses is not None
    rows = run.accesses.rows
    row, sector = np.nonzero(rows["mask"][:, None] >> np.arange(4) & 1)
    sectors = rows["line"][row].astype(np.int64) * 4 + sector
    how = repack_fields(rows[["step", "warp", "kind"]])[row]
    exact = run.counts.copy()
    for name in OF_DATA:
        exact[name][run.counts["requests"] == 0] = 0
    digest = sha256(exact.tobytes())
    digest.update(how.tobytes())
    return Sample(
        run=replace(run, accesses=None),
        sectors=sectors,
        rows=how,
        below=run.accesses.below,
        key=digest.hexdigest(),
    )


def _of_classes(
    observer: _Observer, kinds: Sequence[Kind], class_of: NDArray[np.uint32]
) -> Observed:
    populations = np.bincount(class_of, minlength=len(kinds)).tolist()
    classes, of_regions, estimated = list[BlockClass](), list[RegionCounts](), np.zeros(2)
    asked = Below(read=0, written_by_warps=0)
    for kind, population in zip(kinds, populations, strict=True):
        members = sorted(block for block in observer.samples if observer.kind(block) == kind)
        classes.append(_shifted(observer, members))
        asked = asked + observer.samples[members[0]].below.times(population)
        counts = [observer.samples[block].run.counts for block in members]
        of_regions.append((Region(population=population, members=tuple(members)), counts))
        estimated += _estimated(counts, population)
    steps, moments, classes = _with_moments(classes, class_of)
    return Observed(
        counts=extrapolated(of_regions),
        classes=classes,
        moments=moments,
        class_of=class_of,
        steps=steps,
        below=asked,
        runs=[one.run for _, one in sorted(observer.samples.items())],
        interval=STANDARD_ERRORS * sqrt(estimated[1]) / estimated[0] if estimated[0] else 0.0,
        grid=observer.grid,
    )


def _estimated(counts: Sequence[NDArray[Any]], population: int) -> Floats:
    """Sum of the counts in OF_DATA that differ between blocks of a class, and its variance."""
    found = np.zeros(2)
    for name in OF_DATA:
        values = np.array([one[name] for one in counts], dtype=np.float64)
        differ = (values != values[0]).any(axis=0)
        if differ.any() and population > len(counts):
            sums = values[:, differ].sum(axis=1)
            found += sums.mean() * population, sums.var(ddof=1) / len(sums) * population**2
    return found


def _shifted(observer: _Observer, members: Sequence[int]) -> BlockClass:
    """The accesses of a class, with the shifts that hold for all of its executed members."""
    first, *others = (observer.samples[block] for block in members)
    at = np.array([observer.index(block) for block in members], dtype=np.int64)
    shifts = np.zeros((3, len(first.sectors)), dtype=np.int64)
    if others:
        steps = at[1:] - at[0]
        rank = matrix_rank(steps)
        few = next(n for n in range(1, len(at)) if matrix_rank(steps[:n]) == rank)
        moved = [SECTOR_BYTES * (one.sectors - first.sectors) for one in others]
        shifts = np.rint(pinv(steps[:few]) @ np.array(moved[:few])).astype(np.int64)
        if any((step @ shifts != by).any() for step, by in zip(steps, moved, strict=True)):
            raise NoPlanError(": addresses do not shift evenly with the index of the block")
    kinds, which = np.unique(shifts, axis=1, return_inverse=True)
    entries = np.zeros(len(first.rows), dtype=ENTRY)
    entries["sector"], entries["shift"], entries["mask"] = first.sectors, which.ravel(), 1
    entries["kind"], entries["moment"] = first.rows["kind"], first.rows["step"]
    by_period = kinds * np.array(observer.periods)[:, None]
    whole = (by_period % LINE_BYTES == 0).all(axis=0)  # lines shift to lines
    return BlockClass(
        entries=_by_line(entries, whole), shifts=kinds.T, at=observer.index(members[0])
    )


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
) -> tuple[Floats, int, list[BlockClass]]:
    """Steps of each class, moments per lifetime, and classes with moments in place of steps."""
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
    return steps, moments, found


def _last_step(entries: NDArray[Any]) -> float:
    return float(entries["moment"].max(initial=0))


def _at_moments(one: BlockClass, moments: int, last: float) -> BlockClass:
    entries = one.entries.copy()
    work = np.minimum(1.0, entries["moment"] / last)
    entries["moment"] = np.rint(moments * work).astype(np.uint32)
    return replace(one, entries=np.unique(entries))
