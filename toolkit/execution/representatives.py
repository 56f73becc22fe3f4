"""Which blocks stand for which: a few are executed, and the others counted like them.

Blocks of one place in the grid (a corner, an edge, the interior, per axis first, last and the
rest) mostly do the same work. That is not assumed but checked: several blocks of each place are
executed, far apart and with odd and even indices, and only where all their counts are equal,
instruction by instruction, do they stand for the others of that place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Grid = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Blocks that are expected to be alike: how many, and those that are executed (linear)."""

    population: int
    members: tuple[int, ...]


def places(grid: Grid, period: int = 2) -> list[Place]:
    """The places of a grid, each with its blocks to execute.

    Of each axis of a place, blocks of every index modulo `period` are among them: 8 where nothing
    is known of a kernel (rows of any length begin at one of 8 floats in a sector), 2 where tiles
    are known to begin on sectors.
    """
    parts = product(*(_parts(extent) for extent in grid))
    return [_place(of_place, grid, period) for of_place in parts]


def _parts(extent: int) -> list[range]:
    """An axis in parts: its first block, the rest, its last."""
    cuts = [range(1), range(1, extent - 1), range(max(1, extent - 1), extent)]
    return [part for part in cuts if len(part)]


def _place(parts: Sequence[range], grid: Grid, period: int) -> Place:
    """Blocks along both diagonals of the place: its first, middle and last, and odd ones out."""
    chosen = [_spread(part, period) for part in parts]
    most = max(map(len, chosen))
    diagonal = [tuple(picks[k % len(picks)] for picks in chosen) for k in range(most)]
    against = [
        tuple(picks[(-1 - k if axis else k) % len(picks)] for axis, picks in enumerate(chosen))
        for k in range(most)
    ]
    members = sorted({x + grid[0] * (y + grid[1] * z) for x, y, z in (*diagonal, *against[:1])})
    return Place(population=prod(map(len, parts)), members=tuple(members))


def _spread(part: range, period: int) -> list[int]:
    """The first and the last of a part and, between them, one of each index modulo `period`."""
    chosen = {part[0], part[-1]}
    for k in range(1, period):
        near = part.start + len(part) * k // period
        at = near + (part.start + k - near) % period
        chosen.add(at if at <= part[-1] else max(at - period, part[0]))
    return sorted(chosen)


def agree(counts: Sequence[NDArray[Any]]) -> bool:
    """Whether blocks counted the same, instruction by instruction."""
    return all(np.array_equal(counts[0], other) for other in counts[1:])


def extrapolated(
    of_places: Sequence[tuple[Place, Sequence[NDArray[Any]]]],
) -> NDArray[Any]:
    """The counts of the whole grid, from those of each place's members.

    Exact where the members agree; else the mean of the members stands for the rest, rounded.
    """
    first = of_places[0][1][0]
    total = np.zeros_like(first)
    for place, counts in of_places:
        rest = place.population - len(counts)
        for name in first.dtype.names or ():
            summed = sum(count[name] for count in counts)
            total[name] += summed + np.rint(summed * (rest / len(counts))).astype(np.uint64)
    return total
