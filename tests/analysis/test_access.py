"""Closed forms against a loop over every thread, and against what the source texts say."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.access import Tiling, access_counts, largest_square_tile
from analysis.errors import InputError
from analysis.problem import Gemm, parse_shape
from tests.analysis.tilings import COARSENED_1D, COARSENED_2D, NAIVE, TILED
from tests.refusals import refusal

VECTORIZED = replace(
    COARSENED_2D,
    global_width=4,
    shared_store_b_width=4,
    shared_load_a_width=4,
    shared_load_b_width=4,
)
K = 4096
SQUARE = Gemm(m=4096, n=4096, k=K)

tilings = st.builds(
    lambda thread_m, thread_n, times_m, times_n, block_k: Tiling(
        block_m=thread_m * times_m,
        block_n=thread_n * times_n,
        block_k=block_k,
        thread_m=thread_m,
        thread_n=thread_n,
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(1, 4)),
)
problems = st.builds(Gemm, m=st.integers(1, 11), n=st.integers(1, 11), k=st.integers(1, 7))


def counted_by_a_loop(tiling, problem):
    """Floats moved by a launch whose threads are walked one by one, with every guard."""
    m, n, k = problem.m, problem.n, problem.k
    moved = Counter()
    for first_row in range(0, m, tiling.block_m):
        for first_column in range(0, n, tiling.block_n):
            if tiling.block_k:
                moved += copied_by_a_block(tiling, problem, first_row, first_column)
            for row in range(first_row, first_row + tiling.block_m, tiling.thread_m):
                for column in range(first_column, first_column + tiling.block_n, tiling.thread_n):
                    rows = sum(row + i < m for i in range(tiling.thread_m))
                    columns = sum(column + j < n for j in range(tiling.thread_n))
                    moved["global", "store", "C"] += rows * columns
                    if tiling.block_k:
                        phases = range(0, k, tiling.block_k)
                        moved["shared", "load", "A"] += sum(
                            tiling.block_k * tiling.thread_m for _ in phases
                        )
                        moved["shared", "load", "B"] += sum(
                            tiling.block_k * tiling.thread_n for _ in phases
                        )
                    elif rows and columns:  # threads outside the matrix return
                        moved["global", "load", "A"] += k * rows
                        moved["global", "load", "B"] += k * columns
    return moved


def copied_by_a_block(tiling, problem, first_row, first_column):
    """Copies of one block to shared memory: guarded loads, and a store of each element."""
    assert tiling.block_k
    moved = Counter()
    for phase in range(0, problem.k, tiling.block_k):
        for depth in range(phase, phase + tiling.block_k):
            for row in range(first_row, first_row + tiling.block_m):
                moved["shared", "store", "A"] += 1
                moved["global", "load", "A"] += row < problem.m and depth < problem.k
            for column in range(first_column, first_column + tiling.block_n):
                moved["shared", "store", "B"] += 1
                moved["global", "load", "B"] += column < problem.n and depth < problem.k
    return moved


@given(tilings, problems)
def test_the_closed_forms_equal_a_loop_over_all_threads(tiling, problem):
    counts = access_counts(tiling, problem)
    found = {(a.space, a.operation, a.operand): a.elements for a in counts.accesses}
    assert found == counted_by_a_loop(tiling, problem)


@pytest.mark.parametrize(
    ("tiling", "global_loads", "shared_loads"),
    [
        (NAIVE, 2 * K, 0),  # a row of A and a column of B
        (TILED, Fraction(K, 16), 2 * K),  # 2K / 32; two per multiply-add
        (COARSENED_1D, Fraction(K, 32), Fraction(17 * K, 16)),  # K/64 + K/64; (16 + 1)K / 16
        (COARSENED_2D, Fraction(K, 64), Fraction(K, 4)),  # K/128 + K/128; (8 + 8)K / 64
        (VECTORIZED, Fraction(K, 64), Fraction(K, 4)),
    ],
)
def test_accesses_per_element_of_c_are_those_of_the_source_texts(
    tiling, global_loads, shared_loads
):
    counts = access_counts(tiling, SQUARE)
    assert counts.per_c_element("global", "load") == global_loads
    assert counts.per_c_element("global", "store") == 1
    assert counts.per_c_element("shared", "load") == shared_loads


def test_float4_quarters_the_instructions_and_no_element():
    counts = access_counts(VECTORIZED, SQUARE)
    assert counts.instructions_per_c_element("global", "load") == Fraction(K, 256)  # K/64 / 4
    assert counts.instructions_per_c_element("global", "store") == Fraction(1, 4)
    assert counts.instructions_per_c_element("shared", "load") == Fraction(K, 16)  # K/4 / 4
    # A is transposed float by float: K/128; B in float4: K/128 / 4
    assert counts.instructions_per_c_element("shared", "store") == Fraction(5 * K, 512)


def test_accesses_per_thread_count_idle_threads_too():
    counts = access_counts(NAIVE, parse_shape("16x32x8"))  # half of the block's 1,024 are idle
    assert counts.threads == 1024
    # 2·8 loads of every second thread
    assert counts.elements("global", "load") == 8 * counts.threads


def test_bytes_are_four_per_float():
    counts = access_counts(NAIVE, parse_shape("2x3x5"))
    assert counts.bytes("global", "load") == 240  # 2·2·3·5 floats · 4 B
    assert counts.bytes("global") == 264  # and 6 floats stored
    assert {access.bytes for access in counts.select(operand="A")} == {120}


@pytest.mark.parametrize(("n", "k"), [(6, 4), (4, 6), (2, 2)])
def test_a_vector_that_would_leave_its_row_is_refused(n, k):
    assert "not a multiple of 4" in refusal(
        InputError, access_counts, VECTORIZED, Gemm(m=4, n=n, k=k)
    )


def test_thread_tiles_must_divide_the_block_tile():
    assert "64 is not a multiple of 3" in refusal(
        InputError, access_counts, Tiling(block_m=64, block_n=64, thread_m=3), SQUARE
    )


def test_a_tiling_knows_its_threads_and_its_shared_memory():
    assert COARSENED_2D.threads_per_block == 256  # 128/8 · 128/8
    assert COARSENED_2D.shared_bytes == 8192  # 4 B · 8 · (128 + 128)
    assert NAIVE.shared_bytes == 0


def test_the_widest_square_tile_is_32_because_of_threads_not_of_shared_memory():
    limit = largest_square_tile(max_threads_per_block=1024, shared_bytes_per_block=49_152)
    assert (limit.width, limit.limiter) == (32, "threads per block")
    assert limit.widest_by_threads == 32  # 32² = 1,024
    assert limit.widest_by_shared == 64  # 2·64²·4 B = 32,768 ≤ 49,152 < 2·128²·4 B


def test_little_shared_memory_limits_the_tile_instead():
    limit = largest_square_tile(max_threads_per_block=1024, shared_bytes_per_block=8191)
    assert (limit.width, limit.limiter) == (16, "shared memory")  # 2·32²·4 B = 8,192
    assert "area of 0 elements" in refusal(
        InputError, largest_square_tile, max_threads_per_block=1024, shared_bytes_per_block=7
    )


# Copies past registers, and rows of any length.

RING = Tiling(
    block_m=64, block_n=32, block_k=16, thread_m=8, thread_n=4,
    global_width=4, global_load_a_width=1, asynchronous=True, narrows=True,
)  # fmt: skip


def test_asynchronous_copies_load_whole_tiles_and_store_nothing():
    counts = access_counts(RING, parse_shape("65x36x20"))  # 2 by 2 blocks, 2 phases
    assert counts.elements("global", "load", "A") == 2 * 2 * 2 * 64 * 16  # zeros beyond the edges
    assert counts.elements("global", "load", "B") == 2 * 2 * 2 * 16 * 32
    assert counts.elements("global", "store", "C") == 65 * 36
    assert counts.elements("shared", "store") == 0
    assert counts.elements("shared", "load", "A") == 4 * 64 * 32 * 8  # threads · depth · TM


@pytest.mark.parametrize(("n", "width"), [(36, 4), (35, 1), (34, 1)])
def test_rows_that_are_no_multiple_of_the_width_are_moved_float_by_float(n, width):
    problem = Gemm(m=64, n=n, k=20)
    assert RING.global_widths(problem) == (1, width)
    counts = access_counts(RING, problem)
    assert width * counts.instructions("global", "store", "C") == 64 * n
    assert width * counts.instructions("global", "load", "B") == 2 * 2 * 16 * 32
    assert counts.instructions("global", "load", "A") == counts.elements("global", "load", "A")
