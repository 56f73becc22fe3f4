"""Representative blocks: a few are executed, and the others are assumed to have equal counts.

Blocks of one region of the grid (a corner, an edge, the interior) mostly do the same work. Along
each axis, a region consists of the first index, of the last one, or of the rest. The assumption is
checked: several blocks of each region are executed, far apart and with odd and even indices. They
represent their region only if all their counts are equal, instruction by instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Blocks = Literal["all", "representative"] | int  # which blocks to execute, or how many
Grid = tuple[int, int, int]
RegionCounts = tuple[int, Sequence[NDArray[Any]]]  # population of a region, counts of members

PERIOD = 8  # offsets within a sector, in floats, at which a row may begin


@dataclass(frozen=True, kw_only=True)
class Region:
    """Blocks with presumably equal counts."""

    population: int  # number of blocks
    members: tuple[int, ...]  # linear indices of the blocks to execute


def regions(grid: Grid, period: int = 2) -> list[Region]:
    """Regions of a grid, each with its blocks to execute.

    The blocks to execute include every index modulo `period` along each axis of a region. `period`
    is 8 for an unknown kernel (a row begins at one of 8 floats of a sector), 2 if tiles begin on
    sectors.
    """
    parts = product(*(_parts(extent) for extent in grid))
    return [_region(of_region, grid, period) for of_region in parts]


def region_of_blocks(grid: Grid) -> NDArray[np.int64]:
    """Number of the region of each block, by its linear index, in the order of `regions`."""
    x, y, z = (_part_of_indices(extent) for extent in grid)
    _, of_y, of_z = (len(_parts(extent)) for extent in grid)
    found: NDArray[np.int64] = (x * of_y + y[:, None]) * of_z + z[:, None, None]
    return found.ravel()


def _part_of_indices(extent: int) -> NDArray[np.int64]:
    """Number of the part of each index of an axis."""
    return np.repeat(np.arange(len(_parts(extent))), [len(part) for part in _parts(extent)])


def _parts(extent: int) -> list[range]:
    """Parts of an axis: its first block, the rest, its last block."""
    cuts = [range(1), range(1, extent - 1), range(max(1, extent - 1), extent)]
    return [part for part in cuts if len(part)]


def _region(parts: Sequence[range], grid: Grid, period: int) -> Region:
    """Region whose members are blocks along one diagonal, and the first block of the other one."""
    chosen = [_spread(part, period) for part in parts]
    most = max(map(len, chosen))
    diagonal = [tuple(picks[k % len(picks)] for picks in chosen) for k in range(most)]
    against = chosen[0][0], chosen[1][-1], chosen[2][-1]
    members = sorted({x + grid[0] * (y + grid[1] * z) for x, y, z in (*diagonal, against)})
    return Region(population=prod(map(len, parts)), members=tuple(members))


def _spread(part: range, period: int) -> list[int]:
    """First and last index of a part and, between them, one of each remainder modulo `period`."""
    chosen = {part[0], part[-1]}
    for k in range(1, period):
        near = part.start + len(part) * k // period
        at = near + (part.start + k - near) % period
        chosen.add(at if at <= part[-1] else max(at - period, part[0]))
    return sorted(chosen)


def limited(chosen: Sequence[Region], most: int) -> list[Region]:
    """Regions with about `most` members in total: at least one each, the others in turns."""
    further = sorted(
        (turn, k) for k, region in enumerate(chosen) for turn in range(1, len(region.members))
    )
    taken = Counter(k for _, k in further[: max(0, most - len(chosen))])
    return [
        replace(region, members=region.members[: 1 + taken[k]]) for k, region in enumerate(chosen)
    ]


def agree(counts: Sequence[NDArray[Any]]) -> bool:
    """True if blocks have equal counts for every instruction."""
    return all(np.array_equal(counts[0], other) for other in counts[1:])


def extrapolated(of_regions: Sequence[RegionCounts]) -> NDArray[Any]:
    """Counts of the whole grid, from the population of each region and counts of its members.

    Exact if the members agree. Otherwise each other block gets the mean of the members, and the sum
    is rounded.
    """
    first = of_regions[0][1][0]
    total = np.zeros_like(first)
    for population, counts in of_regions:
        rest = population - len(counts)
        for name in first.dtype.names or ():
            summed = sum(count[name] for count in counts)
            total[name] += summed + np.rint(summed * (rest / len(counts))).astype(np.uint64)
    return total


def of_blocks(executed: int, everything: int) -> str:
    if everything == 1:
        return "the one block"
    return f"{'all' if executed == everything else f'{executed:,} of'} {everything:,} blocks"
