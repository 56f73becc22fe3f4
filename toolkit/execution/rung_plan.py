"""Plan of a rung: the blocks to execute, and the proof that they represent all others.

`observation` makes the plans of other kernels. Two symmetries shorten the simulation of large
products, and both are checked:

- Blocks of one region do the same work. Several blocks of each region are executed. If their counts
  differ in a single instruction, all blocks are executed instead.
- The counts of an instruction are affine in K, among values of K with the same remainder modulo the
  unrolled step, the depth of the tile and the alignment of rows. If the blocks would take long,
  they are executed at four small values of K: two define the line, and two must lie on it. A few
  blocks are executed at K itself, and must also lie on the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import Tiling
from analysis.errors import ShapeError
from analysis.geometry import Geometry, ceil_div
from analysis.traffic.grid import ALONE, CLOSING, LEADING
from reports import text
from toolkit.execution.representatives import Region, of_blocks, region_of_blocks, regions
from toolkit.rungs.launch import RungLaunch

# Budgets in thread instructions. If the chosen blocks exceed this one (a tenth of a second of two
# cores), K is reduced. A larger budget checks more elements of the requested product.
FULL_K_BUDGET = 2 * 10**8
# Budget of the few blocks that verify an extrapolation at K itself. No block is executed there if
# one exceeds it.
ANCHOR_BUDGET = 5 * 10**8
ANCHORS = 3  # blocks that verify an extrapolation at K itself, at most
# Budget of the representative blocks if blocks wait for each other: ten seconds of two cores.
APART_BUDGET = 2 * 10**10
# Budget of all blocks together at K itself, which verifies the product. If they exceed it, only the
# blocks that share tiles run together, at about `TOGETHER_K`.
TOGETHER_BUDGET = 10**9
TOGETHER_K = 64
# Largest kinds, of each of which two blocks are executed and must have equal counts.
PROVEN_KINDS = 4
# Budget of all blocks if blocks of one region differ: ten minutes of two cores.
ALL_BLOCKS_BUDGET = 2 * 10**12

# K modulo 8 determines where in a sector a row of A begins. The naive rungs are unrolled by 8, and
# compilers combine up to four such steps, or short phases, into one iteration.
STEPS_AND_SECTORS = 32
# Values of K in periods, plus the remainder: two points define the line, two must lie on it.
POINTS = (2, 3, 4, 6)
TIMED_STEPS = 4  # periods of K at the lower of two replayed points
MANY_WARPS = 16  # per block: such blocks need twice as many periods
WHOLE_K = 2048  # up to this K, blocks are replayed completely: a transient may last until K = 512

# Reasons why a plan does not represent all blocks.
DIFFER = ": blocks of one region of the grid (corner, edge, interior) differ"
NOT_AFFINE = "; counts are not affine in K, so that nothing was extrapolated"
KINDS_DIFFER = ": blocks that share tiles in the same way differ"


@dataclass(frozen=True, kw_only=True)
class BlockKind(Region):
    """Blocks that share tiles in the same way."""

    is_alone: bool  # they compute a tile that they share with no block
    is_last: bool  # the last block of the launch, which cleans up after all others
    is_leading: bool  # they work for all other blocks, before those with tiles begin


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """Blocks to execute, and the blocks that they represent."""

    blocks: int  # number of blocks of the launch
    regions: Sequence[Region]  # groups of blocks with equal counts, with the members to execute
    region_of: NDArray[Any]  # number of the region of each block, by its linear index
    proof: str = ""  # completes the sentence "12 of 64 blocks executed"
    points: Sequence[int] = ()  # values of K to execute instead of K itself
    # numbers of the regions of which one member is also executed at K itself
    anchors: Sequence[int] = ()
    # the regions, if blocks share tiles; the data that a member waits for is provided
    kinds: Sequence[BlockKind] = ()
    together: int = 0  # number of first blocks that are also executed together
    together_k: int = 0  # their K

    @property
    def members(self) -> list[Sequence[int]]:
        return [region.members for region in self.regions]

    @property
    def executed(self) -> int:
        return sum(map(len, self.members))

    @property
    def basis(self) -> str:
        return f"{of_blocks(self.executed, self.blocks)} executed{self.proof}"


def all_blocks(blocks: int) -> BlockPlan:
    """Plan that executes all blocks and needs no proof."""
    each = [Region(population=1, members=(block,)) for block in range(blocks)]
    return BlockPlan(blocks=blocks, regions=each, region_of=np.arange(blocks))


def rung_plans(launch: RungLaunch, has_room: Callable[[], bool]) -> Iterator[BlockPlan]:
    """Yield the plans of a rung. If the proof of one fails, the next one applies.

    `has_room` returns true if whole rows of A and B fit into memory. Raises ShapeError if the next
    plan would take too long.
    """
    everything = launch.geometry.blocks
    if launch.order.kinds is None:
        yield from _region_plans(launch, has_room)
    else:
        yield _kind_plan(launch)
    if (cost := launch.cost * everything) > ALL_BLOCKS_BUDGET:
        raise ShapeError(
            f"blocks that should have equal counts differ, and all {everything:,} would take about "
            f"{cost:.1e} thread instructions: take a smaller shape"
        )
    yield all_blocks(everything)


def _region_plans(launch: RungLaunch, has_room: Callable[[], bool]) -> Iterator[BlockPlan]:
    """Yield plans of some blocks of each region: at small values of K if possible, then at K."""
    everything, k = launch.geometry.blocks, launch.executed.k
    chosen, region_of = regions_of(launch)
    few = BlockPlan(blocks=everything, regions=chosen, region_of=region_of)
    if few.executed < everything:
        others = (
            "; the other blocks count like the executed blocks of the same region of the grid "
            "(corner, edge, interior), which agreed instruction by instruction"
        )
        few = replace(few, proof=others)
    points = k_points(k, period(launch.tiling))
    if points and few.executed * launch.cost > FULL_K_BUDGET:
        anchors = _anchors(few.regions, launch.cost) if has_room() else []
        anchored = f" and by {text.many(len(anchors), 'block')} at K itself" if anchors else ""
        affine = (
            f" at K = {listed(points)} instead of {k:,}: every instruction's counts are affine in "
            f"K, fitted on two of these and verified by the others{anchored}"
        )
        yield replace(few, points=points, anchors=anchors, proof=affine + few.proof)
    yield few


def listed(points: Sequence[int]) -> str:
    return text.listing([f"{k:,}" for k in points])


def regions_of(launch: RungLaunch) -> tuple[list[Region], NDArray[Any]]:
    """Regions of a rung's grid, each with its blocks to execute, and the region of each block.

    If the rung has an `Order`, the region of a block is that of its tile in C, and blocks without a
    tile form one more region.
    """
    grid, tiles = launch.geometry.grid, launch.tiles
    if launch.variant.order is None:
        return regions(grid), region_of_blocks(grid)
    blocks, in_tiles = launch.order.block_of_tile(tiles), (tiles.across, tiles.down, 1)
    of_tiles = [
        replace(found, members=tuple(int(blocks[tile]) for tile in found.members))
        for found in regions(in_tiles)
    ]
    region_of = np.full(prod(grid), len(of_tiles))
    region_of[blocks] = region_of_blocks(in_tiles)
    left_over = np.flatnonzero(region_of == len(of_tiles)).tolist()
    if not left_over:
        return of_tiles, region_of
    members = tuple(sorted({left_over[0], left_over[-1]}))
    return [*of_tiles, Region(population=len(left_over), members=members)], region_of


def _anchors(of: Sequence[Region], cost: float) -> list[int]:
    """Numbers of the regions of which a block is executed at K itself.

    They are the largest region and two corners, as far as the budget allows.
    """
    largest = max(range(len(of)), key=lambda n: of[n].population)
    return list(dict.fromkeys([largest, len(of) - 1, 0]))[: min(ANCHORS, int(ANCHOR_BUDGET / cost))]


def _kind_plan(launch: RungLaunch) -> BlockPlan:
    """Plan that executes each kind of block alone, with all data that it waits for provided."""
    (kinds, region_of), blocks = kinds_of(launch), launch.geometry.blocks
    of_tiles = [kind for kind in kinds if not kind.is_leading]
    if (cost := launch.cost * sum(len(kind.members) for kind in of_tiles)) > APART_BUDGET:
        raise ShapeError(
            f"its blocks share tiles in {len(of_tiles):,} ways, and one block for each way would "
            f"take about {cost:.1e} thread instructions: take a smaller shape"
        )
    together, k = _together(launch, kinds)
    return BlockPlan(
        blocks=blocks,
        regions=kinds,
        region_of=region_of,
        kinds=kinds,
        together=together,
        together_k=k,
        proof=(
            ", with all data that they wait for provided; blocks that begin and end at the same "
            "places in tiles of one region of C (corner, edge, interior) count alike, except for "
            "guarded steps of divisions"
        ),
    )


def kinds_of(launch: RungLaunch) -> tuple[list[BlockKind], NDArray[Any]]:
    """Kinds of blocks, and the kind of each block.

    The largest kind is the first, and the kind of the last block is at the end.
    """
    assert launch.order.kinds is not None
    rows = launch.order.kinds(np.arange(launch.geometry.blocks), launch.tiles)
    found, which = np.unique(rows, axis=0, return_inverse=True)
    populations = np.bincount(which.ravel())
    is_last = found[:, 0] == CLOSING
    ranked = np.lexsort((-populations, is_last))
    kinds: list[BlockKind] = []
    for n in ranked:
        own = np.flatnonzero(which.ravel() == n)
        members = own[[0, -1]] if len(kinds) < PROVEN_KINDS and len(own) > 1 else own[:1]
        how, *_, besides = map(int, found[n])
        kinds.append(
            BlockKind(
                population=len(own),
                members=tuple(members.tolist()),
                is_alone=ALONE in (how, besides if how == CLOSING else how),
                is_last=bool(is_last[n]),
                is_leading=how == LEADING,
            )
        )
    return kinds, np.argsort(ranked)[which.ravel()]


def _together(launch: RungLaunch, kinds: Sequence[BlockKind]) -> tuple[int, int]:
    """Number of blocks to execute together, and their K.

    All blocks at K itself within `TOGETHER_BUDGET`, or else the blocks that share tiles at a small
    K. If all blocks share tiles, none is executed alone at K itself, which would fill its ring of
    phases; the small K then fills the ring more than twice.
    """
    blocks, k, tiling = launch.geometry.blocks, launch.executed.k, launch.tiling
    if launch.cost * blocks > TOGETHER_BUDGET:
        blocks = sum(kind.population for kind in kinds if not kind.is_alone)
        enough = TOGETHER_K
        if not any(kind.is_alone for kind in kinds):
            turns = (2 * tiling.stages + 1) * ceil_div(blocks, launch.tiles.tiles)
            enough = tiling.depth * turns
        k = min(k, enough + k % STEPS_AND_SECTORS)
    if (cost := launch.cost * blocks * k / launch.executed.k) > APART_BUDGET:
        raise ShapeError(
            f"{blocks:,} of its blocks share tiles, and to run them together would take about "
            f"{cost:.1e} thread instructions: take a smaller shape"
        )
    return blocks, k


# Along K.


def period(tiling: Tiling) -> int:
    """Period of K: a multiple of the unrolled steps, of the phases, and of the turns of a ring.

    The ring counts because waits for bulk copies depend on the position of a phase in it.
    """
    turn = tiling.stages if tiling.bulk else 1
    return lcm(STEPS_AND_SECTORS, tiling.depth * turn or 1)


def k_points(k: int, period: int) -> list[int]:
    """Values of K to execute instead of `k`, with its remainder; empty if `k` is small."""
    points = [steps * period + k % period for steps in POINTS]
    return points if points[-1] < k else []


def timed_k(k: int, step: int, geometry: Geometry, *, shares: int = 1) -> list[int]:
    """Values of K whose streams are replayed: `k` itself, or two for a linear extrapolation to `k`.

    They differ by multiples of `step` and `shares`. Waiting times become steady within a few
    phases; blocks of many warps need more phases to average over.
    """
    spacing = lcm(step, shares)
    settled = step * (TIMED_STEPS if geometry.warps_per_block < MANY_WARPS else 2 * TIMED_STEPS)
    first = spacing * ceil_div(settled, spacing)
    points = [first + k % spacing, 2 * first + k % spacing]
    return points if k > WHOLE_K and points[-1] * 1.5 < k else [k]
