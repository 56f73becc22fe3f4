"""Order in which blocks compute the tiles of C, and the launch grid.

Blocks start by their linear index, x fastest. The order of tiles decides which tiles are computed
at the same time and so share rows of A and columns of B in L2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import ceil_div

Grid = tuple[int, int, int]
Indices = NDArray[np.int64]
Fractions = NDArray[np.float64]

# Values of the first column of `Order.kinds`. ALONE: the block shares no tile. LEADING: it works
# for all other blocks before them. CLOSING: it is the last block and cleans up; the last column
# says how it works otherwise. Blocks that share tiles have numbers from 0 on.
ALONE, LEADING, CLOSING = -1, -2, -3

MAX_GRID_Y = 65_535  # CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"


@dataclass(frozen=True, kw_only=True)
class TileGrid:
    """Number of tiles that cover C: `down` its rows, `across` its columns."""

    down: int
    across: int

    @property
    def tiles(self) -> int:
        return self.down * self.across


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Parts of tiles in the order in which each block computes them, sorted by block.

    The block that reaches the end of K stores the tile. The other blocks leave their partial sums
    for it.
    """

    block: Indices  #: block that computes the part
    row: Indices  #: row of the tile
    column: Indices  #: column of the tile
    begins: Fractions  #: start of the range of K, as a fraction of K
    ends: Fractions  #: end of the range of K, as a fraction of K

    def lifetimes(self, blocks: int) -> Fractions:
        """Computing time of each of `blocks` blocks: 1 for a whole tile."""
        lengths = self.ends - self.begins
        found: Fractions = np.bincount(self.block, lengths, blocks).astype(np.float64)
        return found


@dataclass(frozen=True, kw_only=True)
class Order:
    """Assignment of the tiles of C to blocks."""

    grid: Callable[[TileGrid], Grid]  #: launch grid for a number of tiles
    #: row and column of the tile of each linear block index; a block without work gets a row
    #: beyond C
    tile_of: Callable[[Indices, TileGrid], tuple[Indices, Indices]] | None = None
    leaves_over: bool = False  #: there can be blocks without work
    #: number of blocks with work, if blocks without a tile also have work
    busy: Callable[[TileGrid], int] | None = None
    #: if blocks share tiles: a row of numbers for each block, of which the first states how it
    #: shares; blocks with equal rows do the same on other tiles
    kinds: Callable[[Indices, TileGrid], Indices] | None = None
    #: parts of tiles that each block computes for a number of phases of K, in place of `tile_of`,
    #: if blocks share tiles or are numbered differently
    pieces: Callable[[TileGrid, int], Pieces] | None = None
    #: number of phases by which K must grow so that each part grows by whole phases; None if times
    #: at a smaller K do not predict this one
    repeats_after: Callable[[TileGrid], int | None] = lambda tiles: 1

    def busy_blocks(self, tiles: TileGrid) -> int:
        """Number of blocks that have work. The others exit at once."""
        if self.busy is not None:
            return self.busy(tiles)
        return len(self.with_tiles(tiles)[0]) if self.leaves_over else prod(self.grid(tiles))

    def block_of_tile(self, tiles: TileGrid) -> Indices:
        """Index of the block that computes each tile, tiles in row-major order."""
        block, row, column = self.with_tiles(tiles)
        found = np.empty_like(block)
        found[row * tiles.across + column] = block
        return found

    def with_tiles(self, tiles: TileGrid) -> tuple[Indices, Indices, Indices]:
        """Blocks that store a tile, in starting order, and the row and column of the tile."""
        if self.tile_of is None:
            found = self.pieces_of(tiles, 1)
            stores = found.ends == 1
            return found.block[stores], found.row[stores], found.column[stores]
        block = np.arange(prod(self.grid(tiles)))
        row, column = self.tile_of(block, tiles)
        inside = (row < tiles.down) & (column < tiles.across)
        return block[inside], row[inside], column[inside]

    def pieces_of(self, tiles: TileGrid, phases: int) -> Pieces:
        """Parts of tiles that blocks compute, where K has `phases` phases."""
        if self.pieces is not None:
            return self.pieces(tiles, phases)
        block, row, column = self.with_tiles(tiles)
        ends = np.ones(len(block))
        return Pieces(block=block, row=row, column=column, begins=0 * ends, ends=ends)


def _edges(row: Indices, column: Indices, tiles: TileGrid) -> Indices:
    """2 for tiles of the last row, plus 1 for tiles of the last column: these may exceed C."""
    found: Indices = 2 * (row == tiles.down - 1) + (column == tiles.across - 1)
    return found


def _long_y(x: int, y: int) -> Grid:
    z = ceil_div(y, MAX_GRID_Y)  # continues y
    return x, ceil_div(y, z), z


def _along_rows(block: Indices, tiles: TileGrid) -> tuple[Indices, Indices]:
    return np.divmod(block, tiles.across)


def _along_columns(block: Indices, tiles: TileGrid) -> tuple[Indices, Indices]:
    column, row = np.divmod(block, tiles.down)
    return row, column


# Neighbouring blocks compute neighbouring columns of tiles, or neighbouring rows.
ROW_MAJOR = Order(grid=lambda tiles: _long_y(tiles.across, tiles.down), tile_of=_along_rows)
COLUMN_MAJOR = Order(grid=lambda tiles: _long_y(tiles.down, tiles.across), tile_of=_along_columns)


def in_bands(height: int) -> Order:
    """Order that goes column by column within bands of `height` rows of tiles, band after band.

    The tiles of co-resident blocks form a compact part of C, which shares more of A and B. Block
    (x, y) computes row y * height + x % height and column x / height: shifts, if `height` is a
    power of two. In the last band the blocks below C have no work.
    """

    def tile_of(block: Indices, tiles: TileGrid) -> tuple[Indices, Indices]:
        band, in_band = np.divmod(block, tiles.across * height)
        column, row = np.divmod(in_band, height)
        return band * height + row, column

    return Order(
        grid=lambda tiles: _long_y(tiles.across * height, ceil_div(tiles.down, height)),
        tile_of=tile_of,
        leaves_over=True,
    )


def behind(leading: int, order: Order) -> Order:
    """`order` after `leading` blocks that have no tile."""

    def grid(tiles: TileGrid) -> Grid:
        return leading + prod(order.grid(tiles)), 1, 1

    def kinds(block: Indices, tiles: TileGrid) -> Indices:
        assert order.kinds is not None
        found = order.kinds(np.maximum(block - leading, 0), tiles)
        is_last = block == prod(grid(tiles)) - 1
        how = np.where(is_last, CLOSING, LEADING)
        itself = np.stack([how, block, found[:, 0]], axis=1)
        return np.where(((block < leading) | is_last)[:, None], itself, found)

    def pieces(tiles: TileGrid, phases: int) -> Pieces:
        found = order.pieces_of(tiles, phases)
        return replace(found, block=found.block + leading)

    return Order(
        grid=grid,
        busy=order.busy_blocks,
        kinds=kinds,
        pieces=pieces,
        repeats_after=order.repeats_after,
    )


def split(splits: int) -> Order:
    """Row-major order with `splits` neighbouring blocks per tile; the last of them has the tile.

    In fact the last group, of up to 16 blocks, stores the tile, each block a part of it.
    """
    if splits == 1:
        return ROW_MAJOR

    def kinds(block: Indices, tiles: TileGrid) -> Indices:
        row, x = np.divmod(block, tiles.across * splits)
        column, part = np.divmod(x, splits)
        # the grid may extend below C
        return np.stack([part, _edges(row, column, tiles), row >= tiles.down], axis=1)

    def pieces(tiles: TileGrid, phases: int) -> Pieces:
        block = np.arange(tiles.tiles * splits)
        tile, part = np.divmod(block, splits)
        row, column = np.divmod(tile, tiles.across)
        begins, ends = (n * phases // splits / phases for n in (part, part + 1))
        return Pieces(block=block, row=row, column=column, begins=begins, ends=ends)

    return Order(
        grid=lambda tiles: _long_y(tiles.across * splits, tiles.down),
        kinds=kinds,
        pieces=pieces,
        repeats_after=lambda tiles: None,
    )


def streamed(height: int, workers: int) -> Order:
    """Order in bands in which `workers` blocks share the tiles of the incomplete last wave.

    The workers are the first blocks. Worker w of W computes the share of the T tiles that begins at
    w·T/W, and stores each tile whose end of K it reaches. Blocks with a whole tile follow. If T is
    0 there are no workers.
    """

    def dealt_out(tiles: TileGrid) -> tuple[int, int]:
        """Number of tiles that are shared, and of blocks that share them."""
        dealt = tiles.tiles % workers
        return dealt, workers if dealt else 0

    def grid(tiles: TileGrid) -> Grid:
        dealt, sharing = dealt_out(tiles)
        return sharing + tiles.tiles - dealt, 1, 1

    def row_and_column(tile: Indices, tiles: TileGrid) -> tuple[Indices, Indices]:
        band, in_band = np.divmod(tile, tiles.across * height)
        rows = np.clip(tiles.down - band * height, 1, height)
        return band * height + in_band % rows, in_band // rows

    def kinds(block: Indices, tiles: TileGrid) -> Indices:
        """Start of each worker within a tile, which determines its pieces, and edges of C."""
        dealt, sharing = dealt_out(tiles)
        is_worker = block < sharing
        tile, begins = np.divmod(block * dealt, workers)
        tile = np.where(is_worker, tile, block - sharing + dealt)
        following = np.minimum(tile + 1, max(dealt - 1, 0))
        edges = _edges(*row_and_column(tile, tiles), tiles)
        of_following = np.where(is_worker, _edges(*row_and_column(following, tiles), tiles), 0)
        return np.stack([np.where(is_worker, begins, ALONE), edges, of_following], axis=1)

    def pieces(tiles: TileGrid, phases: int) -> Pieces:
        """Parts of tiles. A worker begins with its last tile, for which another block waits."""
        dealt, sharing = dealt_out(tiles)
        first = np.arange(sharing + 1) * dealt * phases // workers  # phase of each worker
        most = ceil_div(dealt, workers) + 1  # tiles of which a worker has a part
        tile = (first[1:, None] - 1) // phases - np.arange(most)
        begins = np.maximum(first[:-1, None] - tile * phases, 0)
        ends = np.minimum(first[1:, None] - tile * phases, phases)
        some = ends > begins
        whole = np.arange(tiles.tiles - dealt)
        row, column = row_and_column(np.append(tile[some], dealt + whole), tiles)
        return Pieces(
            block=np.append(np.nonzero(some)[0], sharing + whole),
            row=row,
            column=column,
            begins=np.append(begins[some] / phases, np.zeros(len(whole))),
            ends=np.append(ends[some] / phases, np.ones(len(whole))),
        )

    def repeats_after(tiles: TileGrid) -> int:
        return workers // gcd(tiles.tiles, workers)

    return Order(grid=grid, kinds=kinds, pieces=pieces, repeats_after=repeats_after)
