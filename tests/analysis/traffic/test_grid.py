"""In which order blocks take the tiles of C."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.traffic.grid import (
    ALONE,
    CLOSING,
    COLUMN_MAJOR,
    LEADING,
    ROW_MAJOR,
    TileGrid,
    behind,
    in_bands,
    split,
    streamed,
)

TILES = TileGrid(down=3, across=2)


def tiles_of(order):
    return pairs(*order.tile_of(np.arange(np.prod(order.grid(TILES))), TILES))


def pairs(row, column):
    return list(zip(row.tolist(), column.tolist(), strict=True))


def test_blocks_take_tiles_along_rows_or_along_columns():
    assert tiles_of(ROW_MAJOR) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert tiles_of(COLUMN_MAJOR) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_blocks_take_bands_column_by_column():
    assert in_bands(2).grid(TILES) == (4, 2, 1)  # 2 columns of 2 rows, 2 bands
    assert tiles_of(in_bands(2)) == [
        (0, 0), (1, 0), (0, 1), (1, 1),
        (2, 0), (3, 0), (2, 1), (3, 1),  # row 3 is below C: left over
    ]  # fmt: skip


def test_blocks_that_are_left_over_are_not_busy():
    assert in_bands(2).busy_blocks(TILES) == 6  # of 8
    assert split(2).busy_blocks(TILES) == 12  # two for each tile, though one of them stores it
    assert ROW_MAJOR.busy_blocks(TILES) == 6


@pytest.mark.parametrize(
    ("order", "grid"),
    [(ROW_MAJOR, (2, 35_000, 2)), (COLUMN_MAJOR, (70_000, 2, 1)), (in_bands(8), (16, 8750, 1))],
)
def test_long_grids_go_on_in_z(order, grid):
    assert order.grid(TileGrid(down=70_000, across=2)) == grid


@pytest.mark.parametrize("order", [ROW_MAJOR, COLUMN_MAJOR, in_bands(2), in_bands(8)])
@pytest.mark.parametrize("tiles", [TILES, TileGrid(down=9, across=4)])
def test_each_tile_has_one_block_and_knows_it(order, tiles):
    blocks = np.arange(np.prod(order.grid(tiles)))
    row, column = order.tile_of(blocks, tiles)
    inside = row < tiles.down
    block, *tile = order.with_tiles(tiles)
    assert block.tolist() == blocks[inside].tolist()  # in the order in which they start
    assert pairs(*tile) == pairs(row[inside], column[inside])
    assert len({*pairs(*tile)}) == tiles.tiles
    assert order.block_of_tile(tiles)[tile[0] * tiles.across + tile[1]].tolist() == block.tolist()


def ends_by_hand(tiles, phases, worker, workers):
    """The tiles whose last phase a worker has, by walking through its phases."""
    low, high = (tiles * phases * w // workers for w in (worker, worker + 1))
    return [phase // phases for phase in range(low, high) if phase % phases == phases - 1]


@given(
    down=st.integers(1, 9),
    across=st.integers(1, 9),
    height=st.integers(1, 4),
    workers=st.integers(1, 40),
    phases=st.integers(1, 50),
)
def test_workers_store_the_tiles_whose_last_phase_they_have(down, across, height, workers, phases):
    tiles = TileGrid(down=down, across=across)
    order = streamed(height, workers)
    dealt = tiles.tiles % workers
    blocks, row, column = order.with_tiles(tiles)
    # every tile has one block that stores it
    assert sorted(zip(row, column, strict=True)) == [
        (r, c) for r in range(down) for c in range(across)
    ]
    storing = {w for w in range(workers) if dealt and ends_by_hand(dealt, phases, w, workers)}
    assert {b for b in blocks.tolist() if b < (workers if dealt else 0)} == storing


def test_without_a_rest_there_are_no_workers():
    order = streamed(2, 6)
    assert order.grid(TileGrid(down=3, across=4)) == (12, 1, 1)
    assert order.grid(TileGrid(down=3, across=5)) == (6 + 12, 1, 1)  # 15 = 2 * 6 + 3
    _, row, column = order.with_tiles(TileGrid(down=3, across=2))
    # bands of two rows, down each column, then the last row alone
    assert pairs(row, column) == [
        (0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)
    ]  # fmt: skip


def test_leading_blocks_have_no_tile_and_the_others_keep_theirs():
    order = behind(5, in_bands(2))
    assert order.grid(TILES) == (5 + 8, 1, 1)
    (blocks, *tiles), (alone, *expected) = order.with_tiles(TILES), in_bands(2).with_tiles(TILES)
    assert (blocks.tolist(), pairs(*tiles)) == ((5 + alone).tolist(), pairs(*expected))
    assert order.busy_blocks(TILES) == 6
    assert behind(5, streamed(2, 4)).busy_blocks(TILES) == 4 + 4  # workers without a tile too
    np.testing.assert_array_equal(order.block_of_tile(TILES), 5 + in_bands(2).block_of_tile(TILES))


@pytest.mark.parametrize(("down", "across", "workers"), [(8, 8, 66), (29, 8, 66), (7, 9, 8)])
def test_workers_of_one_kind_begin_at_the_same_place_of_a_tile(down, across, workers):
    tiles, order = TileGrid(down=down, across=across), streamed(2, workers)
    (blocks, _, _), dealt = order.grid(tiles), tiles.tiles % workers
    kinds = order.kinds(np.arange(blocks), tiles)
    phases = 13  # of a tile
    pieces = {}
    for worker in range(workers):
        low = dealt * phases * worker // workers
        end = dealt * phases * (worker + 1) // workers
        pieces.setdefault(tuple(kinds[worker]), set()).add((low % phases, end - low))
    assert all(len(found) == 1 for found in pieces.values())
    assert (kinds[workers:, 0] == ALONE).all()
    edges = {tuple(row[1:]) for row in kinds[workers:]}
    assert edges <= {(0, 0), (1, 0), (2, 0), (3, 0)}


def test_leading_blocks_and_the_last_one_are_of_kinds_of_their_own():
    tiles, inner = TileGrid(down=8, across=8), streamed(2, 66)
    order = behind(5, inner)
    kinds = order.kinds(np.arange(71), tiles)
    assert (kinds[:5, 0] == LEADING).all()
    assert len(np.unique(kinds[:5], axis=0)) == 5
    assert kinds[-1, 0] == CLOSING
    within = inner.kinds(np.arange(66), tiles)
    assert np.array_equal(kinds[5:-1], within[:-1])
    assert kinds[-1, -1] == within[-1, 0]


def test_blocks_that_split_a_tile_differ_by_their_part():
    tiles = TileGrid(down=2, across=3)
    shared = split(4).kinds
    assert shared(np.arange(24), tiles)[:, 0].tolist() == 6 * [0, 1, 2, 3]
    assert split(1).kinds is None  # nobody waits


@pytest.mark.parametrize(
    ("order", "phases"),
    [
        (ROW_MAJOR, 1),
        (streamed(2, 4), 2),  # 2 of 6 tiles for 4 workers: half a tile each
        (streamed(2, 6), 1),  # a tile each
        (behind(5, streamed(2, 4)), 2),
        (split(2), None),
    ],
)
def test_parts_of_tiles_repeat_after_whole_phases(order, phases):
    assert order.repeats_after(TILES) == phases


@pytest.mark.parametrize(
    "order",
    [
        ROW_MAJOR,
        in_bands(2),
        split(3),
        streamed(2, 7),
        streamed(2, 64),
        streamed(2, 6),
        behind(5, streamed(2, 7)),
    ],
)
@pytest.mark.parametrize("phases", [1, 5, 32])
def test_pieces_are_each_tile_once_and_end_with_who_stores_it(order, phases):
    tiles = TileGrid(down=5, across=4)
    pieces = order.pieces_of(tiles, phases)
    tile = pieces.row * tiles.across + pieces.column
    covered = np.zeros((tiles.tiles, phases), dtype=int)
    for n, begins, ends in zip(tile, pieces.begins, pieces.ends, strict=True):
        covered[n, round(begins * phases) : round(ends * phases)] += 1
    assert (covered == 1).all()
    stores = pieces.ends == 1
    if phases > 5:  # else some have no phase
        assert pieces.block[stores][np.argsort(tile[stores])].tolist() == (
            order.block_of_tile(tiles).tolist()
        )
    assert (np.diff(pieces.block) >= 0).all()
    assert pieces.lifetimes(100).sum() == pytest.approx(tiles.tiles)


def test_workers_take_their_part_of_the_last_tile_first():
    pieces = streamed(1, 3).pieces_of(TileGrid(down=1, across=2), 6)  # four phases for each of 3
    found = [*zip(pieces.block, pieces.column, 6 * pieces.begins, 6 * pieces.ends, strict=True)]
    assert found == [(0, 0, 0, 4), (1, 1, 0, 2), (1, 0, 4, 6), (2, 1, 2, 6)]
