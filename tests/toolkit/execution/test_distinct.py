"""Distinct rows, beside NumPy's own."""

import numpy as np
import pytest

from toolkit.execution.distinct import distinct, distinct_records, order_of

RECORD = np.dtype([("line", "u8"), ("step", "i4"), ("kind", "u1")])


@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_records_are_those_of_numpy(rows):
    random = np.random.default_rng(rows)
    records = np.zeros(rows, RECORD)
    records["line"], records["step"] = random.integers(0, 9, rows), random.integers(-5, 5, rows)
    records["kind"] = random.integers(0, 2, rows)
    found, kinds = distinct_records(records)
    expected, inverse = np.unique(records, return_inverse=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(kinds, inverse)


def test_columns_are_those_of_numpy():
    columns = np.random.default_rng(7).integers(-3, 3, (3, 500))
    some, kinds = distinct(list(columns))
    expected, inverse = np.unique(columns, axis=1, return_inverse=True)
    assert np.array_equal(columns[:, some], expected)
    assert np.array_equal(kinds, inverse.ravel())


@pytest.mark.parametrize("widest", [2**20, 2**62, 2**64 - 1])  # which one number holds, or not
def test_order_is_that_of_a_sort_by_each_column(widest):
    random = np.random.default_rng(8)
    columns = [
        random.integers(-2, 3, 300, np.int8),
        random.integers(0, 5, 300, np.uint16),
        random.integers(0, widest, 300, np.uint64),
    ]
    assert np.array_equal(order_of(columns), np.lexsort(columns[::-1]))
    some_equal = [one[random.integers(0, 300, 1000)] for one in columns[:2]]
    order, expected = order_of(some_equal), np.lexsort(some_equal[::-1])
    for one in some_equal:
        assert np.array_equal(one[order], one[expected])
