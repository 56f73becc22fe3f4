"""The bound lets every correct float32 product pass, and no wrong one."""

from functools import cache
from math import exp, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.errors import InputError
from analysis.rounding import compare, gemm_error_bound

Matrix = NDArray[np.float32]
DEPTHS = (1, 3, 64, 513, 4096)


def uneven(rng, shape):
    return rng.standard_normal(shape, dtype=np.float32)


def positive(rng, shape):
    return rng.random(shape, dtype=np.float32)


both_inputs = pytest.mark.parametrize("inputs", [uneven, positive])


@cache
def operands(inputs, k):
    rng = np.random.default_rng(k)
    return inputs(rng, (24, k)), inputs(rng, (k, 40))


def checked(result, a, b):
    """The verdict on `result` as the product of a and b."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return compare(result, a @ b, gemm_error_bound(a.shape[1], np.abs(a) @ np.abs(b)))


def summed_in_order(a, b):
    """The product as the naive kernel sums it: k after k, rounded at every step."""
    total = np.zeros((a.shape[0], b.shape[1]), dtype=np.float32)
    for k in range(a.shape[1]):
        total += np.outer(a[:, k], b[k])
    return total


def with_ten_bits(matrix):
    """TF32's mantissa: the lowest 13 of float32's 23 bits cut off."""
    return (matrix.view(np.uint32) & np.uint32(0xFFFF_E000)).view(np.float32)


@both_inputs
@pytest.mark.parametrize("k", DEPTHS)
def test_a_float32_product_passes_in_any_order_of_summation(inputs, k):
    a, b = operands(inputs, k)
    for result in (a @ b, summed_in_order(a, b)):
        found = checked(result, a, b)
        assert found.passed
        assert found.worst_ratio <= 1


@both_inputs
def test_inputs_cut_to_ten_bits_fail_at_a_depth_of_4096(inputs):
    a, b = operands(inputs, 4096)
    assert not checked(summed_in_order(with_ten_bits(a), with_ten_bits(b)), a, b).passed


@both_inputs
@pytest.mark.parametrize("k", DEPTHS)
def test_a_product_that_drops_its_last_term_fails(inputs, k):
    a, b = operands(inputs, k)
    assert not checked(a[:, :-1] @ b[:-1], a, b).passed


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e30, 0.0])
def test_one_wrong_element_is_found_where_it_stands(wrong):
    a, b = operands(positive, 64)
    result = a @ b
    result[5, 7] = wrong
    found = checked(result, a, b)
    assert not found.passed
    assert (found.worst_row, found.worst_column) == (5, 7)
    assert (found.worst_ratio is None) == (not np.isfinite(wrong))
    assert (found.max_absolute_error is None) == (not np.isfinite(wrong))


def test_an_element_without_any_error_allowed_must_match_exactly():
    zero = np.zeros((1, 2))
    assert compare(zero, zero, zero).passed
    found = compare(np.array([[0.0, 1e-30]]), zero, zero)
    assert (found.passed, found.worst_column) == (False, 1)
    assert found.max_absolute_error == pytest.approx(1e-30)


def test_the_largest_error_and_the_worst_ratio_may_stand_apart():
    found = compare(np.array([[3.0, 0.5]]), np.zeros((1, 2)), np.array([[4.0, 0.6]]))
    assert (found.worst_column, found.max_absolute_error) == (1, 3.0)  # 0.5/0.6 > 3/4
    assert found.worst_ratio == pytest.approx(0.5 / 0.6)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, 4 * 2**-24),  # n·u: fewer roundings than the probabilistic bound is good for
        (33, 36 * 2**-24),  # where both meet: n = λ·sqrt(n) at n = λ²
        (4096, 6 * sqrt(4099) * 2**-24),  # λ·sqrt(n)·u
    ],
)
def test_the_relative_bound_is_the_smaller_of_certain_and_probable(k, expected):
    assert gemm_error_bound(k, [[1.0]])[0, 0] == pytest.approx(expected, rel=1e-4)


def test_a_depth_beyond_the_certain_bound_still_has_one():
    k = 2**24  # n·u > 1
    expected = exp(6 * 2**12 * 2**-24 + 2**-24) - 1
    assert gemm_error_bound(k, [[1.0]])[0, 0] == pytest.approx(expected, rel=1e-5)


def test_the_bound_scales_with_alpha_and_adds_beta_c():
    one = gemm_error_bound(64, [[1.0]])[0, 0]
    both = gemm_error_bound(64, [[1.0]], alpha=-2.0, beta=-3.0, abs_c=[[5.0]])[0, 0]
    assert both == pytest.approx(17 * one)  # 2·1 + 3·5


def test_a_product_with_alpha_and_beta_passes():
    a, b = operands(uneven, 513)
    alpha, beta = np.float32(1.25), np.float32(-0.75)
    c = uneven(np.random.default_rng(1), (24, 40))
    wide_a, wide_b, wide_c = (matrix.astype(np.float64) for matrix in (a, b, c))
    bound = gemm_error_bound(
        513,
        np.abs(wide_a) @ np.abs(wide_b),
        alpha=float(alpha),
        beta=float(beta),
        abs_c=np.abs(wide_c),
    )
    reference = float(alpha) * (wide_a @ wide_b) + float(beta) * wide_c
    assert compare(alpha * (a @ b) + beta * c, reference, bound).passed
    assert not compare(alpha * (a @ b) - beta * c, reference, bound).passed


def test_products_below_the_smallest_float_may_vanish():
    a = np.full((2, 8), 1e-30, dtype=np.float32)
    assert checked(a @ a.T, a, np.ascontiguousarray(a.T)).passed  # 8e-60 is 0 in float32


def test_where_every_term_is_zero_the_bound_is_zero():
    assert gemm_error_bound(64, [[0.0, 1.0]])[0, 0] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm_error_bound(0, [[1.0]]), "k = 0"),
        (lambda: gemm_error_bound(1, [[1.0]], beta=1.0), "needs |C|"),
        (lambda: compare(np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 2))), "they must agree"),
        (lambda: compare(np.ones(3), np.ones(3), np.ones(3)), "give a matrix"),
        (lambda: compare(*[np.ones((0, 3))] * 3), "with elements"),
        (lambda: compare([[1.0]], [[np.inf]], [[1.0]]), "reference at row 0, column 0 is inf"),
        (lambda: compare([[1.0]], [[1.0]], [[np.nan]]), "bound at row 0, column 0 is nan"),
    ],
)
def test_a_comparison_without_meaning_is_refused(call, message):
    with pytest.raises(InputError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize("product", [3, 2.5, np.array(2.5)])
def test_one_number_has_a_bound_too(product):
    assert float(gemm_error_bound(64, product)) == gemm_error_bound(64, [[product]])[0, 0]
