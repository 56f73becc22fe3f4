"""Errors relative to |A||B|, and the classes of inputs on which they are taken."""

import numpy as np
import pytest

from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.product_errors import DATA_CLASSES, MOST_ROWS, product_error, sample_inputs

SHAPE = Gemm(m=2, n=1, k=2)
ABOUT = {"data": "normal", "shape": SHAPE, "seed": 0}
A, B = np.array([[3.0, -1.0], [0.0, 0.0]], np.float32), np.array([[2.0], [4.0]], np.float32)


def test_errors_are_relative_to_the_sum_of_magnitudes():
    # 3·2 - 1·4 = 2, of magnitude 10; 2.5 is off by 0.05 of it, and the zero row is right
    found = product_error([[2.5], [0.0]], A, B, **ABOUT)
    assert (found.maximum, found.elements) == (0.05, 2)
    assert found.rms == 0.0354  # sqrt(0.05² / 2)


@pytest.mark.parametrize("wrong", [[[2.0], [0.1]], [[np.nan], [0.0]], [[np.inf], [0.0]]])
def test_what_is_not_finite_or_wrong_where_all_terms_are_zero_has_no_error(wrong):
    found = product_error(wrong, A, B, **ABOUT)
    assert (found.rms, found.maximum) == (None, None)


def test_shapes_that_do_not_agree_are_refused():
    with pytest.raises(InputError, match=r"result of shape \(1, 1\), A \(2, 2\), B \(2, 1\)"):
        product_error([[2.0]], A, B, **ABOUT)


@pytest.mark.parametrize("data", DATA_CLASSES)
def test_a_class_is_drawn_by_its_seed_and_is_finite(data):
    a, b = sample_inputs(data, 200, seed=1)
    assert (a.shape, b.shape) == ((MOST_ROWS, 200), (200, MOST_ROWS))
    assert a.dtype == b.dtype == np.float32
    again = sample_inputs(data, 200, seed=1)
    other = sample_inputs(data, 200, seed=2)
    assert np.array_equal(a, again[0])
    assert not np.array_equal(a, other[0])
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()
    assert np.isfinite(a.astype(float) @ b.astype(float)).all()


def exponents(x):
    return np.frexp(np.abs(x))[1]


def test_classes_are_what_they_say():
    normal, _ = sample_inputs("normal", 388, seed=1)
    assert 0.95 < normal.std() < 1.05
    uniform, _ = sample_inputs("uniform", 388, seed=1)
    assert uniform.min() >= 0
    wide, _ = sample_inputs("exponents-60", 388, seed=1)
    assert np.ptp(exponents(wide)) >= 60
    rows, columns = sample_inputs("rows-columns", 388, seed=1)
    assert np.ptp(np.median(exponents(rows), 1)) > 50
    assert np.ptp(np.median(exponents(columns), 0)) > 50
    a, b = sample_inputs("k-scaled-30", 388, seed=1)
    scaled = np.median(exponents(a), 0) > 15
    assert np.flatnonzero(scaled).tolist() == [0, 97, 194, 291]  # every 97th
    assert (np.median(exponents(b), 1) < -15).tolist() == scaled.tolist()
    a, b = sample_inputs("k-scaled-all", 388, seed=1)
    product = np.median(exponents(a), 0) + np.median(exponents(b), 1)
    assert np.abs(product).max() <= 4  # undone
    a, _ = sample_inputs("one-term", 388, seed=1)
    assert np.median(exponents(a[:, 194])) > 35


def test_inputs_have_as_many_columns_of_b_as_are_asked_for():
    a, b = sample_inputs("rows-columns", 200, seed=1, rows=3, columns=5)
    assert (a.shape, b.shape) == ((3, 200), (200, 5))
    assert sample_inputs("rows-columns", 200, seed=1, rows=3)[1].shape == (200, 3)
