"""Random matrices and the verdict on a product."""

import numpy as np
import pytest

from analysis.problem import parse_shape
from toolkit.rungs.matrices import Workload

SHAPE = parse_shape("5x7x11")


def test_a_seed_repeats_the_matrices():
    one, same, other = Workload(SHAPE, 3), Workload(SHAPE, 3), Workload(SHAPE, 4)
    assert np.array_equal(one.a, same.a)
    assert np.array_equal(one.b, same.b)
    assert not np.array_equal(one.a, other.a)


def test_a_and_b_are_different_matrices():
    square = Workload(parse_shape("8"), 3)
    assert not np.isin(square.a, square.b).any()


def test_matrices_are_uneven_and_without_blocks_of_zeros():
    workload = Workload(parse_shape("256"), 0)
    for matrix in (workload.a, workload.b):
        assert matrix.dtype == np.float32
        assert matrix.flags["C_CONTIGUOUS"]
        assert -1 <= matrix.min() < -0.99
        assert 0.99 < matrix.max() < 1
        assert np.count_nonzero(matrix) > 0.9999 * matrix.size
        assert (np.count_nonzero(matrix, axis=0) > 250).all()
        assert (np.count_nonzero(matrix, axis=1) > 250).all()


def test_the_reference_is_the_product_in_float64():
    workload = Workload(SHAPE, 1)
    reference = workload.reference()
    assert reference.exact.dtype == np.float64
    for row in range(SHAPE.m):
        for column in range(SHAPE.n):
            exact = sum(
                float(workload.a[row, k]) * float(workload.b[k, column]) for k in range(SHAPE.k)
            )
            assert reference.exact[row, column] == pytest.approx(exact, rel=1e-14)
    assert reference.check(workload.a @ workload.b).passed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, "a little"])
def test_one_wrong_element_fails_and_is_named(value):
    workload = Workload(parse_shape("64x48x32"), 2)
    result = workload.a @ workload.b
    result[41, 17] = result[41, 17] + 1e-4 if isinstance(value, str) else value
    check = workload.reference().check(result)
    assert not check.passed
    assert (check.worst_row, check.worst_column) == (41, 17)


def test_some_rows_report_the_real_row():
    workload = Workload(parse_shape("100x6x10"), 5)
    reference = workload.reference(most_rows=7)
    assert len(set(reference.rows)) == 7
    assert reference.rows.max() > 50  # one of 100 rows, not the first seven
    assert reference.exact.shape == (7, 6)
    row = int(reference.rows[3])
    result = workload.a @ workload.b
    assert reference.check(result).passed
    result[row, 2] = np.nan
    check = reference.check(result)
    assert (check.passed, check.worst_row, check.worst_column) == (False, row, 2)
    assert check.bound.endswith("; on 7 of 100 rows, chosen at random")


@pytest.mark.parametrize("most_rows", [None, 5, 6])
def test_all_rows_are_checked_where_they_are_few(most_rows):
    reference = Workload(SHAPE, 1).reference(most_rows)
    assert reference.rows.tolist() == [0, 1, 2, 3, 4]
    check = reference.check(Workload(SHAPE, 1).a @ Workload(SHAPE, 1).b)
    assert "rows" not in check.bound


def test_the_reference_leaves_the_matrices_alone():
    workload = Workload(SHAPE, 1)
    before = workload.a.copy(), workload.b.copy()
    workload.reference()
    assert np.array_equal(workload.a, before[0])
    assert np.array_equal(workload.b, before[1])


def test_padding_adds_zeros_and_changes_no_product():
    workload = Workload(SHAPE, 1)
    a, b = workload.padded(parse_shape("5x8x12"))
    assert (a.shape, b.shape) == ((5, 12), (12, 8))
    assert np.array_equal(a[:, :11], workload.a)
    assert np.array_equal(b[:11, :7], workload.b)
    assert not a[:, 11:].any()
    assert not b[11:].any()
    assert not b[:, 7:].any()
    assert workload.reference().check((a @ b)[:5, :7]).passed


def test_no_padding_is_no_copy():
    workload = Workload(SHAPE, 1)
    a, b = workload.padded(SHAPE)
    assert a is workload.a
    assert b is workload.b


TILE = range(8, 21), range(32, 50)


CORNER, DIAGONAL = (range(21, 40), range(4)), (range(1), range(4, 10))


@pytest.mark.parametrize(
    "tiles",
    [
        [TILE, (TILE[0], CORNER[1]), (CORNER[0], TILE[1]), TILE],  # most of a product
        [TILE, CORNER, DIAGONAL],  # a third of one
        [TILE],
    ],
)
def test_tiles_have_the_reference_of_the_whole(tiles):
    workload = Workload(parse_shape("40x50x30"), 7)
    whole = workload.reference()
    found = workload.tile_references(tiles)
    assert found.keys() == set(tiles)
    for (rows, columns), tile in found.items():
        part = np.ix_(rows, columns)
        assert np.allclose(tile.exact, whole.exact[part], rtol=1e-14, atol=1e-14)
        assert np.allclose(tile.bound, whole.bound[part])


def test_a_product_in_parts_has_the_references_of_the_whole(
    monkeypatch,
):
    monkeypatch.setattr(
        "toolkit.rungs.matrices.MOST_ELEMENTS", 18 * 20
    )  # rows of 18: 13, and 19 + 1
    test_tiles_have_the_reference_of_the_whole(
        [(rows, TILE[1]) for rows in (TILE[0], CORNER[0], DIAGONAL[0])]
    )


def test_a_tile_looks_at_its_own_elements_and_names_the_worst_of_them_in_c():
    workload = Workload(parse_shape("40x50x30"), 7)
    tile = workload.tile_references([TILE])[TILE]
    result = np.full((40, 50), np.nan, dtype=np.float32)
    result[8:21, 32:50] = (workload.a @ workload.b)[8:21, 32:50]
    assert tile.check(result).passed
    result[11, 49] = np.nan
    check = tile.check(result)
    assert (check.passed, check.worst_row, check.worst_column) == (False, 11, 49)


def test_many_tiles_are_checked_as_each_is(monkeypatch):
    monkeypatch.setattr("toolkit.rungs.matrices.MOST_ELEMENTS", 48 * 20)  # 20 rows at a time
    workload = Workload(parse_shape("64x48x32"), 2)
    result = workload.a @ workload.b
    result[41, 17] += 1e-4
    tiles = [
        (range(row, row + 8), range(column, column + 16))
        for column in (16, 0, 32)
        for row in range(0, 64, 8)
    ]
    references = workload.tile_references(tiles)
    assert workload.check_tiles(result, tiles) == [references[t].check(result) for t in tiles]
    assert [check.passed for check in workload.check_tiles(result, tiles)].count(False) == 1
    assert workload.check_tiles(result, []) == []
