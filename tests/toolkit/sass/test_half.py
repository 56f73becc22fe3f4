"""Pairs of halves, one instruction at a time, beside exact fractions.

R2, R3 and R5 are the operands a, b and c; R4 is written.
"""

from itertools import product

import numpy as np
import pytest

from tests.probe import holding, probe
from tests.sampling import sampled
from tests.toolkit.sass.exact_floats import (
    COMBINATIONS,
    COMPARISONS,
    check,
    edges,
    packed,
    samples,
    single,
    triples,
)
from validation.corpus.exact import BFLOAT16, BINARY16, BINARY32, ZERO

FORMATS = {"": BINARY16, ".BF16_V2": BFLOAT16}


def pairs_of(form, seed, count=256, *, with_edges=False):
    """The columns of R2, R3, R5."""
    low, high = (triples(form, seed + k, count, with_edges=with_edges) for k in (0, 100))
    return dict(zip((2, 3, 5), map(packed, low, high), strict=True))


def on_halves(function):
    """A function of numbers as one of pairs."""

    def on_pairs(*words):
        low, high = (function(*(word >> shift & 0xFFFF for word in words)) for shift in (0, 16))
        return low | high << 16

    return on_pairs


def limited(form, x, modifiers):
    if ".RELU" in modifiers and form.is_negative(x):
        return 0
    if ".SAT" in modifiers:
        return 0 if form.is_nan(x) or form.is_negative(x) else min(x, form.one)
    return x


def arithmetic(form, modifiers, a, b, c):
    if ".FTZ" in modifiers:
        a, b, c = form.flushed(a), form.flushed(b), None if c is None else form.flushed(c)
    result = form.fused(a, b, c)
    result = form.flushed(result) if ".FTZ" in modifiers else result
    return limited(form, result, modifiers)


@pytest.mark.parametrize("limit", ["", ".SAT", ".RELU"])
@pytest.mark.parametrize("name", ["", ".FTZ", ".BF16_V2"])
def test_arithmetic_rounds_once(name, limit):
    form, modifiers = BFLOAT16 if name == ".BF16_V2" else BINARY16, name + limit
    columns = pairs_of(form, seed=len(modifiers), with_edges=not limit)

    @on_halves
    def fused(a, b, c):
        return arithmetic(form, modifiers, a, b, c)

    @on_halves
    def summed(a, b, c):
        return arithmetic(form, modifiers, a, form.one, b)

    @on_halves
    def multiplied(a, b, c):
        return arithmetic(form, modifiers, a, b, None)

    check(f"HFMA2{modifiers} R4, R2, R3, R5", columns, fused)
    check(f"HFMA2.MMA{modifiers} R4, R2, R3, R5", columns, fused)
    if limit != ".RELU":
        check(f"HADD2{modifiers} R4, R2, R3", columns, summed)
        check(f"HMUL2{modifiers} R4, R2, R3", columns, multiplied)


def test_a_product_half_way_between_two_numbers_is_decided_by_the_least_addend():
    # 513 * 1.0009765625 * 2^k: products of 11-bit numbers that end in half a unit, with addends
    # that single (binary16) and double precision (bfloat16) cannot hold beside them
    for name, form in FORMATS.items():
        rng = np.random.default_rng(1)
        a, b = samples(form, rng, 4096), samples(form, rng, 4096)
        ties = []
        for x, y in zip(a, b, strict=True):
            if not (form.is_finite(x) and form.is_finite(y)) or form.is_zero(x) or form.is_zero(y):
                continue
            exact = form.value(x) * form.value(y)
            units = exact.numerator >> max(0, exact.numerator.bit_length() - form.fraction_bits - 2)
            if exact.numerator.bit_length() == form.fraction_bits + 2 and units & 1:
                ties.append((x | x << 16, y | y << 16))
        assert len(ties) > 50, name
        for addend in (1, form.sign | 1):
            columns = {2: [x for x, _ in ties], 3: [y for _, y in ties]}
            columns[5] = [addend | addend << 16] * len(ties)
            check(f"HFMA2{name} R4, R2, R3, R5", columns, on_halves(form.fused))


def test_what_rounds_beyond_the_greatest_half_is_infinite():
    # 65504 is the greatest; 65504 + 16 is half way to 65536, whose last bit is even
    state = holding(R2=0x7BFF7BFF, R3=0x4BFF4C00)  # 16 - 1/64, 16
    after = probe("HADD2 R4, R2, R3; HADD2 R5, -R2, -R3", state)
    assert (after.r[4, 0], after.r[5, 0]) == (0x7BFF7C00, 0xFBFFFC00)


SWIZZLES = {
    "R3": lambda low, high: (low, high),
    "-R3": lambda low, high: (low ^ 0x8000, high ^ 0x8000),
    "|R3|": lambda low, high: (low & 0x7FFF, high & 0x7FFF),
    "R3.H0_H0": lambda low, high: (low, low),
    "-R3.H1_H1": lambda low, high: (high ^ 0x8000, high ^ 0x8000),
    "-|R3|.H0_H0": lambda low, high: (low | 0x8000, low | 0x8000),
    "R3.H0_NH1": lambda low, high: (high ^ 0x8000, low),
    "RZ.H0_H0": lambda low, high: (0, 0),
    "1.5, -2": lambda low, high: (0xC000, 0x3E00),
}


@pytest.mark.parametrize("form", SWIZZLES)
def test_operands_in_every_form(form):
    columns = pairs_of(BINARY16, seed=2, count=96)

    def swizzled(opcode, a, b, c):
        x, y = SWIZZLES[form](b & 0xFFFF, b >> 16)
        b = x | y << 16
        return on_halves(opcode)(a, b, c)

    fused = BINARY16.fused
    one = BINARY16.one
    for text, opcode in {
        f"HADD2 R4, R2, {form}": lambda a, b, c: fused(a, one, b),
        f"HMUL2 R4, R2, {form}": lambda a, b, c: fused(a, b, None),
        f"HFMA2 R4, R2, {form}, R5": fused,
        f"HFMA2 R4, R2, R5, {form}": lambda a, b, c: fused(a, c, b),
    }.items():
        check(text, columns, lambda a, b, c, opcode=opcode: swizzled(opcode, a, b, c))


def test_immediates_of_bfloat16():
    columns = pairs_of(BFLOAT16, seed=3, count=64)
    high = [0xC000, 0x3FC0]  # -2, 1.5

    def reference(a, b, c):
        low, up = (
            BFLOAT16.fused(a >> s & 0xFFFF, high[k], c >> s & 0xFFFF) for k, s in ((0, 0), (1, 16))
        )
        return low | up << 16

    check("HFMA2.BF16_V2 R4, R2, 1.5, -2, R5", columns, reference)


# Single precision in and out.


def widened(h):
    if BINARY16.is_nan(h):
        return BINARY32.nan
    if BINARY16.is_infinite(h):
        return (h & 0x8000) << 16 | BINARY32.infinity
    if BINARY16.is_zero(h):
        return (h & 0x8000) << 16
    return BINARY32.rounded(BINARY16.value(h))


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("HADD2.F32 R4, R2.H0_H0, -RZ.H0_H0", lambda a: a & 0xFFFF),
        ("HADD2.F32 R4, -RZ, R2.H1_H1", lambda a: a >> 16),
        ("HADD2.F32 R4, -RZ, -R2.H1_H1", lambda a: a >> 16 ^ 0x8000),
        ("HADD2.F32 R4, |R2|.H0_H0, -RZ.H0_H0", lambda a: a & 0x7FFF),
    ],
)
def test_every_half_widens(text, half):
    every = [x | (x ^ 0x5555) << 16 for x in range(0, 1 << 16, 7)]
    check(text, {2: every}, lambda a: widened(half(a)))


def test_a_sum_in_single_precision_is_rounded_to_a_half_first():
    # sm_75 makes __half2float(__hadd(a, b)) of it, and leaves sums of floats to FADD
    columns = pairs_of(BINARY16, seed=5)

    def summed(a, b, c):
        return widened(BINARY16.fused(a & 0xFFFF, BINARY16.one, b >> 16))

    def multiplied(a, b, c):
        return widened(BINARY16.fused(a & 0xFFFF, b >> 16, None))

    check("HADD2.F32 R4, R2.H0_H0, R3.H1_H1", columns, summed)
    check("HMUL2.F32 R4, R2.H0_H0, R3.H1_H1", columns, multiplied)


def test_a_single_precision_operand_is_truncated():
    rng = np.random.default_rng(6)
    a = samples(BINARY32, rng, 256)
    a += single(*(np.exp2(rng.uniform(-26, 17, 256)) * rng.choice([-1, 1], 256)))

    def truncated(a):
        if BINARY32.is_nan(a):
            return 0x7FFF7FFF
        sign = a >> 16 & 0x8000
        if BINARY32.is_infinite(a) or BINARY32.is_zero(a):
            half = sign | (0x7C00 if BINARY32.is_infinite(a) else 0)
        else:
            half = BINARY16.rounded(BINARY32.value(a), ZERO)
        return half | half << 16

    check("HADD2 R4, R2.F32, -RZ.H0_H0", {2: a}, truncated)


@pytest.mark.parametrize("name", ["", ".BF16"])
@pytest.mark.parametrize("direction", ["RN", "RM", "RP", "RZ"])
def test_halves_are_factors_of_single_precision_sums(name, direction):
    form = BFLOAT16 if name else BINARY16
    columns = pairs_of(form, seed=7, count=128)
    columns[5] = samples(BINARY32, np.random.default_rng(8), 128)

    def single_of(h):
        return (h << 16 if form is BFLOAT16 else widened(h)) & 0xFFFFFFFF

    def summed(a, b, c):
        return BINARY32.fused(single_of(a & 0xFFFF), BINARY32.one, c, direction)

    def fused(a, b, c):
        return BINARY32.fused(single_of(a & 0xFFFF), single_of(b >> 16), c ^ 1 << 31, direction)

    mode = "" if direction == "RN" else f".{direction}"
    check(f"FHADD{name}{mode} R4, R2, R5", columns, summed)
    check(f"FHFMA{name}{mode} R4, R2, R3.H1, -R5", columns, fused)


# Comparisons, minima and maxima.


@pytest.mark.parametrize(
    ("comparison", "combination", "name"),
    sampled(product(COMPARISONS, COMBINATIONS, FORMATS), key=lambda case: (case[0], case[2])),
)
def test_comparisons(comparison, combination, name):
    form = FORMATS[name]
    columns = pairs_of(form, seed=9, count=32)
    columns[3][:8] = columns[2][:8]
    state = holding(R2=columns[2], R3=columns[3], P3=0x5A5A5A5A)
    words = f"{comparison}.{combination}"
    after = probe(
        f"HSETP2{name}.{words} P1, P2, R2, |R3|, P3; HSET2{name}.BF.{words} R4, R2, |R3|, P3; "
        f"HSET2{name}.{words} R5, R2, |R3|, P3",
        state,
    )
    for lane in range(32):
        a, b = int(state.r[2, lane]), int(state.r[3, lane]) & 0x7FFF7FFF
        other = 0x5A5A5A5A >> lane & 1
        low, high = (
            COMBINATIONS[combination](
                form.relation(a >> s & 0xFFFF, b >> s & 0xFFFF) in COMPARISONS[comparison], other
            )
            for s in (0, 16)
        )
        assert [int(after.p[k]) >> lane & 1 for k in (1, 2)] == [low, high]
        assert after.r[4, lane] == low * form.one | high * form.one << 16
        assert after.r[5, lane] == low * 0xFFFF | high * 0xFFFF0000


def test_a_comparison_with_immediates_takes_them_in_the_order_of_the_halves():
    state = holding(R2=0x3C004000)  # high 1, low 2
    after = probe("HSETP2.EQ.AND P0, P1, R2, 1, 2, PT; HSET2.BF.EQ.AND R4, R2, 1, 1, PT", state)
    assert (after.p[0], after.p[1], after.r[4, 0]) == (0xFFFFFFFF, 0xFFFFFFFF, 0x3C000000)


@pytest.mark.parametrize("least", ["PT", "!PT"])
@pytest.mark.parametrize("modifiers", ["", ".FTZ", ".NAN", ".BF16_V2", ".BF16_V2.NAN"])
def test_minima_and_maxima(modifiers, least):
    form = BFLOAT16 if "BF16" in modifiers else BINARY16
    numbers = list(product(edges(form), repeat=2))
    columns = {2: [a | b << 16 for a, b in numbers], 3: [b | a << 16 for a, b in numbers]}

    def extreme(a, b):
        if "FTZ" in modifiers:
            a, b = form.flushed(a), form.flushed(b)
        return form.extreme(a, b, least=least == "PT", nan_wins="NAN" in modifiers)

    def of_magnitudes(a, b):
        result = extreme(a & 0x7FFF, b & 0x7FFF)
        return result if form.is_nan(result) else result | (a ^ b) & 0x8000

    check(f"HMNMX2{modifiers} R4, R2, R3, {least}", columns, on_halves(extreme))
    signed = f"HMNMX2{modifiers}.XORSIGN R4, |R2|, |R3|, {least}"
    check(signed, columns, on_halves(of_magnitudes))
