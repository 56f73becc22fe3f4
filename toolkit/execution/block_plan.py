"""Which blocks of a launch are executed, and what proves that they stand for all others.

A kernel that is no rung executes all of its blocks, or some of each place in the grid (a corner, an
edge, the interior). For rungs two symmetries keep large products short. Neither is assumed:

- Blocks of one place in the grid do the same work. Several of each are executed; where their counts
  differ in a single instruction, every block is executed instead.
- Counts of an instruction are affine in K among values of K that leave the same remainder in
  everything that matters: the unrolled step, the tile's depth, the alignment of rows. Where the
  blocks would take long, they are executed at four small values of K, two for a line and two more
  that must lie on it, and a few of them at K itself, which must too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import lcm, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.access import Tiling
from analysis.errors import ShapeError
from analysis.geometry import Geometry, ceil_div
from analysis.traffic.grid import ALONE, CLOSING, LEADING
from reports import text
from toolkit.execution.predict import blocks_of_an_sm
from toolkit.execution.representatives import Grid, Place, places
from toolkit.rungs.launch import RungLaunch

Blocks = Literal["all", "representative"] | int

PERIOD = 8  # of the places in a sector at which a row of floats may begin

# Thread instructions of the chosen blocks above which K is made smaller: a tenth of a second of
# two cores. A larger budget checks more elements of the very product that was asked for.
FULL_K_BUDGET = 2 * 10**8
# Of the few blocks that prove an extrapolation at K itself; beyond it, nothing is executed there.
ANCHOR_BUDGET = 5 * 10**8
ANCHORS = 3
# Of the blocks that stand for all, where they wait for each other: ten seconds of two cores.
APART_BUDGET = 2 * 10**10
# Of all blocks together at K itself, which proves that the product is what they end up with; beyond
# it those that share tiles prove it at a small K.
TOGETHER_BUDGET = 10**9
TOGETHER_K = 64
PROVEN_KINDS = 4  # of which two blocks are executed, and must count the same
# Of all blocks, where those of one place differ: ten minutes of two cores.
ALL_BLOCKS_BUDGET = 2 * 10**12

# A row of A begins in a sector by K modulo 8. The naive rungs are unrolled by 8, and compilers
# make up to four such steps, or short phases, one iteration.
STEPS_AND_SECTORS = 32
POINTS = (2, 3, 4, 6)  # values of K in periods, above its remainder: a line, and two more on it
# Periods of K at the lower of two replayed points; twice as many for blocks of many warps.
TIMED_STEPS, MANY_WARPS = 4, 16

# Why a plan does not stand for all blocks.
DIFFER = ": blocks of one place in the grid (corner, edge, interior) differ"
NOT_AFFINE = "; counts are not affine in K, so that nothing was extrapolated"
KINDS_DIFFER = ": blocks that share tiles alike differ"
WAIT = ": blocks wait for others"


@dataclass(frozen=True, kw_only=True)
class Kind(Place):
    """Blocks that work with others in one way; do they have tiles to themselves?"""

    blocks: NDArray[Any]
    is_alone: bool
    is_last: bool
    is_leading: bool


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """Blocks to execute, and those that they stand for.

    `places` are groups of the `blocks` of a launch that count alike, each with the members that are
    executed, at `points` if there are any instead of K itself. Of the places numbered in `anchors`
    one member is executed at K itself besides. Where blocks share tiles, `kinds` are the places,
    whose members find all that they wait for, and the first `together` are executed together at
    K = `together_k`. `proof` is the end of the sentence "so many blocks executed".
    """

    blocks: int
    places: Sequence[Place]
    proof: str = ""
    points: Sequence[int] = ()
    anchors: Sequence[int] = ()
    kinds: Sequence[Kind] = ()
    together: int = 0
    together_k: int = 0

    @property
    def members(self) -> list[Sequence[int]]:
        return [place.members for place in self.places]

    @property
    def executed(self) -> int:
        return sum(map(len, self.members))

    @property
    def basis(self) -> str:
        return f"{of_blocks(self.executed, self.blocks)} executed{self.proof}"


def of_blocks(executed: int, everything: int) -> str:
    if everything == 1:
        return "the one block"
    return f"{'all' if executed == everything else f'{executed:,} of'} {everything:,} blocks"


def all_blocks(blocks: int) -> BlockPlan:
    """The plan that needs no proof."""
    each = [Place(population=1, members=(block,)) for block in range(blocks)]
    return BlockPlan(blocks=blocks, places=each)


def plans(grid: Grid, blocks: Blocks) -> Iterator[BlockPlan]:
    """The plans of a kernel that is no rung: the next is for one whose proof fails."""
    everything = prod(grid)
    few = BlockPlan(blocks=everything, places=places(grid, PERIOD))
    if isinstance(blocks, int):
        few = replace(few, places=limited(few.places, blocks) if blocks < everything else ())
    if blocks != "all" and 0 < few.executed < everything:
        yield few
    yield all_blocks(everything)


def limited(chosen: Sequence[Place], most: int) -> list[Place]:
    """About `most` members of the places in all, at least one of each, by turns."""
    taken = [1] * len(chosen)
    left = most - len(chosen)
    while left > 0:
        before = left
        for k, place in enumerate(chosen):
            if left > 0 and taken[k] < len(place.members):
                taken[k] += 1
                left -= 1
        if left == before:
            break
    return [
        replace(place, members=place.members[:count])
        for place, count in zip(chosen, taken, strict=True)
    ]


# Of rungs.


def rung_plans(launch: RungLaunch, has_room: Callable[[], bool]) -> Iterator[BlockPlan]:
    """The plans of a rung, of which each is for where the proof of the one before fails.

    `has_room` says whether whole rows of A and B fit into memory. Raises ShapeError where the
    next plan would take too long.
    """
    everything = launch.geometry.blocks
    if launch.order.kinds is None:
        yield from _of_places(launch, has_room)
    else:
        yield _of_kinds(launch)
    if (cost := launch.cost * everything) > ALL_BLOCKS_BUDGET:
        raise ShapeError(
            f"blocks that should count alike differ, and all {everything:,} would take about "
            f"{cost:.1e} thread instructions: take a smaller shape"
        )
    yield all_blocks(everything)


def _of_places(launch: RungLaunch, has_room: Callable[[], bool]) -> Iterator[BlockPlan]:
    """Some blocks of each place at small values of K, if there are any, and at K itself."""
    everything, k = launch.geometry.blocks, launch.executed.k
    few = BlockPlan(blocks=everything, places=places_of(launch))
    if few.executed < everything:
        others = (
            "; the other blocks count like those of their place in the grid (corner, edge, "
            "interior), which agreed instruction by instruction"
        )
        few = replace(few, proof=others)
    points = k_points(k, period(launch.tiling))
    if points and few.executed * launch.cost > FULL_K_BUDGET:
        anchors = _anchors(few.places, launch.cost) if has_room() else []
        plural = "s" if len(anchors) > 1 else ""
        anchored = f" and by {len(anchors)} block{plural} at K itself" if anchors else ""
        affine = (
            f" at K = {listed(points)} instead of {k:,}: every instruction's counts are affine in "
            f"K, fitted on two of these and verified by the others{anchored}"
        )
        yield replace(few, points=points, anchors=anchors, proof=affine + few.proof)
    yield few


def listed(points: Sequence[int]) -> str:
    return text.listing([f"{k:,}" for k in points])


def places_of(launch: RungLaunch) -> list[Place]:
    """The places of a rung's grid, each with its blocks to execute.

    Where blocks take tiles in an order of their own, it is the place of the tile in C that makes
    them alike; those that are left over are one more place.
    """
    grid, tiles = launch.geometry.grid, launch.tiles
    if launch.variant.order is None:
        return places(grid)
    blocks = launch.order.block_of_tile(tiles)
    of_tiles = [
        replace(found, members=tuple(int(blocks[tile]) for tile in found.members))
        for found in places((tiles.across, tiles.down, 1))
    ]
    left_over = np.setdiff1d(np.arange(prod(grid)), blocks).tolist()
    if not left_over:
        return of_tiles
    members = tuple(sorted({left_over[0], left_over[-1]}))
    return [*of_tiles, Place(population=len(left_over), members=members)]


def _anchors(of: Sequence[Place], cost: float) -> list[int]:
    """The places of which a block is executed at K itself: the largest, and corners."""
    largest = max(range(len(of)), key=lambda n: of[n].population)
    return list(dict.fromkeys([largest, len(of) - 1, 0]))[: min(ANCHORS, int(ANCHOR_BUDGET / cost))]


def _of_kinds(launch: RungLaunch) -> BlockPlan:
    """Each kind of block by itself, with all that it waits for already there."""
    kinds, blocks = kinds_of(launch), launch.geometry.blocks
    of_tiles = [kind for kind in kinds if not kind.is_leading]
    if (cost := launch.cost * sum(len(kind.members) for kind in of_tiles)) > APART_BUDGET:
        raise ShapeError(
            f"its blocks share tiles in {len(of_tiles):,} ways, and a block of each would take "
            f"about {cost:.1e} thread instructions: take a smaller shape"
        )
    together, k = _together(launch, kinds)
    return BlockPlan(
        blocks=blocks,
        places=kinds,
        kinds=kinds,
        together=together,
        together_k=k,
        proof=(
            ", with all that they wait for already there; those that begin and end at the same "
            "places in tiles of one place in C (corner, edge, interior) count alike, but for "
            "guarded steps of divisions"
        ),
    )


def kinds_of(launch: RungLaunch) -> list[Kind]:
    """Of blocks that share tiles, the largest first, the last block last of all."""
    assert launch.order.kinds is not None
    rows = launch.order.kinds(np.arange(launch.geometry.blocks), launch.tiles)
    found, which = np.unique(rows, axis=0, return_inverse=True)
    populations = np.bincount(which.ravel())
    kinds: list[Kind] = []
    for n in np.argsort(-populations, kind="stable"):
        own = np.flatnonzero(which.ravel() == n)
        members = own[[0, -1]] if len(kinds) < PROVEN_KINDS and len(own) > 1 else own[:1]
        how, *_, besides = map(int, found[n])
        kinds.append(
            Kind(
                population=len(own),
                blocks=own,
                members=tuple(members.tolist()),
                is_alone=ALONE in (how, besides if how == CLOSING else how),
                is_last=how == CLOSING,
                is_leading=how == LEADING,
            )
        )
    return sorted(kinds, key=lambda kind: kind.is_last)


def _together(launch: RungLaunch, kinds: Sequence[Kind]) -> tuple[int, int]:
    """How many blocks show what comes of waiting: all, or at a small K the first ones, who do.

    That K is larger where no other block shows at K itself what a full ring does: each of these
    blocks then fills its ring of phases more than twice.
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
    """What values of K must differ by, so that whole steps, phases and turns of a ring are between.

    Waits for bulk copies depend on where in its ring a phase stands.
    """
    turn = tiling.stages if tiling.bulk else 1
    return lcm(STEPS_AND_SECTORS, tiling.depth * turn or 1)


def k_points(k: int, period: int) -> list[int]:
    """The values of K to execute instead of `k`, all of its remainder; none where `k` is small."""
    points = [steps * period + k % period for steps in POINTS]
    return points if points[-1] < k else []


def timed_k(k: int, step: int, geometry: Geometry, *, shares: int = 1) -> list[int]:
    """The values of K whose streams are replayed: `k` itself, or two that it lies on a line with.

    They are whole steps apart, and whole `shares` of tiles. Waiting settles within a few phases;
    blocks of many warps need more to average over.
    """
    spacing = lcm(step, shares)
    settled = step * (TIMED_STEPS if geometry.warps_per_block < MANY_WARPS else 2 * TIMED_STEPS)
    first = spacing * ceil_div(settled, spacing)
    points = [first + k % spacing, 2 * first + k % spacing]
    return points if points[-1] * 1.5 < k else [k]


# For the time.


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Blocks whose streams stand for all, values of K at which they do, how many are unlike."""

    blocks: list[int]
    points: list[int]
    unlike: int


def replayed(
    launch: RungLaunch,
    plan: BlockPlan,
    sms: int,
    blocks_per_sm: int,
    executed: Callable[[], NDArray[Any]],
) -> Replay:
    """What is replayed for the time on a device; `executed` counts instructions of each block."""
    blocks, k, step = launch.geometry.blocks, launch.executed.k, period(launch.tiling)
    if not plan.kinds:
        points = timed_k(k, step, launch.geometry)
        chosen = blocks_of_an_sm(blocks, sms, partial(_is_partial, launch))
        return Replay(blocks=chosen, points=points, unlike=0)
    idle = blocks - launch.busy_blocks  # in front of the others
    sharing = sum(kind.population for kind in plan.kinds if not kind.is_alone) - idle
    unlike = ceil_div(sharing, sms) if idle + sharing < blocks else 0
    # of the SM with the most to do: that of a worker that adds the sums of many
    of_sm = executed()[idle:]
    busiest = np.argmax([of_sm[sm::sms].sum() for sm in range(min(sms, len(of_sm)))])
    points = [k]
    if phases := launch.order.repeats_after(launch.tiles):
        points = timed_k(k, step, launch.geometry, shares=launch.tiling.depth * phases)
    chosen = list(range(idle + int(busiest), blocks, sms)[: unlike + 2 * blocks_per_sm])
    return Replay(blocks=chosen, points=points, unlike=unlike)


def _is_partial(launch: RungLaunch, block: int) -> bool:
    """Whether a block's tile reaches beyond C, or may do so."""
    if not (launch.executed.m % launch.tiling.block_m or launch.executed.n % launch.tiling.block_n):
        return False
    x, y, _ = launch.geometry.grid
    return launch.variant.order is None and (block % x == x - 1 or block // x % y == y - 1)
