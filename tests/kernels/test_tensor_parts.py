"""Numbers that the rungs on tensor cores do not keep, as their heads say. Executed on the CPU."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.problem import Gemm
from kernels.selection import parse_selection
from toolkit.execution.rung_errors import product_of_rung
from toolkit.rungs.launch import RungLaunch, compile_for

PROBLEM = Gemm(m=128, n=128, k=32)  # one block, one phase
LARGEST_KEPT, ROUNDED_TO_INF, LARGEST = 0x7F7FEFFF, 0x7F7FF000, 0x7F7FFFFF
INF, LAST_NAN_KEPT, FIRST_NAN_LOST, NAN_OF_GPU = 0x7F800000, 0x7FFFEFFF, 0x7FFFF000, 0x7FFFFFFF
NEGATIVE = 0x80000000


def product(label, a, b):
    selection = parse_selection(label)
    variant, kernel = selection.variant, compile_for(find_device("h200"), selection)
    launch = RungLaunch(variant=variant, parameters=selection.parameters, problem=PROBLEM)
    return product_of_rung(kernel, launch, a, b)


def matrices():
    """A and B with magnitudes below 1, so that products with the largest float are finite."""
    random = np.random.default_rng(0)
    a = random.uniform(-1 / 32, 1 / 32, (PROBLEM.m, PROBLEM.k)).astype(np.float32)
    b = random.uniform(-1 / 32, 1 / 32, (PROBLEM.k, PROBLEM.n)).astype(np.float32)
    return a, b


def lines_of_c(label, operand, numbers):
    """A, B and C with each number, as bits, in a row of A or a column of B.

    The lines of C are its rows for A, its columns for B.
    """
    a, b = matrices()
    for line, bits in enumerate(numbers):
        if operand == "A":
            a.view(np.uint32)[line, 3] = bits
        else:
            b.view(np.uint32)[3, line] = bits
    c = product(label, a, b)
    return a, b, c if operand == "A" else c.T


@pytest.mark.parametrize("operand", ["A", "B"])
class TestTf32Parts:
    def test_nan_is_kept_up_to_a_payload(self, operand):
        numbers = (LAST_NAN_KEPT, LAST_NAN_KEPT | NEGATIVE)
        _, _, lines = lines_of_c("tf32-parts", operand, numbers)
        assert np.isnan(lines[:2]).all()
        assert np.isfinite(lines[2:]).all()

    def test_the_nan_of_a_gpu_counts_as_zero(self, operand):
        numbers = (FIRST_NAN_LOST, NAN_OF_GPU, NAN_OF_GPU | NEGATIVE)
        a, b, lines = lines_of_c("tf32-parts", operand, numbers)
        a[np.isnan(a)], b[np.isnan(b)] = 0, 0
        exact = a.astype(np.float64) @ b
        found = lines if operand == "A" else lines.T
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-7)

    def test_inf_gives_inf_and_nan_mixed(self, operand):
        _, _, lines = lines_of_c("tf32-parts", operand, (INF,))
        assert np.isnan(lines[0]).any()
        assert np.isinf(lines[0]).any()
        assert not np.isfinite(lines[0]).any()

    def test_numbers_next_to_the_largest_give_nan(self, operand):
        numbers = (ROUNDED_TO_INF, LARGEST, LARGEST_KEPT)
        _, _, lines = lines_of_c("tf32-parts", operand, numbers)
        assert np.isnan(lines[:2]).all()
        assert np.isfinite(lines[2:]).all()


@pytest.mark.parametrize("operand", ["A", "B"])
def test_fp16_parts_keeps_nan_and_the_largest_but_makes_inf_nan(operand):
    numbers = (NAN_OF_GPU, LAST_NAN_KEPT, INF, LARGEST)
    _, _, lines = lines_of_c("fp16-parts", operand, numbers)
    assert np.isnan(lines[:3]).all()
    if operand == "A":  # a column of B with the largest float overflows on its way
        assert np.isfinite(lines[3]).all()
    assert np.isfinite(lines[4:]).all()


@pytest.mark.parametrize(
    ("exponent_a", "exponent_b", "is_finite"),
    [(-20, 107, True), (-20, 108, False), (108, -20, True)],
)
def test_a_sum_of_fp16_parts_overflows_for_a_column_from_2_to_the_108_on(
    exponent_a, exponent_b, is_finite
):
    """All results are 2^94 or less; float32 has up to 2^128."""
    a = np.full((PROBLEM.m, PROBLEM.k), 1.99 * 2.0**exponent_a, np.float32)
    b = np.full((PROBLEM.k, PROBLEM.n), 1.99 * 2.0**exponent_b, np.float32)
    exact = PROBLEM.k * np.float64(a[0, 0]) * np.float64(b[0, 0])
    found = product("fp16-parts", a, b)
    if is_finite:
        np.testing.assert_allclose(found, exact, rtol=2**-20)
    else:
        assert np.isinf(found).all()
    np.testing.assert_allclose(product("tf32-parts", a, b), exact, rtol=2**-20)
