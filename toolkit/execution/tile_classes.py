"""Accesses of all blocks of a rung, from those of executed blocks, as input of `groups`.

Blocks of a group do the same on other tiles. A block that computes parts of several tiles is
divided into these parts, because its tiles do not always lie at the same distance from each other.
Groups that make the same accesses are one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES
from analysis.problem import FLOAT_BYTES
from analysis.traffic.block_schedule import Floats
from analysis.traffic.grid import Indices, Pieces
from analysis.traffic.groups import ENTRY, BlockClass, grouped
from analysis.traffic.pieces import READ
from kernels.workspace import row_floats
from toolkit.execution.accesses import steps_of_all_work
from toolkit.execution.block_plan import BlockPlan
from toolkit.execution.tile_accesses import (
    ALL_SECTORS,
    ARRAYS,
    COPY_OF_A,
    COPY_OF_B,
    SECTORS,
    SUMS,
    A,
    B,
    BlockAccesses,
    C,
    UnevenError,
    is_moved,
    tile_shifts,
)
from toolkit.rungs.launch import RungLaunch

# Moments per lifetime of a block: so many that blocks make about FEW_VISITS to groups of lines, in
# two matrices. At 4096, a tenth as many takes 0.05 s less and moves times by up to 2%.
FEW_VISITS, FEWEST_MOMENTS, MOST_MOMENTS = 200_000, 24, 1152
MOST_VISITS = 1 << 22
MOST_ENTRIES = 1 << 20  # four times as many change no DRAM traffic by more than 0.5%
LINES_OF_ARRAY = 1 << 40  # more than any array has
OTHER_TILE = 1e9  # distance to another row or column of tiles: more than any distance along K


@dataclass(frozen=True, kw_only=True)
class Group:
    """Blocks that do the same on other tiles, and those of them that are executed."""

    blocks: Indices
    members: Sequence[int]


class Visits(NamedTuple):
    """Accesses (VISIT) of all blocks, `moments` per lifetime; some are to exchanged sums."""

    visits: NDArray[Any]
    moments: int
    exchanged: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Parts of tiles of a launch, at least one for each block: a block without a tile has one too.

    `first`, `count`: the parts of each block. `index`: row and column of the tile, and the block.
    `begins`, `ends`: fractions of K.
    """

    first: Indices
    count: Indices
    index: Indices
    begins: Floats
    ends: Floats

    @classmethod
    def of(cls, pieces: Pieces, blocks: int) -> Parts:
        idle = np.setdiff1d(np.arange(blocks), pieces.block)
        block = np.append(pieces.block, idle)
        order, none = np.argsort(block, kind="stable"), np.zeros(len(idle), dtype=np.int64)
        row, column = np.append(pieces.row, none), np.append(pieces.column, none)
        found = block[order]
        first = np.searchsorted(found, np.arange(blocks))
        return cls(
            first=first,
            count=np.diff(first, append=len(found)),
            index=np.stack([row[order], column[order], found], axis=1),
            begins=np.append(pieces.begins, 0.0 * none)[order],
            ends=np.append(pieces.ends, 0.0 * none)[order],
        )

    def is_whole(self, block: int) -> bool:
        """True for a block with one whole tile, and for one without a tile."""
        part = self.first[block]
        return bool(self.count[block] == 1 and self.ends[part] - self.begins[part] in (0, 1))


@dataclass(frozen=True, kw_only=True)
class TileClasses:
    """Accesses of the parts of all blocks, by class.

    `class_of` each part; `leaders`: the part of each class whose `accesses` are known; `last`: the
    last step of its block, and that of a read. `repeated`: number of repetitions that accesses in
    arrays from ARRAYS on stand for.
    """

    launch: RungLaunch
    parts: Parts
    class_of: NDArray[np.uint32]
    leaders: Sequence[int]
    accesses: Sequence[BlockAccesses]
    last: Sequence[tuple[float, float]]
    repeated: float = 1.0

    @property
    def lifetimes(self) -> Floats:
        """Time that each block takes, 1 for a typical one.

        Blocks that share no tiles take equally long, others as long as their instructions say.
        """
        first = self.parts.first
        if self.launch.order.kinds is None:
            return (self.parts.ends - self.parts.begins)[first]
        last = np.array([one for one, _ in self.last])[self.class_of[first]]
        found: Floats = last / max(1.0, float(np.median(last[last > 0])))
        return found

    def makes(self, block: int, found: BlockAccesses) -> bool:
        """True if a block with one part makes these accesses, by those of its class."""
        part = self.parts.first[block]
        number = self.class_of[part]
        by = _shift(self.launch, self.parts, self.leaders[number], part)
        return is_moved(self.accesses[number], found, by)

    def visits(self) -> Visits | None:
        """Accesses of all blocks by groups of lines, None if there are too many."""
        shifts, until = tile_shifts(self.launch), self._steps_of_all_work()
        many = FEW_VISITS // (2 * len(self.class_of))
        moments = min(max(many, FEWEST_MOMENTS), MOST_MOMENTS)
        classes = []
        for number, (one, leader) in enumerate(zip(self.accesses, self.leaders, strict=True)):
            work = np.minimum(1.0, one.step / until[number])
            found = _entries(one, np.rint(moments * work).astype(np.int64), shifts)
            x, y, z = self.parts.index[leader].tolist()
            classes.append(BlockClass(entries=found, shifts=shifts, at=(x, y, z)))
        visits = grouped(
            classes, self.class_of, self.parts.index, most=MOST_VISITS, most_entries=MOST_ENTRIES
        )
        if visits is None:
            return None
        visits["block"] = self.parts.index[visits["block"], 2]
        array = visits["line"] // LINES_OF_ARRAY
        if self.repeated > 1:
            times = np.where(array < ARRAYS, 1.0, self.repeated)
            visits["lines"] = np.rint(times * visits["lines"])
        return Visits(visits, moments, array == SUMS)

    def _steps_of_all_work(self) -> Floats:
        """Steps of a block of each class, after which its work is done."""
        last, last_read = np.array(self.last).T
        if self.launch.order.kinds is not None:
            found: Floats = np.maximum(last, 1.0)
            return found
        _, first = np.unique(self.class_of, return_index=True)
        return steps_of_all_work(last[self.class_of], last_read[self.class_of])[first]


Accessed = Callable[[int], BlockAccesses]  # accesses of an executed block


def tile_classes(
    launch: RungLaunch, groups: Sequence[Group], pieces: Pieces, low: Accessed, at_k: Accessed
) -> TileClasses:
    """Classes of all blocks. Raises UnevenError if the members of a group make other accesses.

    `low`: accesses of all members at some K; `at_k`: accesses of a leader at K itself.
    """
    parts = Parts.of(pieces, launch.geometry.blocks)
    class_of = np.zeros(len(parts.index), dtype=np.uint32)
    leaders, accesses, last = list[int](), list[BlockAccesses](), list[tuple[float, float]]()
    whole = dict[int, BlockAccesses]()  # classes of whole tiles, at the K of `low`
    for group in groups:
        leader, *others = group.members
        own, first = low(leader), parts.first
        for block in others:
            _check(launch, parts, (leader, own), (block, low(block)))
        number = None
        if parts.is_whole(leader):
            number = next(
                (
                    number
                    for number, known in whole.items()
                    if is_moved(known, own, _shift(launch, parts, leaders[number], first[leader]))
                ),
                None,
            )
        if number is None:
            number, found = len(leaders), at_k(leader)
            if parts.is_whole(leader):
                whole[number] = own
            accesses += _divided(launch, parts, leader, found)
            leaders += range(first[leader], first[leader] + parts.count[leader])
            last += [_last_steps(found)] * int(parts.count[leader])
        for place in range(parts.count[leader]):
            class_of[first[group.blocks] + place] = number + place
    return TileClasses(
        launch=launch, parts=parts, class_of=class_of, leaders=leaders, accesses=accesses, last=last
    )


def groups_of(launch: RungLaunch, plan: BlockPlan) -> Iterator[Group]:
    """Groups of blocks that a plan takes to do the same on other tiles."""
    if plan.kinds:
        for kind in plan.kinds:
            yield Group(blocks=kind.blocks, members=kind.members)
        return
    if len(plan.regions) == plan.blocks:
        for region in plan.regions:
            yield Group(blocks=np.array(region.members), members=region.members)
        return
    place = _places(launch)
    for region in plan.regions:
        yield Group(
            blocks=np.flatnonzero(place == place[region.members[0]]), members=region.members
        )


def _places(launch: RungLaunch) -> Indices:
    """A number for the place of each block's tile in C: a corner, an edge, the interior or none."""
    found = np.full(launch.geometry.blocks, -1)
    block, row, column = launch.order.with_tiles(launch.tiles)
    down, across = launch.tiles.down, launch.tiles.across
    of_row = np.where(row == 0, 0, np.where(row == down - 1, 2, 1))
    found[block] = 3 * of_row + np.where(column == 0, 0, np.where(column == across - 1, 2, 1))
    return found


def _shift(launch: RungLaunch, parts: Parts, one: int, other: int) -> Indices:
    """Bytes in each array from the accesses of one part to those of another one of its class."""
    found: Indices = tile_shifts(launch) @ (parts.index[other] - parts.index[one])
    return found


def _check(
    launch: RungLaunch,
    parts: Parts,
    one: tuple[int, BlockAccesses],
    other: tuple[int, BlockAccesses],
) -> None:
    """Raise UnevenError unless two blocks make the same accesses, on other tiles."""
    of_one, of_other = (_divided(launch, parts, block, found) for block, found in (one, other))
    if len(of_one) == len(of_other):
        first, first_of_other = parts.first[one[0]], parts.first[other[0]]
        by = (
            _shift(launch, parts, first + place, first_of_other + place)
            for place in range(len(of_one))
        )
        if all(map(is_moved, of_one, of_other, by)):
            return
    raise UnevenError("; blocks that should do the same on other tiles make different accesses")


def _last_steps(found: BlockAccesses) -> tuple[float, float]:
    """Last step of an access, and that of a read."""
    reads = found.step[found.kind == READ]
    return float(found.step.max(initial=0)), float(reads.max(initial=0))


def _divided(
    launch: RungLaunch, parts: Parts, block: int, found: BlockAccesses
) -> list[BlockAccesses]:
    """The accesses of a block for each of its parts: those to the tiles and the K of the part.

    Sums and what is of no tile belong to the first part; they do not shift with the tile.
    """
    first, count = parts.first[block], parts.count[block]
    if count == 1:
        return [found]
    far = np.array([_distances(launch, parts, first + place, found) for place in range(count)])
    nearest = far.argmin(axis=0)
    return [found[nearest == place] for place in range(count)]


def _distances(launch: RungLaunch, parts: Parts, part: int, found: BlockAccesses) -> Floats:
    """How far the accesses are outside the tiles of a part and its range of K."""
    shape, tiling, copies = launch.executed, launch.tiling, launch.copies
    row, column, _ = parts.index[part].tolist()
    rows = row * tiling.block_m, (row + 1) * tiling.block_m
    columns = column * tiling.block_n, (column + 1) * tiling.block_n
    along_k = parts.begins[part] * shape.k, parts.ends[part] * shape.k
    arrays = (
        (A, 0, shape.k, rows, along_k),
        (B, 0, shape.n, along_k, columns),
        (C, 0, shape.n, rows, columns),
        (COPY_OF_A, copies.a, row_floats(shape.k), rows, along_k),
        (COPY_OF_B, copies.b, row_floats(shape.n), along_k, columns),
    )
    far = np.zeros(len(found))
    for array, offset, pitch, of_rows, of_columns in arrays:
        if offset is None:
            continue
        own = found.array == array
        y, x = np.divmod(found.last_float[own] - offset // FLOAT_BYTES, pitch)
        far[own] = _outside(y, of_rows, is_tile=of_rows is rows)
        far[own] += _outside(x, of_columns, is_tile=of_columns is columns)
    return far


def _outside(x: Indices, within: tuple[float, float], *, is_tile: bool) -> Floats:
    begin, end = within
    found: Floats = np.maximum(begin - x, 0.0) + np.maximum(x + 1 - end, 0.0)
    return OTHER_TILE * found if is_tile else found


def _entries(one: BlockAccesses, moment: Indices, shifts: Indices) -> NDArray[Any]:
    """Accesses as ENTRY: of whole lines that are accessed at once, of the parts of other lines that
    are accessed in one moment, and of sectors of arrays whose lines do not shift as a whole."""
    shift_as_whole = (shifts % LINE_BYTES == 0).all(axis=1)[one.array]
    is_full = shift_as_whole & (one.mask == ALL_SECTORS)
    full, partly = np.flatnonzero(is_full), np.flatnonzero(shift_as_whole & ~is_full)
    key = (one.line[partly] << 14) | (moment[partly] << 2) | one.kind[partly]
    key |= one.array[partly].astype(np.int64) << 60
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    masks = one.mask[partly[order]]
    masks = np.bitwise_or.reduceat(masks, begins) if len(begins) else masks
    others = np.flatnonzero(~shift_as_whole)
    row, sector = np.nonzero(one.mask[others][:, None] >> np.arange(SECTORS) & 1)
    rows = np.concatenate([full, partly[order[begins]], others[row]])
    array = one.array[rows].astype(np.int64)
    found = np.zeros(len(rows), dtype=ENTRY)
    found["sector"] = SECTORS * (one.line[rows] + array * LINES_OF_ARRAY)
    found["sector"][len(rows) - len(row) :] += sector.astype(np.uint64)
    found["moment"], found["kind"], found["shift"] = moment[rows], one.kind[rows], array
    found["mask"] = np.concatenate([one.mask[full], masks, np.ones(len(row), np.uint8)])
    return found[np.argsort(array, kind="stable")]  # runs of one shift
