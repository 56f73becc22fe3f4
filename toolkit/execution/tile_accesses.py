"""Accesses of the blocks of a rung that share no tile of C, from a few blocks at K itself.

The registry says which block computes which tile. Addresses shift evenly with the row and the
column of the tile, which the executed blocks prove, as they do for other kernels with the index of
the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from analysis.traffic.grid import TileGrid
from toolkit.execution.class_accesses import ClassAccesses, divided_accesses
from toolkit.execution.executed import Executed, NoPlanError
from toolkit.execution.proof import RunBlocks
from toolkit.execution.representatives import Grid, region_of_blocks

Indices = NDArray[np.int64]

# Accesses of all blocks of which traffic is modelled: of more, one of 2, 4, 8 … lines. Tiles are
# regular: with 16 times as many, modelled traffic differs by 1.2% at most (DRAM reads of
# `async-copy` at 4096 on an H200), and mostly by less than 0.5%.
TILE_ENTRIES = 1 << 20


def tile_accesses(
    tiles: TileGrid, block_of: Indices, run: RunBlocks, known: Sequence[int]
) -> ClassAccesses | None:
    """Accesses of all blocks; None if there are too many.

    `block_of`: block of each tile, in row-major order. `run` executes the blocks of tiles. `known`:
    tiles whose blocks were executed before. All tiles are one class if their accesses shift evenly;
    otherwise each region is one (corner, edge, interior).
    """
    grid = (tiles.across, tiles.down, 1)
    executed = Executed(grid=grid, run=run, most=tiles.tiles)
    middle = tiles.across // 2 + tiles.across * (tiles.down // 2)
    divide = partial(_divided, region_of_blocks(grid))
    everything = np.arange(tiles.tiles)
    try:
        executed.execute(known or [middle])
        found = divided_accesses(executed, [everything], (1, 1, 1), divide, ends=_ends)
    except NoPlanError:
        return None
    return replace(found, block_of=block_of, most_entries=TILE_ENTRIES)


def _divided(region_of: Indices, tiles: Indices) -> Sequence[Indices]:
    """Tiles of each region, or the halves of those of one region."""
    found = [tiles[region_of[tiles] == region] for region in np.unique(region_of[tiles])]
    return found if len(found) > 1 else np.array_split(tiles, 2)


def _ends(tiles: Indices, grid: Grid) -> list[int]:
    """Three corners of a rectangle of tiles."""
    row, column = np.divmod(tiles, grid[0])
    return sorted({int(tiles[0]), int(tiles[(column - row).argmax()]), int(tiles[-1])})
