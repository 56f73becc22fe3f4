"""The multi-function unit: within the errors that the PTX ISA documents for *.approx.

R2 is the operand, R4 is written.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe import holding, probe
from tests.sampling import exhaustive
from tests.toolkit.sass.exact_floats import probed, single
from validation.corpus.exact import BINARY16, BINARY32

Doubles = NDArray[np.float64]
F = BINARY32
COUNT = 1 << 14


def special(function, x):
    found = probed(f"MUFU.{function} R4, R2", {2: x.view(np.uint32)})
    return np.array(found, np.uint32).view(np.float32)


def evenly(low, high):
    return np.linspace(low, high, COUNT, dtype=np.float32)


def densely(low, high):
    """Some evenly by value, some by magnitude."""
    scales = np.exp2(-np.random.default_rng(1).uniform(0, 30, COUNT)) * np.resize([0, 1], COUNT)
    even = evenly(low, high)
    return np.where(scales > 0, even * scales, even).astype(np.float32)


def outside(low, high, x):
    return x[(x < low) | (x > high)]


def all_magnitudes():
    """Normal numbers above 0."""
    bits = np.random.default_rng(2).integers(0x00800000, 0x7F800000, COUNT)
    return bits.astype(np.uint32).view(np.float32)


def relative(got, want):
    return np.abs(got - want) / np.abs(want)


def absolute(got, want):
    return np.abs(got - want)


Error = Callable[[Doubles, Doubles], Doubles]
TAU = 2 * np.pi
EXACT = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(TAU * (x - np.rint(x))),  # the operand is in turns
    "COS": lambda x: np.cos(TAU * (x - np.rint(x))),
    "TANH": np.tanh,
}


@pytest.mark.parametrize(
    ("function", "operands", "error", "bound"),
    [
        ("RCP", all_magnitudes(), relative, 2**-23),
        ("RCP", -all_magnitudes(), relative, 2**-23),
        ("RSQ", all_magnitudes(), relative, 2**-22.9),
        ("SQRT", all_magnitudes(), relative, 2**-23),
        ("EX2", densely(-126, 128), relative, 2**-22),
        ("EX2", densely(-1, 1), relative, 2**-22),
        ("LG2", evenly(0.5, 2), absolute, 2**-22),
        ("LG2", outside(0.5, 2, all_magnitudes()), relative, 2**-22),
        ("SIN", densely(-1, 1), absolute, 2**-20.5),  # -2 pi to 2 pi
        ("COS", densely(-1, 1), absolute, 2**-20.5),
        ("TANH", densely(-12, 12), relative, 2**-11),
        ("TANH", -all_magnitudes(), relative, 2**-11),
    ],
)
def test_documented_errors(function, operands, error, bound):
    wide = operands.astype(np.float64)
    with np.errstate(all="ignore"):
        want = EXACT[function](wide)
    got = special(function, operands)
    inside = (np.abs(want) >= 2.0**-126) & (np.abs(want) < 2.0**128) & (wide != 0)
    assert inside.sum() > COUNT / 2
    assert (error(got.astype(np.float64), want)[inside] <= bound).all()


def test_large_turns_are_within_the_error_of_small_ones():
    x = all_magnitudes()
    for function in ("SIN", "COS"):
        want = EXACT[function](x.astype(np.float64))
        np.testing.assert_allclose(special(function, x), want, rtol=0, atol=2**-20.5)


INF, NAN = np.inf, np.nan
TINY = 1e-40  # subnormal
HUGE = 2.0**126 * 1.5  # its reciprocal is subnormal


@pytest.mark.parametrize(
    ("function", "operands", "results"),
    [
        ("RCP", (0, -0.0, INF, -INF, NAN, TINY, -TINY, HUGE, -HUGE, 1, -4, 2.0**-126, 2.0**126),
         (INF, -INF, 0, -0.0, NAN, INF, -INF, 0, -0.0, 1, -0.25, 2.0**126, 2.0**-126)),
        ("RSQ", (0, -0.0, INF, -INF, NAN, TINY, -TINY, -1, 1, 4, 2.0**-126),
         (INF, -INF, 0, NAN, NAN, INF, -INF, NAN, 1, 0.5, 2.0**63)),
        ("SQRT", (0, -0.0, INF, -INF, NAN, TINY, -TINY, -1, 1, 4, 2.0**-126),
         (0, -0.0, INF, NAN, NAN, 0, -0.0, NAN, 1, 2, 2.0**-63)),
        ("EX2", (0, -0.0, INF, -INF, NAN, TINY, 1, -1, 127, 128, 1e30, -126, -126.5, -1e30),
         (1, 1, INF, 0, NAN, 1, 2, 0.5, 2.0**127, INF, INF, 2.0**-126, 0, 0)),
        ("LG2", (0, -0.0, INF, -INF, NAN, TINY, -TINY, -1, 1, 8, 2.0**-126),
         (-INF, -INF, INF, NAN, NAN, -INF, -INF, NAN, 0, 3, np.nextafter(np.float32(-126), 0))),
        ("SIN", (0, -0.0, INF, -INF, NAN, 0.25, 0.5, -0.25, 1024.75, 3e38),
         (0, -0.0, NAN, NAN, NAN, 1, -0.0, -1, -1, 0)),
        ("COS", (0, -0.0, INF, NAN, 0.25, 0.5, 0.75, -1e9), (1, 1, NAN, NAN, -0.0, -1, 0, 1)),
        ("TANH", (0, -0.0, INF, -INF, NAN, TINY, -TINY, 20, -1e30),
         (0, -0.0, 1, -1, NAN, TINY, -TINY, 1, -1)),
    ],
)  # fmt: skip
def test_edges(function, operands, results):
    found = special(function, np.array(operands, np.float32)).view(np.uint32)
    wanted = [F.nan if np.isnan(x) else single(x)[0] for x in results]
    assert [hex(x) for x in found] == [hex(x) for x in wanted]


def test_operands_have_signs_and_come_from_everywhere():
    r2, ur3 = single(-4, 4)
    text = """MUFU.RSQ R4, |R2|
        MUFU.RCP R5, -R2
        MUFU.LG2 R6, UR3
        MUFU.SQRT R7, c[0x0][0x160]
        MUFU.RSQ R8, -QNAN
        MUFU.EX2 R9, 3"""
    after = probe(text, holding(R2=r2, UR3=ur3), constants={(0, 0x160): single(9)[0]})
    found = [int(x) for x in after.r[4:10, 0]]
    assert found == [*single(0.5, 0.25, 2, 3), F.nan, *single(8)]


# Halves.


@pytest.mark.parametrize("step", [7, exhaustive(1)])
@pytest.mark.parametrize(("function", "bound"), [("EX2", 2**-9.9), ("TANH", 2**-10.987)])
def test_every_half(function, bound, step):
    every = np.arange(0, 1 << 16, step, dtype=np.uint16)
    x = every.view(np.float16).astype(np.float64)
    with np.errstate(all="ignore"):
        want = EXACT[function](x)
    nan = np.isnan(x)
    normal = ~nan & (np.abs(want) >= 2.0**-14) & (np.abs(want) < 65504)
    for operand, shift in (("R2", 0), ("R2.H1", 16)):
        words = every.astype(np.uint32) << shift | every[::-1].astype(np.uint32) << 16 - shift
        found = probed(f"MUFU.{function}.F16 R4, {operand}", {2: words})
        assert max(found) < 1 << 16  # the upper half is 0
        bits = np.array(found, np.uint16)
        assert (bits[nan] == BINARY16.nan).all()
        with np.errstate(all="ignore"):
            error = (relative if function == "EX2" else absolute)(bits.view(np.float16), want)
        assert (error[normal] <= bound).all()


def test_powers_of_bfloat16():
    """TANH of an H200 exceeds the documented 2^-8, by 0.01%: test_silicon.py has its bits."""
    bits = np.arange(0, 1 << 16, 3, dtype=np.uint32)
    found = probed("MUFU.EX2.BF16 R4, R2", {2: bits})
    with np.errstate(all="ignore"):
        x, got = (
            (np.array(words, np.uint32) << 16).view(np.float32).astype(np.float64)
            for words in (bits, found)
        )
        want = np.exp2(x)
        error = relative(got, want)
    normal = np.isfinite(x) & (want >= 2.0**-126) & (want < 2.0**127)
    assert (error[normal] <= 2**-7).all()


# The upper words of double-precision results.


@pytest.mark.parametrize("number", ["0.099999964237213134766", "-1.0000000083740837e+300", "3"])
def test_a_number_in_the_instruction_is_a_double_of_which_the_upper_word_counts(number):
    state = holding(R2=np.array([float(number)]).view(np.uint32)[1])
    after = probe(f"MUFU.RCP64H R4, {number}; MUFU.RCP64H R5, R2", state)
    assert np.array_equal(after.r[4], after.r[5])


@pytest.mark.parametrize("function", ["RCP64H", "RSQ64H"])
def test_upper_words(function):
    rng = np.random.default_rng(3)
    words = rng.integers(0x00100000, 0x7FE00000, COUNT)
    if function == "RCP64H":
        words |= rng.integers(0, 2, COUNT) << 31
    found = probed(f"MUFU.{function} R4, R2", {2: words})
    x = (words.astype(np.uint64) << np.uint64(32)).view(np.float64)
    got = (np.array(found, np.uint64) << np.uint64(32)).view(np.float64)
    want = 1 / x if function == "RCP64H" else 1 / np.sqrt(x)
    normal = np.abs(want) >= 2.0**-1022
    assert (relative(got, want)[normal] <= 2**-20).all()
    assert (got[~normal] == 0).all()


@pytest.mark.parametrize(
    ("function", "results"),
    [
        # 0, -0, +inf, -inf, NaN, subnormal, -subnormal, 1, -1
        ("RCP64H", (0x7FF00000, 0xFFF00000, 0, 0x80000000, 0x7FFFFFFF, 0x7FF00000,
                                0xFFF00000, 0x3FF00000, 0xBFF00000)),
        ("RSQ64H", (0x7FF00000, 0xFFF00000, 0, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FF00000,
                                0xFFF00000, 0x3FF00000, 0x7FFFFFFF)),
    ],
)  # fmt: skip
def test_edges_of_upper_words(function, results):
    operands = [0, 0x80000000, 0x7FF00000, 0xFFF00000, 0x7FF80000, 0x000FFFFF, 0x80000001,
                0x3FF00000, 0xBFF00000]  # fmt: skip
    found = probed(f"MUFU.{function} R4, R2", {2: operands})
    assert [hex(x) for x in found] == [hex(x) for x in results]


def test_the_logarithm_of_zero_is_infinite(machine):
    """Compilers select the upper word 0xfff00000, which nvdisasm prints as -QNAN."""
    source = 'extern "C" __global__ void ln(double *x) { x[threadIdx.x] = log(x[threadIdx.x]); }'
    x = np.array([0, -0.0, -1, np.inf, 1])
    (found,) = machine.call(source, "ln", grid=1, block=5, arguments=[x]).outputs
    np.testing.assert_array_equal(found, [-np.inf, -np.inf, np.nan, np.inf, 0])
