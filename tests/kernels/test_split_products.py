"""Products of FP16 parts on the simulated tensor cores of sm_90, which sum as hardware does."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.errors import ShapeError, UnavailableError
from analysis.product_errors import sample_inputs
from kernels.product import Product
from kernels.split_paths import LEAST_K, NARROW, SQUARE, TILES, WIDE, plan_for, split
from tests.refusals import refusal
from tests.sampling import exhaustive
from toolkit.execution.path_time import arguments_of
from toolkit.execution.sanitizer import check
from validation.products.simulated import compiled, simulate_plan

SMS = 4
H200 = find_device("h200")

# Worst case of one wgmma: 16 products and the sum so far are cut off below 2^-25 of the largest,
# and the sum below 2^-23. The sums of 64 of K pass 12 of them.
OF_STEPS = 12 * (17 * 2.0**-25 + 2.0**-23)
# What low parts lack: three products of four, each part with 11 bits; and 2^-38 of the largest
# element of a row or column, where a low part is subnormal.
OF_PARTS, OF_LARGEST = 3 * 2.0**-22, 2.0**-38
ROUNDING = 2.0**-24


class Case:
    """A product with its operands, stored as it says, and C of NaN if beta is 0."""

    def __init__(self, a, b, **layout):
        (m, k), n = a.shape, b.shape[1]
        self.a, self.b = a.astype(np.float32), b.astype(np.float32)
        self.product = Product(m=m, n=n, k=k, **layout)
        c = np.full((m, self.product.ldc), np.nan, np.float32)
        if self.product.beta:
            c[:, :n] = np.random.default_rng(9).standard_normal((m, n))
        self.c = c
        self.buffers = {
            "A": stored(self.a, self.product.transpose_a, self.product.lda),
            "B": stored(self.b, self.product.transpose_b, self.product.ldb),
            "C": c.ravel(),
        }

    def run(self, tile, shares=None):
        plan = split(self.product, tile, SMS, shares)
        found = simulate_plan(plan, self.product, self.buffers)
        zeroed = found["workspace"].view(np.int32)[: plan.zeroed_bytes // 4]
        assert not zeroed.any()
        c = found["C"].reshape(self.c.shape)
        assert np.isnan(c[:, self.product.n :]).all()  # gaps between rows stay
        return c[:, : self.product.n]

    @property
    def exact(self):
        one = self.product
        old = one.beta * self.c[:, : one.n].astype(float) if one.beta else 0.0
        with np.errstate(invalid="ignore"):
            return one.alpha * (self.a.astype(float) @ self.b.astype(float)) + old

    def check(self, c):
        """Hold all elements against the error bound, and their mean against float32's rounding."""
        one, a, b = self.product, abs(self.a.astype(float)), abs(self.b.astype(float))
        size = a @ b
        largest = a.max(1)[:, None] * b.sum(0) + a.sum(1)[:, None] * b.max(0)
        bound = (OF_STEPS + OF_PARTS + (one.k / 64 + 4) * ROUNDING) * size + OF_LARGEST * largest
        bound = abs(one.alpha) * bound + 2 * ROUNDING * abs(self.exact)
        error = abs(c - self.exact)
        assert (error <= bound).all()  # False for NaN
        relative = error / (abs(one.alpha) * size + abs(self.exact))
        assert np.sqrt((relative**2).mean()) <= ROUNDING


def stored(matrix, is_transposed, pitch):
    matrix = matrix.T if is_transposed else matrix
    rows = np.full((matrix.shape[0], pitch or matrix.shape[1]), np.nan, np.float32)
    rows[:, : matrix.shape[1]] = matrix
    return rows.ravel()


def normal(m, n, k):
    random = np.random.default_rng(5)
    return random.standard_normal((m, k)), random.standard_normal((k, n))


TURNED = {"transpose_a": True, "transpose_b": True}


@pytest.mark.parametrize(
    ("tile", "sizes", "layout"),
    [
        (SQUARE, (200, 300, 150), {"transpose_b": True, "alpha": 0.5, "beta": 2.0, "ldc": 303}),
        exhaustive(WIDE, (300, 200, 130), {"transpose_a": True, "lda": 301, "ldb": 203}),
        (NARROW, (130, 70, 200), TURNED),
        exhaustive(NARROW, (513, 100, 160), {}),  # more tiles than blocks
    ],
)
def test_ragged_products_of_every_layout(tile, sizes, layout):
    case = Case(*normal(*sizes), **layout)
    case.check(case.run(tile))


@pytest.mark.parametrize(
    ("tile", "sizes", "shares"),
    [
        (NARROW, (130, 170, 200), 2),  # four tiles, and two that two blocks share
        exhaustive(NARROW, (100, 60, 330), 4),  # one tile, in steps of 1, 2, 1 and 2
        exhaustive(SQUARE, (520, 100, 450), 2),  # three tiles of clusters
        exhaustive(WIDE, (300, 200, 130), 1),
        exhaustive(WIDE, (100, 300, 130), 2),
    ],
)
def test_tiles_that_blocks_share(tile, sizes, shares):
    a, b = normal(*sizes)
    case = Case(a, b, **TURNED, beta=0.5)
    c = case.run(tile, shares)
    case.check(c)
    assert np.abs(c - case.run(tile, 1)).max() <= 2.0**-22 * np.abs(c).max()
    a[3, 4], b[5, 9] = np.inf, np.nan
    case = Case(a, b, **TURNED, beta=0.5)
    c, exact = case.run(tile, shares), case.exact
    assert np.array_equal(np.isnan(c), np.isnan(exact))
    assert np.array_equal(np.isposinf(c), np.isposinf(exact))


@pytest.mark.exhaustive
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_every_tile_of_every_layout(tile, transpose_a, transpose_b):
    layout = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    for sizes in ((128, 256, 128), (257, 129, 65)):
        case = Case(*normal(*sizes), **layout)
        case.check(case.run(tile))


SMALL = 130, 70, 200  # one machine code of each kernel serves all tests below


def of_small(a, b, **more):
    return Case(a, b, **TURNED, **more)


@pytest.mark.exhaustive
def test_two_runs_have_the_same_bits():
    case = of_small(*normal(*SMALL))
    assert case.run(NARROW).tobytes() == case.run(NARROW).tobytes()


def test_rows_and_columns_of_any_scale():
    a, b = normal(*SMALL)
    random = np.random.default_rng(6)
    a *= 2.0 ** random.integers(-60, 30, a.shape[0])[:, None]
    b *= 2.0 ** random.integers(-60, 30, b.shape[1])
    case = of_small(a, b)
    case.check(case.run(NARROW))


def scaled_along_k(bits):
    a, b = normal(*SMALL)
    factors = 2.0 ** np.random.default_rng(6).integers(-bits, bits + 1, a.shape[1])
    return a * factors, b / factors[:, None]


def test_scales_along_k_that_cancel_are_taken_out_exactly():
    """Powers of two along K change no bit of the result: equilibration undoes them."""
    scaled, plain = of_small(*scaled_along_k(30)).run(NARROW), of_small(*normal(*SMALL)).run(NARROW)
    case = of_small(*scaled_along_k(30))
    case.check(scaled)
    assert np.abs(scaled - plain).max() <= 2.0**-22 * np.abs(plain).max()


MANY, SOME, FEW = range(3)  # kernels/split_products/terms.cuh


def integers(a, b):
    return np.round(20 * a), b


def one_column(a, b):
    return np.where(np.arange(a.shape[1]) == 77, 2.0**40, 1.0) * a, b


def one_row(a, b):
    return tuple(one.T for one in one_column(b.T, a.T))[::-1]


def few_along_k(a, b):
    factors = np.where(np.arange(a.shape[1]) % 97 == 0, 2.0**20, 1.0)
    return a * factors, b / factors[:, None]


def wide_exponents(a, b):
    return a * 2.0 ** np.random.default_rng(6).integers(-20, 21, a.shape), b


@pytest.mark.parametrize(
    ("change", "terms"),
    [
        (lambda a, b: (a, b), MANY),
        (lambda a, b: (a * 1e-40, b * 1e37), MANY),
        (integers, SOME),
        (wide_exponents, SOME),
        (few_along_k, SOME),  # few before equilibration
        (one_column, FEW),
        (one_row, FEW),
        (lambda a, b: (np.eye(*a.shape), b), FEW),
        (lambda a, b: (0 * a, b), SOME),
    ],
)
def test_samples_say_how_many_terms_carry_a_sum(change, terms):
    case = of_small(*change(*normal(*SMALL)))
    plan = split(case.product, NARROW, SMS)
    passes = replace(plan, launches=plan.launches[:2])
    found = simulate_plan(passes, case.product, case.buffers)
    m, n, _ = SMALL
    assert found["workspace"].view(np.int32)[plan.zeroed_bytes // 4 + m + n] == terms


def relative_rms(case, c):
    size = abs(case.a.astype(float)) @ abs(case.b.astype(float))
    return np.sqrt((((c - case.exact) / size) ** 2).mean())


def test_sums_of_many_terms_get_back_what_is_cut_off():
    """Without it, the error of sums that do not cancel is 1.9e-7."""
    random = np.random.default_rng(5)
    m, n, k = SMALL
    case = of_small(random.random((m, k)), random.random((k, n)))
    assert relative_rms(case, case.run(NARROW)) <= 2 * ROUNDING


def test_sums_of_some_terms_are_short_and_keep_what_additions_lose():
    """In sums of 64 of K, and without what additions lose, the error is 8.0e-8."""
    a, b = sample_inputs("exponents-60", 1984, seed=1, rows=64, columns=64)
    case = of_small(a, b)
    assert relative_rms(case, case.run(NARROW, shares=1)) <= 5.3e-8


def test_sums_of_one_term_are_three_times_as_far_off_as_a_rounded_product():
    """Without products of low parts and sums apart, it would be 3.4 times."""
    case = of_small(*one_column(*normal(*SMALL)))
    rounded = relative_rms(case, case.exact.astype(np.float32))
    assert relative_rms(case, case.run(NARROW)) <= 3 * rounded


def test_inf_and_nan_reach_their_rows_and_columns_alone():
    a, b = normal(*SMALL)
    a[5, 3], a[77, 9], b[4, 10] = np.inf, np.nan, -np.inf
    case = of_small(a, b, beta=1.0)
    c, exact = case.run(NARROW), case.exact
    assert np.array_equal(np.isnan(c), np.isnan(exact))
    infinite = np.isinf(exact)
    assert np.array_equal(c[infinite], exact[infinite].astype(np.float32))
    finite = np.isfinite(exact)
    assert finite.sum() == (a.shape[0] - 2) * (b.shape[1] - 1)
    assert np.abs(c[finite] - exact[finite]).max() <= 1e-4


def test_zeros_integers_and_subnormal_numbers():
    a, b = normal(*SMALL)
    a, b = np.round(20 * a), np.round(20 * b)
    a[8], b[:, 3] = 0, 0
    case = of_small(a, b)
    assert np.array_equal(case.run(NARROW), case.exact)
    small = of_small(a * 2.0**-149, b * 2.0**100)
    assert np.array_equal(small.run(NARROW), small.exact)


def test_sums_that_overflow_are_infinite():
    a, b = (abs(one) for one in normal(*SMALL))
    case = of_small(a * 1e19, b * 1e19)
    assert np.isposinf(case.run(NARROW)).all()


@pytest.mark.parametrize(
    ("tile", "sizes", "shares"),
    [(NARROW, SMALL, 1), exhaustive(WIDE, SMALL, 1), (NARROW, (130, 170, 200), 2)],
)
def test_check_finds_nothing(tile, sizes, shares):
    a, b = normal(*sizes)
    a[3, 4] = np.inf
    case = of_small(a, b)
    plan = split(case.product, tile, SMS, shares)
    size = plan.workspace_bytes // 4 + 1
    buffers = case.buffers | {"workspace": np.zeros(size, np.float32)}
    for launch in plan.launches:
        found = check(
            compiled(launch),
            grid=launch.grid,
            block=launch.block,
            dynamic_shared_bytes=launch.dynamic_shared_bytes,
            arguments=arguments_of(launch, case.product, buffers),
        )
        assert (launch.entry, found.findings) == (launch.entry, ())


# The choice.


@pytest.mark.parametrize("sizes", [(512, 512, 512), (8, 4096, 4096), (4096, 4, 4096)])
def test_products_that_float32_computes_faster_are_left_to_it(sizes):
    m, n, k = sizes
    assert plan_for(H200, Product(m=m, n=n, k=k)).startswith("by estimate it takes ")


def test_short_sums_are_left_to_float32():
    said = plan_for(H200, Product(m=4096, n=4096, k=LEAST_K - 1))
    assert said == "sums of k = 127 are more accurate with it, those of 128 are not"


def test_large_products_go_to_tensor_cores():
    assert plan_for(H200, Product(m=4096, n=4096, k=4096)).label.startswith("split:128x")


def test_a_batch_has_launches_for_each_product():
    plan = plan_for(H200, Product(m=1024, n=1024, k=1024, batch=3, stride_b=0))
    assert len(plan.launches) == 9
    offsets = [launch.arguments[0].offset_bytes for launch in plan.launches[::3]]
    assert offsets == [0, 2**22, 2**23]  # 4 B * 1024 * 1024
    assert "a batch of more than 64" in plan_for(H200, Product(m=1024, n=1024, k=1024, batch=65))


def test_a_device_without_wgmma_is_refused():
    said = refusal(
        UnavailableError, plan_for, find_device("a100-80gb"), Product(m=999, n=999, k=999)
    )
    assert said.endswith('is sm_80: take precision = "fp32"')


def test_shares_that_get_no_step_are_refused():
    product = Product(m=130, n=170, k=200)  # six tiles for four blocks, in four steps
    assert split(product, NARROW, SMS, 2).label.endswith("shares=2")
    for shares in (0, 3):
        with pytest.raises(ShapeError, match=rf"shares = {shares} of a 128x64 tile: give 1 to 2$"):
            split(product, NARROW, SMS, shares)
    whole = Product(m=256, n=128, k=200)  # a round
    with pytest.raises(ShapeError, match=r"shares = 2 of a 128x64 tile: give 1$"):
        split(whole, NARROW, SMS, 2)
