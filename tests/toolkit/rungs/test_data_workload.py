"""Inputs of a class at any shape: few rows and columns are drawn, and the others repeat them."""

import numpy as np

from analysis.problem import Gemm
from analysis.product_errors import MOST_ROWS
from toolkit.rungs.data_workload import data_workload

SHAPE = Gemm(m=600, n=300, k=40)


def test_rows_and_columns_repeat_those_that_were_drawn():
    found = data_workload("exponents-24", SHAPE, 3)
    assert (found.a.shape, found.b.shape) == ((600, 40), (40, 300))
    assert np.array_equal(found.a[MOST_ROWS:512], found.a[:MOST_ROWS])
    assert np.array_equal(found.b[:, MOST_ROWS:], found.b[:, : 300 - MOST_ROWS])


def test_the_places_are_distinct_and_the_error_of_float64_is_none():
    found = data_workload("normal", SHAPE, 3)
    rows, columns = found.places()
    assert len(set(rows.tolist())) == len(set(columns.tolist())) == MOST_ROWS
    exact = found.a.astype(float) @ found.b.astype(float)
    error = found.error_of(exact[np.ix_(rows, columns)], rows, columns)
    assert error.elements == MOST_ROWS**2
    assert error.maximum < 1e-15
    assert (error.data, error.shape, error.seed) == ("normal", SHAPE, 3)


def test_an_error_at_any_place_is_found():
    found = data_workload("normal", SHAPE, 3)
    rows, columns = found.places()
    c = (found.a.astype(float) @ found.b.astype(float)).astype(np.float32)
    c[rows[-1], columns[-1]] += 1
    error = found.error_of(c[np.ix_(rows, columns)], rows, columns)
    assert error.maximum > 1e-3


def test_padding_keeps_what_is_compared():
    found = data_workload("normal", Gemm(m=5, n=7, k=3), 1)
    a, b = found.padded(Gemm(m=5, n=8, k=4))
    assert not a[:, 3:].any()
    assert not b[:, 7:].any()
    rows, columns = found.places()
    assert (rows.tolist(), columns.tolist()) == (list(range(5)), list(range(7)))
