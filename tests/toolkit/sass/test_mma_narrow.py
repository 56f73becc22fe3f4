"""QMMA and OMMA of sm_120a: elements of 4 and 6 bits, and block scales, through machine code.

No GPU of sm_120 confirmed them. Wanted are sums by the rule of MMA-Sim (arXiv 2511.10909), here in
fractions; it lacks E3M2 and E2M3, which are assumed to be as E2M1.
"""

from fractions import Fraction
from functools import cache
from math import inf, isfinite, isnan, nan

import numpy as np
import pytest

from analysis.errors import LaunchError
from tests.probe import holding, probe
from tests.sampling import sampled
from toolkit import check, simulate
from validation import ROOT
from validation.mma.forms import (
    NARROW_FORMS,
    OF_FOUR_BITS,
    THREADS,
    arguments,
    blocks,
    scales_to_registers,
    source,
    sums_of_registers,
)

# Exponent bits, fraction bits, bias.
FORMATS = {
    "f32": (8, 23, 127),
    "f16": (5, 10, 15),
    "e5m2": (5, 2, 15),
    "e4m3": (4, 3, 7),
    "e3m2": (3, 2, 3),
    "e2m3": (2, 3, 1),
    "e2m1": (2, 1, 1),
}
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}
INFINITE = ("f32", "f16", "e5m2")
TILES = 4


@cache
def number(bits, kind):
    """Exponent and value of an element: a Fraction, inf or nan."""
    exponent_bits, fraction_bits, bias = FORMATS[kind]
    fraction = bits % 2**fraction_bits
    field = bits // 2**fraction_bits % 2**exponent_bits
    sign = -1 if bits >> exponent_bits + fraction_bits & 1 else 1
    if kind in INFINITE and field == 2**exponent_bits - 1:
        return 0, nan if fraction else sign * inf
    if kind == "e4m3" and bits & 0x7F == 0x7F:
        return 0, nan
    exponent = max(field, 1) - bias
    significand = Fraction(fraction, 2**fraction_bits) + (field > 0)
    return exponent, sign * significand * Fraction(2) ** exponent


@cache
def scale(byte, kind):
    """Exponent and value of a scale."""
    if kind == "ue8m0":
        return byte - 127, nan if byte == 255 else Fraction(2) ** (byte - 127)
    return number(byte & 0x7F, "e4m3")


def bits_of(value, kind):
    """Bits of a sum: FP32 cut off towards zero, FP16 to nearest even; 0 has no sign."""
    if kind == "f16":
        rounded = np.float16(float(value) if abs(value) < 65520 else np.sign(value) * inf)
        return int(rounded.view(np.uint16)) & (0xFFFF if rounded else 0)
    magnitude, least = abs(value), Fraction(2) ** -149
    if magnitude >= 2**128:
        found = 0x7F800000
    elif magnitude < Fraction(2) ** -126:
        found = int(magnitude / least)
    else:
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > magnitude
        found = exponent + 126 << 23
        found += int(magnitude / Fraction(2) ** (exponent - 23))
    return found | (0x80000000 if value < 0 and found else 0)


def sum_of(terms, fraction, kind):
    """Bits of a sum of terms (exponent, value), each cut off `fraction` bits below the largest."""
    floor = -21 if kind == "f16" else -133
    unit = Fraction(2) ** (max([floor, *(exponent for exponent, _ in terms)]) - fraction)
    return bits_of(sum(int(value / unit) for _, value in terms) * unit, kind)


def special(values, kind):
    """Bits of a sum that has Inf or NaN among its terms; None if all are finite."""
    if any(isnan(x) for x in values) or {inf, -inf} <= set(values):
        return NAN[kind]
    infinite = [x for x in values if not isfinite(x)]
    if not infinite:
        return None
    of_inf = 0x7C00 if kind == "f16" else 0x7F800000
    return of_inf | (of_inf + 0x3FF + 1 if kind == "f16" else 0x80000000) * (infinite[0] < 0)


def times(x, y):
    """A product of floats and fractions; that of Inf and 0 is NaN."""
    if isfinite(x) and isfinite(y):
        return x * y
    return nan if isnan(x) or isnan(y) or not x or not y else float(np.sign(x) * np.sign(y)) * inf


@cache
def product_of_elements(x, of_x, y, of_y):
    """Exponent and value of the product of two elements."""
    (exponent_x, value_x), (exponent_y, value_y) = number(x, of_x), number(y, of_y)
    return exponent_x + exponent_y, times(value_x, value_y)


def by_bytes(form, a, b, c, scales):
    """An element of QMMA: 32 products and C are the terms; what is zero does not count."""
    factors = [scale(int(x[0]), form.scales.kind) for x in scales] if form.scales else []
    terms = [number(int(c), form.sums)]
    for x, y in zip(a, b, strict=True):
        exponent, value = product_of_elements(int(x), form.a, int(y), form.b)
        for of_factor, factor in factors:
            exponent, value = exponent + of_factor, times(value, factor)
        terms.append((exponent, value))
    found = special([value for _, value in terms], form.sums)
    return sum_of([one for one in terms if one[1]], 25, form.sums) if found is None else found


def by_fours(form, a, b, c, scales):
    """An element of OMMA: exact sums of 16 products, scaled, are the terms."""
    terms = [number(int(c), "f32")] if c & 0x7FFFFFFF else []
    block = 64 // form.scales.count
    for first in range(0, 64, 16):
        total = sum(
            product_of_elements(int(x), "e2m1", int(y), "e2m1")[1]
            for x, y in zip(a[first : first + 16], b[first : first + 16], strict=True)
        )
        of_a, of_b = (scale(int(x[first // block]), form.scales.kind) for x in scales)
        value = times(times(total, of_a[1]), of_b[1]) if isfinite(of_a[1] + of_b[1]) else nan
        if (of_a[1] and of_b[1]) or isnan(value):
            terms.append((of_a[0] + of_b[0], value))
    found = special([value for _, value in terms], "f32")
    return sum_of(terms, 35, "f32") if found is None else found


def kind_of(name):
    form = NARROW_FORMS[name]
    return f"{form.kind} {form.scales.kind if form.scales else form.sums}"


def drawn(form, kind, rng):
    """A, B and C as bits, and the scales of A and of B."""
    is_four = form.kind in OF_FOUR_BITS
    a, b = (
        rng.integers(0, 16 if is_four else 256, (TILES, rows, form.k), np.uint8) for rows in (16, 8)
    )
    c = rng.integers(0, 1 << (16 if form.sums == "f16" else 32), (TILES, 16, 8), form.sum)
    count = form.scales.count if form.scales else 0
    scales = [rng.integers(0, 256, (TILES, rows, count), np.uint8) for rows in (16, 8)]
    if kind == "near":  # terms reach as far below the largest as they count, and a little further
        is_e8 = form.scales and form.scales.kind == "ue8m0"
        if is_e8:
            scales = [rng.integers(116, 139, x.shape, np.uint8) for x in scales]
        spread = 4 if form.sums == "f16" else 32
        c = np.ldexp(rng.standard_normal(c.shape), rng.integers(-spread, spread, c.shape))
        c = c.astype(f"f{form.sum.itemsize}").view(form.sum)
        for x, of in ((a, form.a), (b, form.b)):
            if of == "e5m2":
                x[...] = x & 0xB3 | 0x30
    elif kind == "least":  # sums about the least numbers
        c &= form.sum.type(0x83FF if form.sums == "f16" else 0x80FFFFFF)
        if form.scales and form.scales.kind == "ue8m0":
            low, high = (
                rng.integers(0, 20, scales[0].shape),
                rng.integers(100, 130, scales[1].shape),
            )
            scales = [low.astype(np.uint8), high.astype(np.uint8)]
    elif kind == "zeros":
        for x in (a, b, c, *scales):
            x[rng.random(x.shape) < 0.8] = 0
        if form.scales and form.scales.kind == "ue4m3":
            scales[0][rng.random(scales[0].shape) < 0.3] = 0x80
    return a, b, c, scales


def product(form, a, b, c, scales, rng):
    words = None
    if form.scales:
        others = rng.integers(0, 1 << 32, (len(a), 2, 32), np.uint32)
        words = scales_to_registers(form.scales, *scales, others)
    execution = simulate(
        source(form),
        form.name,
        grid=blocks(len(a)),
        block=THREADS,
        arguments=arguments(form, a, b, c, words),
        arch="sm_120",
        blocks="all",
        predict=False,
    )
    return sums_of_registers(form, execution.outputs[3])


@pytest.mark.parametrize("kind", ["random bits", "near", "least", "zeros"])
@pytest.mark.parametrize("name", sampled(list(NARROW_FORMS), kind_of))
def test_sums_are_those_of_the_rule(name, kind):
    form = NARROW_FORMS[name]
    rng = np.random.default_rng([list(NARROW_FORMS).index(name), len(kind)])
    a, b, c, scales = drawn(form, kind, rng)
    # A byte that holds an element of 4 bits has it in bits 2 to 5; the others do not count.
    shifts = [2 if of == "e2m1" and form.kind not in OF_FOUR_BITS else 0 for of in (form.a, form.b)]
    sums = product(form, a, b, c, scales, rng)
    rule = by_fours if form.kind in OF_FOUR_BITS else by_bytes
    for tile, row, column in np.ndindex(sums.shape):
        wanted = rule(
            form,
            a[tile, row] >> shifts[0],
            b[tile, column] >> shifts[1],
            c[tile, row, column],
            (scales[0][tile, row], scales[1][tile, column]),
        )
        assert sums[tile, row, column] == wanted, (tile, row, column)


SCALED = {
    "QMMA": "QMMA.SF.16832.F32.E2M1.E2M1.E8 R8, R0, R4, RZ, R6, R7, UR0",
    "OMMA": "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X R8, R0, R4, RZ, R6, R7, UR0",
}
ONES = {"QMMA": 0x08080808, "OMMA": 0x22222222}


def scaled_ones(opcode, scale_of_a, scale_of_b):
    """Sums of products of ones; every byte of all lanes is the scale."""
    state = holding(UR0=0, R6=scale_of_a * 0x01010101, R7=scale_of_b * 0x01010101)
    for register in range(6):
        state.r[register] = ONES[opcode]
    after = probe(SCALED[opcode], state, capability=120)
    return after.r[8:12].view(np.float32)


@pytest.mark.parametrize(
    ("opcode", "scales", "wanted"),
    [
        ("QMMA", (127, 127), 32.0),
        ("QMMA", (0, 254), 32.0),  # 2^-127 and 2^127
        ("QMMA", (0, 127), 32 * 2.0**-127),
        ("QMMA", (0, 0), 0.0),
        ("QMMA", (254, 254), inf),
        ("OMMA", (0x38, 0x38), 64.0),
        ("OMMA", (0xB8, 0x38), 64.0),  # the sign bit does not count
        ("OMMA", (0x01, 0x38), 64 * 2.0**-9),
        ("OMMA", (0x7E, 0x7E), 64 * 448.0**2),
        ("OMMA", (0x00, 0x38), 0.0),
    ],
)
def test_scales_of_blocks_multiply(opcode, scales, wanted):
    assert (scaled_ones(opcode, *scales) == wanted).all()


@pytest.mark.parametrize(("opcode", "of_nan"), [("QMMA", 255), ("OMMA", 0x7F), ("OMMA", 0xFF)])
@pytest.mark.parametrize("other", [0, 0x38, 254])
def test_a_scale_that_is_no_number_gives_nan(opcode, of_nan, other):
    for scales in ((of_nan, other), (other, of_nan)):
        assert np.isnan(scaled_ones(opcode, *scales)).all()


@pytest.mark.parametrize("text", SCALED.values(), ids=SCALED)
def test_a_part_of_a_warp_cannot_multiply(text):
    with pytest.raises(LaunchError):
        probe(f"@P0 {text}", holding(P0=0xFFFF), capability=120)
    probe(f"@P1 {text}", holding(P0=0xFFFF), capability=120)  # no lane at all does nothing


MXFP4 = ROOT / "validation" / "mma" / "kernels" / "mxfp4.cu"
M, N, K = 64, 128, 512
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.fixture(scope="module")
def operands():
    """Elements and scales of A and of B, as the kernel takes them and as numbers."""
    rng = np.random.default_rng(4)
    packed, scales, numbers = [], [], []
    for rows in (M, N):
        x = rng.integers(0, 16, (rows, K), np.uint8)
        scale = rng.integers(120, 135, (rows, K // 32), np.uint8)
        packed.append(x[:, ::2] | x[:, 1::2] << 4)
        scales.append(scale)
        signed = np.where(x & 8, -1, 1) * E2M1[x & 7]
        numbers.append(signed * np.repeat(2.0 ** (scale.astype(int) - 127), 32, axis=1))
    return [*packed, *scales], numbers


def launch(given):
    arguments = [*given, np.zeros((M, N), np.float32), np.int32(N), np.int32(K)]
    return {"grid": (N // 64, M // 64), "block": THREADS, "arguments": arguments}


def test_a_product_of_mxfp4_is_right_and_has_counters_lines_and_a_page(operands):
    given, (a, b) = operands
    done = simulate(MXFP4, "mxfp4", device="rtx-5090", blocks="all", **launch(given))
    wanted = a @ b.T
    # Each of the K / 64 sums is cut off, within 2^-23 of its terms.
    allowed = (K // 64) * 2.0**-23 * (np.abs(a) @ np.abs(b).T)
    assert (np.abs(done.outputs[4] - wanted) <= allowed).all()
    warps = 4 * (M // 64) * (N // 64)
    assert done.counters["sm__inst_executed_pipe_tensor.sum"] == warps * 8 * K // 64
    text = MXFP4.read_text(encoding="utf-8").splitlines()
    lines = {n for (_, n), x in done.lines.items() if x.get("sm__inst_executed_pipe_tensor.sum")}
    assert lines
    assert all("multiply_step<" in text[line - 1] for line in lines)
    assert {cost.line for cost in done.predicted.lines} & lines
    assert "multiply_step&lt;" in done.html()


def test_check_finds_nothing_in_a_product_of_mxfp4(operands):
    given, _ = operands
    assert not check(MXFP4, "mxfp4", arch="sm_120", **launch(given)).findings
