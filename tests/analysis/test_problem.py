import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import ShapeError
from analysis.problem import LARGEST_DIMENSION, Gemm, parse_shape

dimension = st.integers(1, LARGEST_DIMENSION)


@given(st.builds(Gemm, m=dimension, n=dimension, k=dimension))
def test_a_shape_is_understood_as_it_is_printed(problem):
    assert parse_shape(str(problem)) == problem


@pytest.mark.parametrize("text", ["64", " 64 ", "64x64x64", "64X64X64", "64×64×64"])
def test_one_size_is_a_square_product(text):
    assert parse_shape(text) == Gemm(m=64, n=64, k=64)


def test_sizes_are_given_in_the_order_m_n_k():
    assert parse_shape("1000x333x64") == Gemm(m=1000, n=333, k=64)


@pytest.mark.parametrize(
    "text", ["", "x", "64x64", "64x64x64x64", "-4", "4.0", "1e3", "64x 64x64", "a", "٤"]
)
def test_anything_else_is_no_shape(text):
    with pytest.raises(ShapeError, match="is not understood"):
        parse_shape(text)


@pytest.mark.parametrize(
    ("text", "where"), [("0", "M = 0"), ("4x0x4", "N = 0"), ("4x4x99999999999", "K = 99999999999")]
)
def test_a_dimension_out_of_range_is_named(text, where):
    with pytest.raises(ShapeError, match=f"{where} is out of range"):
        parse_shape(text)


def test_flop_are_two_per_multiply_add():
    assert Gemm(m=2, n=3, k=5).flop == 60  # 2·2·3·5
    assert Gemm(m=4096, n=4096, k=4096).flop == pytest.approx(137e9, rel=4e-3)  # 2·2^36


def test_matrices_have_the_elements_and_bytes_of_their_shapes():
    problem = Gemm(m=2, n=3, k=5)
    assert (problem.a_elements, problem.b_elements, problem.c_elements) == (10, 15, 6)
    assert problem.matrix_bytes == 124  # 31 floats · 4 B


def test_long_values_are_shortened_in_messages():
    with pytest.raises(ShapeError) as raised:
        parse_shape("9" * 5_000)
    assert len(str(raised.value)) < 200
