"""Distinct rows, beside NumPy's own."""

import numpy as np
import pytest

from toolkit.execution.distinct import distinct, distinct_records

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
