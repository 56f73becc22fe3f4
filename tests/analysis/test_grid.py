"""In which order blocks take the tiles of C."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.grid import COLUMN_MAJOR, ROW_MAJOR, Order, TileGrid, in_bands

TILES = TileGrid(down=3, across=2)


def tiles_of(order: Order) -> list[tuple[int, int]]:
    row, column = order.tile_of(np.arange(np.prod(order.grid(TILES))), TILES)
    return list(zip(row.tolist(), column.tolist(), strict=True))


def test_blocks_take_tiles_along_rows_or_along_columns() -> None:
    assert tiles_of(ROW_MAJOR) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert tiles_of(COLUMN_MAJOR) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_blocks_take_bands_column_by_column() -> None:
    assert in_bands(2).grid(TILES) == (4, 2, 1)  # 2 columns of 2 rows, 2 bands
    assert tiles_of(in_bands(2)) == [
        (0, 0), (1, 0), (0, 1), (1, 1),
        (2, 0), (3, 0), (2, 1), (3, 1),  # row 3 is below C: left over
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("order", "grid"),
    [(ROW_MAJOR, (2, 35_000, 2)), (COLUMN_MAJOR, (70_000, 2, 1)), (in_bands(8), (16, 8750, 1))],
)
def test_long_grids_go_on_in_z(order: Order, grid: tuple[int, int, int]) -> None:
    assert order.grid(TileGrid(down=70_000, across=2)) == grid


@pytest.mark.parametrize(
    ("order", "blocks"),
    [
        (ROW_MAJOR, [0, 1, 2, 3, 4, 5]),
        (COLUMN_MAJOR, [0, 3, 1, 4, 2, 5]),
        (in_bands(2), [0, 2, 1, 3, 4, 6]),
    ],
)
def test_each_tile_knows_its_block(order: Order, blocks: list[int]) -> None:
    assert order.block_of_tile(TILES).tolist() == blocks


def test_blocks_with_a_tile_come_in_the_order_in_which_they_start() -> None:
    block, row, column = in_bands(2).with_tiles(TILES)
    assert block.tolist() == [0, 1, 2, 3, 4, 6]
    assert list(zip(row.tolist(), column.tolist(), strict=True)) == [
        (0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1),
    ]  # fmt: skip
