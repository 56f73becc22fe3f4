"""Every path computes ragged products of every layout, and writes nothing beside C."""

import numpy as np
import pytest

from kernels.path_tiles import ANY_TILES, BULK_TILES
from kernels.paths import (
    SHORT_TILES,
    any_layout,
    few_rows,
    short_k,
    sliced,
    streamed,
)
from kernels.product import Product
from toolkit.machine_code.kernel_source import compile_kernel
from validation.products.simulated import simulate_plan

GUARD = 64  # floats before and behind each matrix
ROUNDING = 2.0**-24
ALL_LAYOUTS = [(False, False), (False, True), (True, False), (True, True)]
LAYOUTS = [  # each has machine code of its own, whose compilation takes most of the time
    ALL_LAYOUTS[1],
    *(
        pytest.param(one, marks=pytest.mark.exhaustive)
        for one in (*ALL_LAYOUTS[:1], *ALL_LAYOUTS[2:])
    ),
]
ANY = {tile.name: tile for tile in ANY_TILES}
BULK = {tile.name: tile for tile in BULK_TILES}


class Stored:
    """One operand of a product in a buffer of its own, followed by a guard."""

    def __init__(self, matrix, stride, batch, random):
        stored = matrix.rows, matrix.columns
        self.buffer = random.uniform(-1, 1, (batch - 1) * stride + matrix.span + GUARD)
        self.buffer = self.buffer.astype(np.float32)
        self.shape = batch, *stored
        self.strides = 4 * stride, 4 * matrix.pitch, 4

    def view(self, buffer=None):
        array = self.buffer if buffer is None else buffer
        return np.lib.stride_tricks.as_strided(array, self.shape, self.strides)


def check(product, plan):
    """Simulate a plan, and hold all of C against float64."""
    random = np.random.default_rng(7)
    a = Stored(product.a, product.stride_a, product.batch, random)
    b = Stored(product.b, product.stride_b, product.batch, random)
    c = Stored(product.c, product.stride_c, product.batch, random)
    op_a, op_b = a.view().astype(float), b.view().astype(float)
    op_a = op_a.swapaxes(1, 2) if product.transpose_a else op_a
    op_b = op_b.swapaxes(1, 2) if product.transpose_b else op_b
    old = product.beta * c.view().astype(float)
    size = abs(product.alpha) * (abs(op_a) @ abs(op_b)) + abs(old)
    if product.beta == 0:
        c.view()[:] = np.nan
        old = 0
    before = c.buffer.copy()
    found = simulate_plan(plan, product, {"A": a.buffer, "B": b.buffer, "C": c.buffer})
    error = abs(c.view(found["C"]) - (product.alpha * (op_a @ op_b) + old))
    # each of K products and sums, and alpha and beta, round once
    assert (error <= (product.k + 4) * ROUNDING * size).all()  # False for NaN
    after = found["C"].copy()
    c.view(after)[:] = c.view(before)
    assert after.tobytes() == before.tobytes()  # nothing around C is written
    assert not found["workspace"].view(np.int32)[: plan.zeroed_bytes // 4].any()


def product(layout, **others):
    return Product(transpose_a=layout[0], transpose_b=layout[1], **others)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout(layout):
    one = product(layout, m=37, n=45, k=70, alpha=2.0, beta=0.5, ldc=47)
    check(one, any_layout(one, ANY["32x32x64/4x8x8"], 1))


@pytest.mark.parametrize("k", [1, 63, 64, 65, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_the_first_phase_is_the_short_one(k):
    one = product(LAYOUTS[0], m=37, n=45, k=k, alpha=2.0, beta=0.5, ldc=47)
    for splits in {1, min(2, -(-k // 64))}:
        check(one, any_layout(one, ANY["32x32x64/4x8x8"], splits))


# added by the last block, and by a second launch
@pytest.mark.parametrize("splits", [2, 16, pytest.param(17, marks=pytest.mark.exhaustive)])
def test_splits_of_a_batch(splits):
    one = Product(m=33, n=20, k=64 * splits, lda=64 * splits + 3, batch=2, stride_b=0)
    plan = any_layout(one, ANY["32x32x64/4x8x8"], splits)
    assert len(plan.launches) == (1 if splits <= 16 else 2)
    check(one, plan)


@pytest.mark.exhaustive
def test_rows_that_begin_on_16_bytes():
    one = product((True, False), m=36, n=40, k=70, lda=40, beta=1.0)
    check(one, any_layout(one, ANY["32x32x64/4x8x8"], 1))


@pytest.mark.parametrize(
    ("name", "floats"),
    [
        ("64x128x16/8x8x1", 64 * (128 + 4)),  # 4 rows down: 4 (128 + 4) mod 32 = 16 banks
        ("64x64x32/8x8x4", 4 * 64 * (64 + 4)),  # of four slices
        ("96x96x16/12x12x1", 96 * (96 + 4)),
    ],
)
def test_sums_of_a_block_fit_in_shared_memory(name, floats):
    tile = ANY[name]
    ring = tile.stages * tile.bk * (tile.bm + tile.bn + 2 * 4)  # 4 floats behind each row
    assert tile.shared_bytes == 4 * max(floats, ring)


def test_sums_of_bulk_tiles_fit_in_shared_memory():
    assert BULK["96x48x64/12x12x8"].shared_bytes == 4 * max(8 * 96 * 48, 5 * 64 * (96 + 48))
    # one row down: 64 + 16 floats, and 80 mod 32 = 16
    assert BULK["64x64x64/8x16x8"].shared_bytes == 4 * max(8 * 64 * 80, 4 * 64 * (64 + 64))


def test_a_block_does_not_end_with_code_for_each_of_its_sums():
    one = Product(m=192, n=192, k=64, beta=0.5)
    (launch,) = any_layout(one, ANY["96x96x16/12x12x1"], 1).launches
    kernel = compile_kernel(launch.source, launch.entry, target="sm_90", defines=launch.defines)
    stores = [one for one in kernel.instructions if one.opcode == "STG"]
    assert 0 < len(stores) < 12 * 12 / 4  # quads of a thread


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ALL_LAYOUTS)
@pytest.mark.parametrize("tile", ANY_TILES, ids=lambda tile: tile.name)
def test_every_tile_of_any_layout(tile, layout):
    for offset in (0, 1):  # with and without quads
        sizes = {"m": 140 + offset, "n": 136 + offset, "k": 76 + offset}
        one = product(layout, **sizes, beta=-0.5, alpha=0.5)
        check(one, any_layout(one, tile, 1))
        check(one, any_layout(one, tile, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(3, 70), pytest.param((130, 2), marks=pytest.mark.exhaustive)])
def test_a_few_rows_or_columns(layout, sizes):
    one = product(layout, m=sizes[0], n=sizes[1], k=150, beta=0.0 if sizes[0] == 3 else 1.0)
    check(one, few_rows(one, 1, 192))
    check(one, few_rows(one, 3, 64))


# rows begin on 16 bytes: the last columns of a row, or the last k of a column, are no whole quad
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 70, "k": 150, "ldb": 72, "beta": 1.0},
        pytest.param(
            {"n": 66, "k": 2203, "ldb": 2204, "transpose_b": True}, marks=pytest.mark.exhaustive
        ),
    ],
)
def test_a_few_rows_and_quads_that_are_not_whole(sizes):
    one = Product(m=3, **sizes)
    check(one, few_rows(one, 1, 2240))
    check(one, few_rows(one, 3, 64 if one.k == 150 else 768))


# products of Inf with what a quad leaves out would be zero times Inf: NaN
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 70, "k": 150, "ldb": 72},
        pytest.param(
            {"n": 66, "k": 151, "ldb": 152, "transpose_b": True}, marks=pytest.mark.exhaustive
        ),
    ],
)
def test_inf_where_quads_are_not_whole(sizes):
    one = Product(m=3, **sizes)
    a, b, c = (Stored(matrix, 0, 1, np.random.default_rng(7)) for matrix in (one.a, one.b, one.c))
    b.buffer[:] = abs(b.buffer) + 0.5
    a.view()[0, 0, 5], a.view()[0, 2, 149] = np.inf, -np.inf
    found = simulate_plan(few_rows(one, 1, 192), one, {"A": a.buffer, "B": b.buffer, "C": c.buffer})
    rows = c.view(found["C"])[0]
    assert (rows[0] == np.inf).all()
    assert (rows[2] == -np.inf).all()
    assert np.isfinite(rows[1]).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("rows", [1, 4, 8])
def test_sums_of_splits_that_are_no_multiple_of_those_on_their_way(rows):
    one = product((False, True), m=rows, n=40, k=64 * 37, beta=1.0)
    check(one, few_rows(one, 37, 64))
    one = product((False, False), m=rows, n=40, k=64 * 7)
    check(one, few_rows(one, 7, 64))


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ALL_LAYOUTS)
@pytest.mark.parametrize("rows", [1, 8])
def test_every_number_of_rows(rows, layout):
    one = product(layout, m=rows, n=132, k=1040, batch=2, alpha=-1.0)
    check(one, few_rows(one, 1, 1088))
    check(one, few_rows(one, 2, 576))


@pytest.mark.exhaustive
@pytest.mark.parametrize("tile", BULK_TILES, ids=lambda tile: tile.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_of_bulk_copies(tile, layout):
    one = product(layout, m=100, n=69, k=130, ldc=73, beta=0.5, batch=2)
    check(one, sliced(one, tile, 2))
    check(one, sliced(one, tile, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_short_k(layout):
    one = product(layout, m=37, n=45, k=23, batch=2, alpha=-1.0, beta=0.5)
    check(one, short_k(one, 2, 1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ALL_LAYOUTS)
@pytest.mark.parametrize("sizes", SHORT_TILES)
def test_every_tile_of_a_short_k(sizes, layout):
    one = product(layout, m=70, n=140, k=33, ldc=141)
    check(one, short_k(one, *sizes))


@pytest.mark.parametrize(
    "plan",
    [lambda one: any_layout(one, ANY["32x32x64/4x8x8"], 2), lambda one: short_k(one, 2, 1)],
)
def test_a_batch_side_by_side(plan):
    """The heads of an attention: rows of all matrices are parts of one long row."""
    heads = {"batch": 3, "lda": 3 * 72, "stride_a": 72, "ldb": 3 * 72, "stride_b": 72}
    one = Product(m=33, n=20, k=72, transpose_b=True, **heads, ldc=3 * 20 + 1, stride_c=20)
    check(one, plan(one))


@pytest.mark.exhaustive
def test_bulk_copies_of_a_batch_side_by_side():
    heads = {"batch": 3, "lda": 3 * 72, "stride_a": 72, "ldb": 3 * 40, "stride_b": 40}
    one = Product(m=70, n=40, k=72, **heads, ldc=3 * 40 + 1, stride_c=40)
    check(one, sliced(one, BULK["64x32x64/8x8x8"], 1))


def test_slices_of_a_shared_operand():
    one = Product(m=70, n=36, k=136, batch=2, stride_a=0)
    check(one, sliced(one, BULK["64x32x64/8x8x8"], 2))


def test_bulk_copies_of_a_batch_in_large_tiles():
    one = Product(m=130, n=129, k=66, batch=3, ldc=131, beta=0.5, stride_a=0)
    check(one, streamed(one, 8, 12))


@pytest.mark.exhaustive
@pytest.mark.parametrize("rows", [8, 10])
def test_workers_of_a_packed_product(rows):
    one = Product(m=200, n=129, k=130, transpose_a=True, ldc=133, beta=0.5)
    check(one, streamed(one, rows, 168))
