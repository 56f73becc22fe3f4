"""Strides of arrays as transposes and leading dimensions, by hand."""

import numpy as np
import pytest

from analysis.errors import InputError, ShapeError
from tests.refusals import refusal
from toolkit.product.operands import (
    Operand,
    OperandView,
    check_overlap,
    layout_of,
    shape_of_product,
    tight_strides,
)


def view(name, shape, strides=None, alignment=16):
    return OperandView(name, shape, tight_strides(shape) if strides is None else strides, alignment)


def layout(a, b, out):
    return layout_of(view("a", *a), view("b", *b), view("out", *out))


@pytest.mark.parametrize(
    ("rows", "columns", "row", "column", "is_transposed", "leading"),
    [
        (3, 5, 5, 1, False, 5),
        (3, 5, 8, 1, False, 8),  # gaps of three
        (3, 5, 1, 3, True, 3),
        (3, 5, 1, 7, True, 7),
        (1, 5, 99, 1, False, 5),  # one row: its distance to a next one says nothing
        (3, 1, 4, 99, False, 4),  # one column, every fourth element of an array
        (5, 1, 1, 1, False, 1),
        (1, 5, 1, 7, True, 7),  # every seventh element as a row
        (1, 1, 0, 0, False, 1),
    ],
)
def test_a_leading_dimension_describes_rows_or_columns(
    rows, columns, row, column, is_transposed, leading
):
    found = Operand(rows, columns, row, column, 0, 16)
    assert found.is_plain
    assert (found.is_transposed, found.leading) == (is_transposed, leading)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (10, 2),  # every second column
        (0, 1),  # one row for all
        (1, 0),
        (4, 1),  # rows of five overlap
        (-5, 1),  # upside down
        (1, 2),  # columns of three overlap
    ],
)
def test_other_strides_are_no_leading_dimension(row, column):
    assert not Operand(3, 5, row, column, 0, 16).is_plain


@pytest.mark.parametrize(
    ("operand", "batches", "alignment"),
    [
        (Operand(3, 8, 8, 1, 0, 16), 1, 16),
        (Operand(3, 8, 10, 1, 0, 16), 1, 8),  # rows of 40 bytes
        (Operand(3, 5, 5, 1, 0, 16), 1, 4),
        (Operand(1, 5, 5, 1, 0, 16), 1, 16),  # one row
        (Operand(3, 8, 1, 4, 0, 16), 1, 16),  # columns of 16 bytes
        (Operand(3, 8, 8, 1, 0, 4), 1, 4),
        (Operand(3, 8, 8, 1, 26, 16), 2, 8),  # matrices 104 bytes apart
        (Operand(3, 8, 8, 1, 26, 16), 1, 16),
    ],
)
def test_alignment_is_that_of_every_stored_row(operand, batches, alignment):
    assert operand.alignment(batches) == alignment


def test_a_product_by_rows_stays_as_it_is():
    found = layout(((3, 5),), ((5, 7), (1, 5)), ((3, 7),))
    assert (found.m, found.n, found.k, found.batches) == (3, 7, 5, 1)
    assert not found.is_swapped
    assert (found.a.is_transposed, found.b.is_transposed) == (False, True)


def test_an_output_by_columns_swaps_a_and_b():
    found = layout(((3, 5),), ((5, 7),), ((3, 7), (1, 4)))
    assert found.is_swapped
    assert (found.m, found.n, found.k) == (7, 3, 5)
    assert (found.c.pitch, found.c.columns) == (4, 3)
    # a' is bᵀ: stored by columns of a'
    assert (found.a.is_transposed, found.a.leading) == (True, 7)
    assert (found.b.is_transposed, found.b.leading) == (True, 5)


def test_a_batch_with_one_b_is_one_tall_product():
    found = layout(((4, 3, 5),), ((5, 7),), ((4, 3, 7),))
    assert (found.m, found.batches) == (12, 1)


def test_a_batch_with_one_a_and_columns_that_continue_is_one_wide_product():
    # b[n, i, j] = data[i, 7 n + j]
    found = layout(((3, 5),), ((4, 5, 7), (7, 28, 1)), ((4, 3, 7), (7, 28, 1)))
    assert (found.n, found.batches, found.is_swapped) == (28, 1, False)


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (((4, 3, 5),), ((4, 5, 7),), ((4, 3, 7),)),
        (((4, 3, 5), (16, 5, 1)), ((5, 7),), ((4, 3, 7),)),  # a gap behind each matrix
        (((3, 5),), ((4, 5, 7),), ((4, 3, 7),)),
    ],
)
def test_other_batches_stay(a, b, out):
    found = layout(a, b, out)
    assert (found.m, found.batches) == (3, 4)
    assert [one.batch for one in (found.a, found.b, found.c)].count(0) == (len(a[0]) == 2) + (
        len(b[0]) == 2
    )


def test_a_batch_of_one_matrix_is_shared():
    found = layout(((1, 3, 5),), ((4, 5, 7),), ((4, 3, 7),))
    assert (found.a.batch, found.b.batch) == (0, 35)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ((3, 5), (4, 7), "a has 5 columns and b has 4 rows"),
        ((5,), (5, 7), "give a matrix, or a batch of matrices (three axes), such as a[None, :]"),
        ((2, 2, 3, 5), (5, 7), "give a matrix, or a batch"),
        ((3, 0), (0, 7), "a (float32, shape (3, 0), strides (0, 1) elements): it has no elements"),
        ((2, 3, 5), (3, 5, 7), "batches of 2 and 3 matrices"),
        ((2**31, 5), (5, 7), "2,147,483,648 is too long"),
    ],
)
def test_shapes_that_do_not_fit(a, b, said):
    assert said in refusal(ShapeError, shape_of_product, view("a", a), view("b", b))


@pytest.mark.parametrize(
    ("shape", "strides", "is_taken"),
    [
        ((3, 7), (7, 1), True),
        ((3, 7), (-7, 1), True),  # upside down
        ((3, 7), (14, 2), True),  # every second column
        ((3, 7), (0, 1), False),  # one row for all
        ((3, 7), (6, 1), False),
        ((3, 7), (2, 3), False),  # no element is shared, but rows and columns interleave
        ((2, 3, 7), (0, 7, 1), False),
        ((2, 3, 7), (21, 7, 1), True),
        ((2, 3, 7), (7, 14, 1), True),  # rows of two matrices alternate
        ((1, 7), (0, 1), True),
    ],
)
def test_elements_of_an_output_must_lie_apart(shape, strides, is_taken):
    a = view("a", (3, 5) if len(shape) == 2 else (2, 3, 5))
    a = view("a", (1, 5)) if shape[0] == 1 else a
    if is_taken:
        layout_of(a, view("b", (5, 7)), view("out", shape, strides))
        return
    said = refusal(InputError, layout_of, a, view("b", (5, 7)), view("out", shape, strides))
    assert said.startswith(f"out (float32, shape {shape}, strides {strides} elements): ")
    assert "no matrix to write to" in said


def test_an_output_of_another_shape():
    said = refusal(ShapeError, layout, ((3, 5),), ((5, 7),), ((7, 3),))
    assert "a·b has shape (3, 7): give out that shape" in said


def test_extents_of_negative_strides_begin_before_the_address():
    assert view("a", (3, 5), (-8, 1)).extent_bytes == (-64, 20)  # 2 rows back, 5 floats on


def test_only_a_shared_element_is_an_overlap():
    left, right = view("a", (3, 4), (8, 1)), view("out", (3, 4), (8, 1))
    check_overlap(left, 4096, right, 4096 + 16)  # columns 0 to 3 and 4 to 7 of one array
    said = refusal(InputError, check_overlap, left, 4096, right, 4096 + 12)
    assert "overlaps a (float32, shape (3, 4), strides (8, 1) elements): give an out of its" in said


def test_layouts_agree_with_numpy():
    """Random views of random arrays: element by element, a layout finds the same numbers."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        arrays, views = [], []
        m, k, n = rng.integers(1, 5, 3)
        batches = int(rng.integers(1, 4))
        shapes = {"a": (m, k), "b": (k, n), "out": (m, n)}
        is_batched = {"a": rng.random() < 0.5, "b": rng.random() < 0.5}
        is_batched["out"] = is_batched["a"] or is_batched["b"]
        for name, shape in shapes.items():
            full = (batches, *map(int, shape)) if is_batched[name] else tuple(map(int, shape))
            order = rng.permutation(len(full))
            room = np.arange(np.prod([2 * size for size in full])).astype(np.float32)
            whole = room.reshape([2 * full[axis] for axis in order]).transpose(np.argsort(order))
            steps = [slice(0, 2 * size, 2) if rng.random() < 0.3 else slice(size) for size in full]
            array = whole[tuple(steps)]
            arrays.append(array)
            views.append(OperandView(name, full, tuple(s // 4 for s in array.strides), 4))
        found = layout_of(*views)
        a, b, c = arrays
        first, second = (b, a) if found.is_swapped else (a, b)
        for operand, array in ((found.a, first), (found.b, second), (found.c, c)):
            start = array.ravel()[0]
            index = np.indices((found.batches, operand.rows, operand.columns))
            offsets = operand.batch * index[0] + operand.row * index[1] + operand.column * index[2]
            expected = array.reshape(-1, *array.shape[-2:])
            if found.is_swapped:
                expected = expected.transpose(0, 2, 1)
            got = start + offsets
            if got.shape[0] == expected.shape[0]:
                assert np.array_equal(got, expected)
            else:  # folded, or shared by the batch
                assert set(got.ravel()) == set(expected.ravel())
