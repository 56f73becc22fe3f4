"""Conversions between formats, one instruction at a time, beside exact fractions.

R2 is the operand, with R3 where it has 64 bits; R4 is written, with R5 where it has.
"""

from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import ceil, floor, trunc

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import State, holding, probe
from tests.sampling import sampled
from tests.toolkit.sass.exact_floats import (
    DIRECTIONS,
    check,
    edges,
    packed,
    probed,
    samples,
    single,
)
from validation.corpus.exact import (
    BFLOAT16,
    BINARY16,
    BINARY32,
    BINARY64,
    NEAREST,
    ZERO,
    Format,
)

SOURCES = {"": BINARY32, ".F64": BINARY64, ".F16": BINARY16, ".BF16": BFLOAT16}
WHOLE = {"": round, ".TRUNC": trunc, ".FLOOR": floor, ".CEIL": ceil}
INTEGERS = [f"{sign}{bits}" for sign in "US" for bits in (8, 16, 32, 64)]


def limits(integer):
    bits = int(integer[1:])
    return (0, (1 << bits) - 1) if integer[0] == "U" else (-1 << (bits - 1), (1 << (bits - 1)) - 1)


def near_whole(form, integer, rng):
    """Anything; halves and wholes; what is at the ends of the range of an integer."""
    low, high = limits(integer)
    numbers = [Fraction(n, 2) for n in range(-9, 10) if n]
    numbers += [Fraction(x) + Fraction(k, 4) for x in (low, high) for k in range(-6, 7)]
    numbers += [Fraction(int(x), 64) for x in rng.integers(-1 << 14, 1 << 14, 64) if x]
    found = [form.rounded(x, d) for x in numbers if x for d in (NEAREST, ZERO)]
    return edges(form) + samples(form, rng, 64) + found


def whole(form, x, integer, rounding, *, nan_to_zero):
    low, high = limits(integer)
    bits = int(integer[1:])
    if form.is_nan(x):
        return 0 if nan_to_zero else 1 << (bits - 1)
    if form.is_infinite(x):
        return low if form.is_negative(x) else high
    return min(max(WHOLE[rounding](form.value(x)), low), high)


@pytest.mark.parametrize(
    ("integer", "source", "rounding"),
    sampled(product(INTEGERS, SOURCES, WHOLE), key=lambda case: case[:2]),
)
def test_numbers_to_integers(integer, source, rounding):
    form, bits = SOURCES[source], int(integer[1:])
    x = near_whole(form, integer, np.random.default_rng(1))
    # .NTZ, a NaN becomes 0, is on all but what has 64 bits
    nan = "" if bits == 64 or form is BINARY64 else ".NTZ"

    def reference(x):
        value = whole(form, x, integer, rounding, nan_to_zero=bool(nan))
        return value & (1 << max(bits, 32)) - 1

    pairs = bits == 64 or form is BINARY64
    text = f"F2I.{integer}{source}{rounding}{nan} R4, R2"
    if pairs and bits < 64:  # the pair R4 keeps its upper word
        check(text, {2: x}, lambda x: reference(x) | 0xDEADBEEF << 32, pairs=True)
    else:
        check(text, {2: x}, reference, pairs=pairs)


def test_a_number_without_a_type_becomes_a_signed_word():
    numbers = single(-1.5, 2.5, 3e9, np.nan)
    for text, wanted in {
        "F2I.NTZ R4, R2": [-2, 2, 0x7FFFFFFF, 0],
        "F2I.TRUNC.NTZ R4, -R2": [1, -2, -0x80000000, 0],
        "F2I.FTZ.CEIL.NTZ R4, |R2|": [2, 3, 0x7FFFFFFF, 0],
    }.items():
        found = probed(text, {2: numbers})
        assert found == [x & 0xFFFFFFFF for x in wanted]


def test_flushed_numbers_are_not_rounded_up():
    tiny = [1, 0x007FFFFF, 0x00800000]
    check("F2I.FTZ.CEIL.NTZ R4, R2", {2: tiny}, lambda x: int(x >= 0x00800000))
    check("F2I.CEIL.NTZ R4, R2", {2: tiny}, lambda x: 1)
    check("FRND.FTZ.CEIL R4, R2", {2: tiny}, lambda x: 0x3F800000 if x >= 0x00800000 else 0)


def test_one_byte_of_a_number():
    x = near_whole(BINARY32, "U8", np.random.default_rng(2))
    for rounding in ("", ".TRUNC"):
        check(
            f"F2IP.U8.F32{rounding}.NTZ R4, RZ, R2, RZ",
            {2: x},
            lambda x, rounding=rounding: whole(BINARY32, x, "U8", rounding, nan_to_zero=True),
        )


def integers(bits, rng):
    """Powers of two and what is beside them, and anything."""
    beside = [(1 << k) + d for k in range(bits) for d in (-1, 0, 1)]
    long = rng.integers(0, 1 << 64, 96, dtype=np.uint64) >> rng.integers(0, 64, 96).astype(
        np.uint64
    )
    return [x & (1 << bits) - 1 for x in (*beside, *(-y for y in beside), *map(int, long))]


@pytest.mark.parametrize(
    ("integer", "target", "direction"),
    sampled(product(INTEGERS, SOURCES, DIRECTIONS), key=lambda case: case[:2]),
)
def test_integers_to_numbers(integer, target, direction):
    form, bits = SOURCES[target], int(integer[1:])
    x = integers(bits, np.random.default_rng(3))

    def reference(x):
        x &= (1 << bits) - 1
        value = x - (1 << bits) if integer[0] == "S" and x >> (bits - 1) else x
        return form.rounded(Fraction(value), direction.strip(".") or NEAREST) if value else 0

    above = 0 if bits >= 32 else 0xABCDEF12 << bits & 0xFFFFFFFF  # bits that are not read
    pairs = bits == 64 or form is BINARY64
    text = f"I2F{target}.{integer}{direction} R4, R2"
    if bits == 64 and form is not BINARY64:
        check(text, {2: x}, lambda x: reference(x) | 0xDEADBEEF << 32, pairs=True)
    else:
        check(text, {2: [y | above for y in x]}, reference, pairs=pairs)


@pytest.mark.parametrize(
    ("text", "shift", "bits", "signed"),
    [
        ("I2F.U8 R4, R2.B1", 8, 8, False),
        ("I2F.U8 R4, R2.B3", 24, 8, False),
        ("I2F.S8 R4, R2.B2", 16, 8, True),
        ("I2F.S16 R4, R2.H1", 16, 16, True),
        ("I2F.U16 R4, R2.H0", 0, 16, False),
        ("I2F R4, R2", 0, 32, True),
        ("I2FP.F32.S32 R4, R2", 0, 32, True),
        ("I2FP.F32.U32 R4, R2", 0, 32, False),
    ],
)
def test_parts_of_a_register(text, shift, bits, signed):
    def reference(x):
        part = x >> shift & (1 << bits) - 1
        value = part - (1 << bits) if signed and part >> (bits - 1) else part
        return BINARY32.rounded(Fraction(value)) if value else 0

    check(text, {2: integers(32, np.random.default_rng(4))}, reference)


def test_integers_of_constants_and_uniform_registers():
    state = holding(UR4=7, R8=3)
    text = "I2F.F64 R4, c[0x0][0x178]; I2FP.F32.S32 R6, UR4; UI2FP.F32.S32 UR5, UR4; I2F R7, -R8"
    after = probe(text, state, constants={(0, 0x178): 0xFFFFFFFE})
    assert (after.r[4, 0], after.r[5, 0]) == (0, 0xC0000000)  # -2
    assert [after.r[6, 0], after.ur[5, 0], after.r[7, 0]] == single(7, 7, -3)


def test_a_number_in_place_of_64_bits_is_their_upper_word():
    # what ptxas makes of cvt.rn.f32.u64 from 5 << 32, and from -1 << 32
    text = "I2F.U64 R4, 0x5; I2F.S64 R5, -0x1; I2F.U64 R6, 0xffffffff"
    after = probe(text, State())
    assert [after.r[k, 0] for k in (4, 5, 6)] == single(5 << 32, -1 << 32, 0xFFFFFFFF << 32)


# Between formats.


def converted(source, target, x, direction=NEAREST):
    sign = target.sign if source.is_negative(x) else 0
    if source.is_nan(x) and source is BINARY64 and target in (BINARY16, BFLOAT16):
        lost = source.fraction_bits - target.fraction_bits
        quiet = target.infinity | 1 << target.fraction_bits - 1
        return sign | quiet | x >> lost & (1 << target.fraction_bits) - 1
    if source.is_nan(x):
        return target.nan
    if source.is_infinite(x) or source.is_zero(x):
        return sign | (target.infinity if source.is_infinite(x) else 0)
    return target.rounded(source.value(x), direction)


def between(source, target, rng):
    """Anything, and what is at, beside and half way between numbers of the other format."""
    numbers = [
        target.value(x) for x in samples(target, rng, 96) + edges(target) if target.is_finite(x)
    ]
    units = Fraction(2) ** (target.least_exponent - target.fraction_bits)
    beside = [x * (1 + k * Fraction(1, 1 << (target.fraction_bits + 2))) + k * units / 4
              for x in numbers for k in (-2, -1, 0, 1, 2)]  # fmt: skip
    found = [source.rounded(x) for x in beside if x]
    return edges(source) + samples(source, rng, 96) + found


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("names", "source", "target"),
    [
        ("F32.F64", BINARY64, BINARY32),
        ("F16.F64", BINARY64, BINARY16),
        ("F16.F32", BINARY32, BINARY16),
        ("BF16.F32", BINARY32, BFLOAT16),
    ],
)
def test_narrower_formats(names, source, target, direction):
    x = between(source, target, np.random.default_rng(5))
    name = direction.strip(".") or NEAREST
    pairs = source is BINARY64

    def reference(x):
        rest = 0xDEADBEEF << 32 if pairs else 0
        if names == "F32.F64" and source.is_nan(x):  # as an H200 does: sign and upper fraction
            return x >> 63 << 31 | 0x7FC00000 | x >> 29 & 0x3FFFFF | rest
        return converted(source, target, x, name) | rest

    check(f"F2F.{names}{direction} R4, R2", {2: x}, reference, pairs=pairs)


def test_wider_formats():
    rng = np.random.default_rng(6)
    for names, source in {"F64.F32": BINARY32, "F64.F16": BINARY16}.items():
        numbers = [x for x in edges(source) + samples(source, rng, 192) if not source.is_nan(x)]
        check(
            f"F2F.{names} R4, R2",
            {2: numbers},
            lambda x, source=source: converted(source, BINARY64, x),
            pairs=True,
        )
    nan = [0x7FFFFFFF, 0xFFC00001]  # keeps its sign and its fraction
    check("F2F.F64.F32 R4, R2", {2: nan},
          lambda x: (x >> 31) << 63 | 0x7FF << 52 | (x & 0x7FFFFF) << 29, pairs=True)  # fmt: skip


@pytest.mark.parametrize("direction", ["", ".RZ"])
@pytest.mark.parametrize("limit", ["", ".RELU", ".SATFINITE"])
@pytest.mark.parametrize("name", ["F16", "BF16"])
def test_two_numbers_to_a_pair_of_halves(name, limit, direction):
    form = BFLOAT16 if name == "BF16" else BINARY16
    a = between(BINARY32, form, np.random.default_rng(7))

    def half(x):
        result = converted(BINARY32, form, x, direction.strip(".") or NEAREST)
        if limit == ".RELU" and form.is_negative(result):
            return 0
        return result - (limit == ".SATFINITE" and form.is_infinite(result))

    columns = {2: a, 3: [*a[40:], *a[:40]]}
    text = f"F2FP{limit}.{name}.F32.PACK_AB{direction} R4, R2, R3"
    check(text, columns, lambda a, b: half(a) << 16 | half(b))
    check(f"F2FP{limit}.{name}.F32.PACK_AB{direction} R4, RZ, R3", columns, lambda a, b: half(b))
    check(f"F2FP{limit}.{name}.F32.MERGE_C{direction} R4, R2, RZ", columns, lambda a, b: half(a))
    if name == "F16":  # sm_80 and sm_86 do not name the formats
        check(f"F2FP{limit}.PACK_AB{direction} R4, R2, R3", columns,
              lambda a, b: half(a) << 16 | half(b))  # fmt: skip


@pytest.mark.parametrize("rounding", WHOLE)
@pytest.mark.parametrize("source", ["", ".F64", ".F16"])
def test_rounding_to_whole_numbers(source, rounding):
    form = SOURCES[source]
    x = near_whole(form, "S16", np.random.default_rng(9))

    def reference(x):
        if form.is_nan(x):
            return x | 1 << 51 if form is BINARY64 else form.nan
        if form.is_infinite(x):
            return x
        value = WHOLE[rounding](form.value(x))
        return form.rounded(Fraction(value)) if value else x & form.sign

    check(f"FRND{source}{rounding} R4, R2", {2: x}, reference, pairs=form is BINARY64)
    if form is BINARY16:
        columns = {2: packed(reversed(x), x)}
        check(f"FRND.F16{rounding} R4, R2.H1", columns, lambda x: reference(x >> 16))
    else:
        negated = f"FRND{source}{rounding} R4, -R2"
        check(negated, {2: x}, lambda x: reference(x ^ form.sign), pairs=form is BINARY64)


def test_each_conversion_refuses_halves_of_what_has_none():
    for opcode, suffix in product(("FRND", "F2I.NTZ", "F2F.F64.F32"), ("H1", "B2")):
        with pytest.raises(UnsupportedError):
            probe(f"{opcode} R4, R2.{suffix}", State())


@cache
def bytes_as_numbers(name):
    """The value of each byte that is a finite number (PTX ISA, .e4m3 and .e5m2), both zeros."""
    fraction_bits, bias = (3, 7) if name == "E4M3" else (2, 15)
    found = {}
    for byte in range(0x7F if name == "E4M3" else 0x7C):
        exponent, fraction = byte >> fraction_bits, byte & (1 << fraction_bits) - 1
        significand = fraction + (1 << fraction_bits if exponent else 0)
        found[byte] = significand * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
    return found | {byte | 0x80: -value for byte, value in found.items()}


@cache
def magnitudes_of_bytes(name):
    """Values of the bytes without a sign, which grow with the byte."""
    return [value for byte, value in bytes_as_numbers(name).items() if byte < 0x80]


@cache
def nearest_byte(name, form, x):
    """The byte nearest to a number, of two the even one; the greatest for what is beyond."""
    if form.is_nan(x):
        return 0x7F
    sign = 0x80 if form.is_negative(x) else 0
    magnitudes = magnitudes_of_bytes(name)
    if form.is_infinite(x):
        return sign | len(magnitudes) - 1
    size = abs(form.value(x))
    above = min(bisect_left(magnitudes, size), len(magnitudes) - 1)
    below = max(above - 1, 0)
    return sign | min((below, above), key=lambda b: (abs(magnitudes[b] - size), b & 1))


@pytest.mark.parametrize("relu", ["", ".RELU"])
@pytest.mark.parametrize("name", ["E4M3", "E5M2"])
def test_numbers_to_bytes(name, relu):
    rng = np.random.default_rng(11)

    def near(form):
        values = list(bytes_as_numbers(name).values())
        middles = [(x + y) / 2 for x, y in pairwise(values)]
        chosen = rng.choice(np.array([x for x in values + middles if x], object), 150)
        bits = [form.rounded(x) for x in chosen] + edges(form)
        return [x + k for x in bits for k in (-1, 0, 1) if 0 <= x + k < 1 << form.bits]

    def byte(form, x):
        negative = form.is_negative(x) and not form.is_nan(x)
        return 0 if relu and negative else nearest_byte(name, form, x)

    a = near(BINARY32)
    columns = {2: a, 3: [*a[40:], *a[:40]], 5: [0xABCD0000 + k for k in range(len(a))]}
    check(f"F2FP.SATFINITE{relu}.{name}.F32.PACK_AB_MERGE_C R4, R2, R3, R5", columns,
          lambda a, b, c: (c & 0xFFFF) << 16 | byte(BINARY32, a) << 8
          | byte(BINARY32, b))  # fmt: skip
    h = near(BINARY16)
    columns = {2: packed(h, reversed(h)), 5: [7 * k for k in range(len(h))]}
    check(f"F2FP.SATFINITE{relu}.{name}.F16.UNPACK_B_MERGE_C R4, R2, R5", columns,
          lambda a, c: c << 16 & 0xFFFFFFFF | byte(BINARY16, a >> 16) << 8
          | byte(BINARY16, a & 0xFFFF))  # fmt: skip


@pytest.mark.parametrize("relu", ["", ".RELU"])
@pytest.mark.parametrize("name", ["E4M3", "E5M2"])
def test_bytes_to_halves(name, relu):
    values = bytes_as_numbers(name)

    def half(byte):
        if byte not in values:
            is_infinite = name == "E5M2" and byte & 0x7F == 0x7C
            found = byte << 8 if is_infinite else BINARY16.nan
        else:
            value = values[byte]
            found = BINARY16.rounded(value) if value else byte << 8
        return 0 if relu and found & 0x8000 else found

    pairs = [x << 8 | (x * 37 + 11) % 256 for x in range(256)]
    columns = {2: [x << 16 | y for x, y in zip(pairs, reversed(pairs), strict=True)]}
    for operand, shift in (("R2", 0), ("R2.H1", 16)):
        check(f"F2FP{relu}.F16.{name}.UNPACK_B R4, {operand}", columns,
              lambda x, s=shift: half(x >> s + 8 & 0xFF) << 16 | half(x >> s & 0xFF))  # fmt: skip


@pytest.mark.parametrize("direction", ["", ".RZ"])
@pytest.mark.parametrize("relu", ["", ".RELU"])
def test_single_precision_with_ten_bits_of_fraction(relu, direction):
    form = BINARY32
    tf32 = Format(exponent_bits=8, fraction_bits=10, nan=0x3FFFF)
    a = samples(form, np.random.default_rng(12), 500) + edges(form)

    def reference(x):
        if form.is_nan(x):
            return 0x7FFFE000
        if relu and form.is_negative(x):
            return 0
        return converted(form, tf32, x, direction.strip(".") or NEAREST) << 13

    check(f"F2FP{relu}.TF32.F32.PACK_B{direction} R4, R2", {2: a}, reference)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_half_to_a_bfloat16(direction):
    halves = list(range(0, 1 << 16, 7)) + edges(BINARY16)
    mode = direction.strip(".") or NEAREST
    check(f"F2F.BF16.F16{direction} R4, R2", {2: halves},
          lambda x: converted(BINARY16, BFLOAT16, x, mode))  # fmt: skip
