"""Cases of floating point: operators, functions, rounding, conversions, halves.

Errors of functions are those of the CUDA C++ Programming Guide, "Mathematical Functions", with
one unit in the last place for the rounding of the reference and of what the result is made from.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy import (
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from numpy.random import Generator

from validation.corpus.case import (
    Array,
    Case,
    Given,
    Make,
    Near,
    Outcome,
    Outcomes,
    blank,
    flat,
    floats,
    grid_of,
    integers,
    launched,
    listed,
    words,
)
from validation.corpus.exact import (
    DOWN,
    NEAREST,
    UP,
    ZERO,
    add,
    fma,
    integer,
    larger,
    multiply,
    narrow,
    smaller,
    ulps,
)

N = 160
ENDS = (0.0, -0.0, math.inf, -math.inf, math.nan)
DENORMALS = (1e-45, -1e-45, 1e-40, -3e-39, 1.1754942e-38, 1.1754944e-38)

Numbers = Callable[[Generator, int], Array]  # so many numbers
Error = Callable[[Array, Array], Array | float]  # of input and exact value


def within(count: float) -> Error:
    return lambda x, value: ulps(value, count)


def unary(
    kernel: str,
    function: Callable[[Array], Array],
    inputs: Numbers,
    error: Error,
    n: int = N,
) -> Case:
    def expected(args: Given) -> Outcome:
        x = args[1].astype(float64)
        value = function(x)
        return Near(value=value, error=error(x, value))

    return launched(
        kernel,
        flat(n, 64),
        [blank(n), lambda rng: inputs(rng, n), n],
        expected,
        label=None if n == N else n,
        file="float_math.cu",  # whose macros name the kernels
    )


def between(low: float, high: float, *special: float) -> Numbers:
    def draw(rng: Generator, n: int) -> Array:
        x = rng.uniform(low, high, n)
        places = rng.permutation(n)[: len(special)]
        x[places] = special
        return x.astype(float32)

    return draw


def magnitudes(low: int, high: int, *special: float, positive: bool = False) -> Numbers:
    def draw(rng: Generator, n: int) -> Array:
        x = floats(n, (low, high), special=special)(rng)
        return np.where(x < 0, -x, x) if positive else x

    return draw


def error_function(x: Array) -> Array:
    return np.array([math.erf(value) for value in x.tolist()])


SINGLE = 2.0**-21.19  # the absolute error of the hardware's sine and cosine on [-π, π]

UNARY = (
    unary("unary_sinf", np.sin, between(-50, 50, *ENDS, 1e5, -3e6, 1e20, 1e-20), within(3)),
    unary("unary_cosf", np.cos, between(-50, 50, *ENDS, 1e5, -3e6, 1e20, 1e-20), within(3)),
    unary("unary_expf", np.exp, between(-100, 85, *ENDS, 1e30, -1e30), within(2)),
    unary("unary_exp2f", np.exp2, between(-145, 127, *ENDS, 1e30, -1e30), within(3)),
    unary("unary_logf", np.log, magnitudes(-120, 120, *ENDS, *DENORMALS), within(1)),
    unary("unary_log2f", np.log2, magnitudes(-120, 120, *ENDS, *DENORMALS), within(2)),
    unary("unary_tanhf", np.tanh, between(-4, 4, *ENDS, 1e-5, 30, -30), within(2)),
    unary("unary_sqrtf", np.sqrt, magnitudes(-120, 120, *ENDS, *DENORMALS), within(0.5)),
    unary("unary_rsqrtf", lambda x: 1 / np.sqrt(x), magnitudes(-120, 120, *ENDS), within(2)),
    unary("unary_reciprocal", lambda x: 1 / x, magnitudes(-120, 120, *ENDS), within(0.5)),
    unary("unary_erff", error_function, between(-4, 4, *ENDS, 1e-5), within(3)),
    unary("unary_atanf", np.arctan, magnitudes(-10, 10, *ENDS), within(3)),
    unary("unary_cbrtf", np.cbrt, magnitudes(-100, 100, *ENDS, *DENORMALS), within(2)),
    unary("fast_sin", np.sin, between(-math.pi, math.pi, 0.0), lambda x, _: SINGLE),
    unary("fast_cos", np.cos, between(-math.pi, math.pi, 0.0), lambda x, _: SINGLE),
    unary(
        "fast_exp",
        np.exp,
        between(-80, 80, 0.0, math.inf, -math.inf, math.nan),
        lambda x, value: ulps(value, 3 + 1.173 * abs(np.nan_to_num(x, posinf=0, neginf=0))),
    ),
    unary(
        "fast_log",
        np.log,
        magnitudes(-100, 100, math.inf, positive=True),
        lambda x, value: np.maximum(ulps(value, 4), 2.0**-21.41),
    ),
)


def pairs(
    rng: Generator, special: tuple[float, ...], dtype: type = float32, reach: int = 40
) -> list[Array]:
    """Two columns of numbers, with every pair of special ones."""
    a, b = (floats(N, (-reach, reach), dtype)(rng) for _ in range(2))
    a[: len(special) ** 2] = np.repeat(special, len(special))
    b[: len(special) ** 2] = np.tile(special, len(special))
    close = slice(-N // 4, None)  # of like magnitude: cancellation, ties
    b[close] = a[close] * rng.uniform(-1.1, 1.1, N // 4).astype(dtype)
    return [a, b]


def columns(
    kernel: str,
    inputs: Make,
    width: int,
    dtype: type,
    function: Callable[..., list[Array]],
    error: Callable[[Array], Array] | None = None,
) -> Case:
    """One output row per thread; `function` maps the input arrays to its columns."""

    def expected(args: Given) -> Outcome:
        value = np.stack(function(*args[1:-1]), 1)
        if error is None:
            return value.astype(dtype)
        return Near(value=value, error=error(value))

    return launched(
        kernel,
        flat(N, 64),
        lambda rng: [blank((N, width), dtype), *listed(inputs, rng), N],
        expected,
    )


def float_binary(x: Array, y: Array) -> list[Array]:
    one = float32(1)
    doubled = abs(x).astype(float64) - 2 * y.astype(float64)  # rounded once
    difference = np.where(x <= y, float32(0), x - y)
    return [
        x + y, x - y, x * y, x / y, smaller(x, y), larger(x, y), fma(x, y, np.full(N, 1.5 * one)),
        doubled.astype(float32), np.copysign(x, y), np.where(x < y, x, -y), difference,
        np.where(np.isnan(x), 0 * one, np.clip(x, 0, 1)),
    ]  # fmt: skip


def in_directions(x: Array, y: Array) -> list[Array]:
    modes = (NEAREST, ZERO, UP, DOWN)
    return [
        *(add(x, y, mode) for mode in modes),
        *(multiply(x, y, mode) for mode in modes),
        *(fma(x, y, x, mode) for mode in modes),
    ]


def flushed(x: Array) -> Array:
    return np.where(abs(x) < float32(2.0**-126), np.copysign(float32(0), x), x)


def flush_to_zero(a: Array, b: Array) -> list[Array]:
    x, y = flushed(a), flushed(b)
    return [flushed(add(x, y)), flushed(multiply(x, y)), flushed(fma(x, y, x)), smaller(x, y)]


def compared(x: Array, y: Array, v: Array, w: Array) -> list[Array]:
    bits = (
        x < y, x <= y, x > y, x >= y, x == y, x != y, ~(x < y), ~(x >= y), np.isnan(x), np.isinf(x),
        np.isfinite(y), np.signbit(x), v < w, v <= w, v == w, v != w, ~(v > w), np.isnan(w),
    )  # fmt: skip
    return [sum(bit.astype(uint32) << uint32(k) for k, bit in enumerate(bits))]


def powers(rng: Generator) -> list[Array]:
    return [abs(floats(N, (-6, 6))(rng)), floats(N, (-4, 3))(rng)]


def float_functions(a: Array, b: Array) -> list[Array]:
    x, y = a.astype(float64), b.astype(float64)
    return [x**y, np.fmod(x, y), np.arctan2(x, y), np.hypot(x, y)]


SINGLES = (
    columns(
        "float_binary",
        lambda rng: pairs(rng, (0.0, math.inf, -math.inf, math.nan, 1e-42, -1e-38, 1.0, -2.5)),
        12,
        float32,
        float_binary,
    ),
    columns(
        "float_functions",
        powers,
        4,
        float32,
        float_functions,
        lambda value: ulps(value, 1) * np.array([4, 0, 4, 4]),
    ),
    columns(
        "directed_rounding",
        lambda rng: pairs(rng, (0.0, -0.0, math.inf, math.nan, 1e-45, 3.4028235e38, 1.0)),
        12,
        float32,
        in_directions,
    ),
    columns(
        "flush_to_zero",
        [
            floats(N, (-130, -120), special=(*ENDS[:4], *DENORMALS)),
            floats(N, (-130, 2), special=(*ENDS[:4], *DENORMALS)),
        ],
        4,
        float32,
        flush_to_zero,
    ),
    columns(
        "comparisons",
        lambda rng: [*pairs(rng, (*ENDS, 1.0)), *pairs(rng, (*ENDS, 1.0), float64)],
        1,
        uint32,
        compared,
    ),
)


# Double precision.


def double_binary(x: Array, y: Array) -> list[Array]:
    return [
        x + y, x - y, x * y, x / y, fma(x, y, -x), smaller(x, y), larger(x, y),
        np.sqrt(abs(x)), 1 / y, np.where(x < 0, -y, y),
    ]  # fmt: skip


def double_functions(x: Array) -> list[Array]:
    magnitude = abs(x)
    return [
        np.exp(x), np.log(magnitude), np.sin(x), 1 / np.sqrt(magnitude), np.floor(x), np.rint(x),
    ]  # fmt: skip


def double_directed(x: Array, y: Array) -> list[Array]:
    tenth = np.full(N, 0.1)
    return [
        add(x, y, ZERO), add(x, y, UP), add(x, y, DOWN),
        multiply(x, y, ZERO), multiply(x, y, UP), multiply(x, y, DOWN),
        fma(x, y, tenth, ZERO), fma(x, y, tenth, UP),
    ]  # fmt: skip


DOUBLES = (
    columns(
        "double_binary",
        lambda rng: pairs(rng, (*ENDS, 5e-324, -1e-310, 1.0, -2.5), float64, 300),
        10,
        float64,
        double_binary,
    ),
    columns(
        "double_functions",
        [floats(N, (-20, 9), float64, (1e6, -1e7, 1e22, 0.5, 1.5, 2.5, -0.5))],
        6,
        float64,
        double_functions,
        lambda value: ulps(value, 1, float64) * np.array([2, 2, 4, 4, 0, 0]),
    ),
    columns(
        "double_directed",
        lambda rng: pairs(rng, (0.0, -0.0, math.inf, math.nan, 5e-324, 1.0), float64),
        8,
        float64,
        double_directed,
    ),
)


# Conversions.


def conversion(
    kernel: str,
    inputs: Make,
    outputs: list[tuple[int, type]],
    function: Callable[..., list[list[Array]]],
) -> Case:
    """Several output arrays; `function` maps the input arrays to the columns of each."""

    def expected(args: Given) -> Outcomes:
        found = function(*args[len(outputs) : -1])
        return [
            np.stack(list(columns_), 1).astype(dtype)
            for columns_, (_, dtype) in zip(found, outputs, strict=True)
        ]

    return launched(
        kernel,
        flat(N, 64),
        lambda rng: [
            *(blank((N, width), dtype) for width, dtype in outputs),
            *listed(inputs, rng),
            N,
        ],
        expected,
    )


HALVES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0)
EDGES = (2147483648.0, -2147483648.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 3e38, -3e38)
SIGN_32, SIGN_64 = 2**31, 2**63  # what NaN becomes where a type of 64 bits takes part


def float_to_integers(x: Array) -> list[list[Array]]:
    modes = (ZERO, NEAREST, UP, DOWN)
    return [
        [integer(x, int32, mode, if_nan=0) for mode in modes],
        [integer(x, uint32, mode, if_nan=0) for mode in modes],
        [integer(x, int64, mode, if_nan=-SIGN_64) for mode in (ZERO, NEAREST)],
        [integer(x, uint64, mode, if_nan=SIGN_64) for mode in (ZERO, UP)],
    ]


def double_to_others(x: Array) -> list[list[Array]]:
    return [
        [integer(x, int32, mode, if_nan=-SIGN_32) for mode in (ZERO, NEAREST)],
        [integer(x, uint32, mode, if_nan=SIGN_32) for mode in (ZERO, DOWN)],
        [integer(x, int64, mode, if_nan=-SIGN_64) for mode in (ZERO, UP)],
        [narrow(x, float32, mode) for mode in (NEAREST, ZERO, UP, DOWN)],
    ]


def integers_to_float(s: Array, u: Array, wide: Array, v: Array) -> list[list[Array]]:
    return [
        [
            *(narrow(s, float32, mode) for mode in (NEAREST, ZERO, UP, DOWN)),
            *(narrow(u, float32, mode) for mode in (NEAREST, ZERO)),
            narrow(wide, float32),
            narrow(v, float32),
        ],
        [narrow(x, float64) for x in (s, u, wide, v)],
    ]


def small_integers(x: Array, s: Array) -> list[list[Array]]:
    return [
        [np.clip(s, -128, 127)],
        [integer(x, uint8, NEAREST, if_nan=0)],
        [integer(x, int16, ZERO, if_nan=0)],
        [s.astype(int8), (s >> 8).astype(uint8), s.astype(uint16)],
    ]


def round_functions(x: Array) -> list[Array]:
    whole = np.trunc(x)
    away = whole + np.where(abs(x - whole) >= 0.5, np.copysign(float32(1), x), float32(0))
    nearest = np.rint(x)
    return [
        np.floor(x), np.ceil(x), whole, nearest, np.copysign(away, x), nearest + float32(0),
    ]  # fmt: skip


def half_conversions(x: Array, halves: Array) -> list[list[Array]]:
    h, whole = halves.view(float16), integer(x, int32, ZERO, if_nan=0)
    as_halves = [narrow(x, float16), narrow(x, float16, ZERO), narrow(whole, float16)]
    return [
        as_halves,
        [h.astype(float32)],
        [integer(h, int32, NEAREST, if_nan=0)],
    ]


CONVERSIONS = (
    conversion(
        "float_to_integers",
        [floats(N, (-3, 70), special=(*ENDS, *HALVES, *EDGES))],
        [(4, int32), (4, uint32), (2, int64), (2, uint64)],
        float_to_integers,
    ),
    conversion(
        "double_to_others",
        [floats(N, (-160, 150), float64, (*ENDS, *HALVES, *EDGES, 1e-45, 2147483647.5))],
        [(2, int32), (2, uint32), (2, int64), (4, float32)],
        double_to_others,
    ),
    conversion(
        "integers_to_float",
        [words(N, t) for t in (int32, uint32, int64, uint64)],
        [(8, float32), (4, float64)],
        integers_to_float,
    ),
    conversion(
        "small_integers",
        [
            floats(N, (-3, 20), special=(*ENDS, *HALVES)),
            words(N, int32),
        ],
        [(1, int8), (1, uint8), (1, int16), (3, float32)],
        small_integers,
    ),
    columns(
        "round_functions",
        [floats(N, (-3, 26), special=(0.0, -0.0, *HALVES))],
        6,
        float32,
        round_functions,
    ),
    conversion(
        "half_conversions",
        [
            floats(N, (-28, 18), special=(0.0, -0.0, math.inf, -math.inf, *HALVES)),
            integers(0, 2**16, N, uint16),
        ],
        [(3, float16), (1, float32), (1, int32)],
        half_conversions,
    ),
)


# Halves, two to a word.


def halves(rng: Generator, count: int) -> Array:
    """Bits of halves: most of them ordinary, some of any kind."""
    ordinary = floats(count, (-8, 6), float16)(rng).view(uint16)
    return np.where(rng.random(count) < 0.2, rng.integers(0, 2**16, count), ordinary).astype("u2")


def half2(
    kernel: str,
    width: int,
    function: Callable[[Array, Array], list[Array]],
    dtype: type = float16,
) -> Case:
    """Words in, `width` words out per thread; `function` works on halves as (N, 2)."""

    def expected(args: Given) -> Outcome:
        a, b = (x.view(float16).reshape(N, 2) for x in args[1:3])
        return np.stack(function(a, b), 1).astype(dtype)

    shape = (N, width, 2) if dtype is float16 else (N, width)
    return launched(
        kernel,
        flat(N, 64),
        lambda rng: [
            blank(shape, dtype),
            halves(rng, 2 * N).view(uint32),
            halves(rng, 2 * N).view(uint32),
            N,
        ],
        expected,
    )


def half2_arithmetic(a: Array, b: Array) -> list[Array]:
    one = np.ones_like(a)
    return [add(a, b), multiply(a, b), fma(a, b, a), add(a, -b), fma(-a, abs(b), one)]


def half2_compare(a: Array, b: Array) -> list[Array]:
    less, ones = a < b, np.where(a >= b, 0x3C00, 0)
    return [less[:, 0] + 2 * less[:, 1], ones[:, 0] | ones[:, 1] << 16]


def half2_saxpy() -> Case:
    def expected(args: Given) -> Outcome:
        y, x = (v.view(float16).reshape(N, 2) for v in args[:2])
        a = np.broadcast_to(np.array([args[2]], uint32).view(float16), (N, 2))
        return fma(a, x, y).view(uint32).ravel()

    def make(rng: Generator) -> Given:
        y, x = (floats(2 * N, (-8, 6), float16)(rng).view(uint32) for _ in range(2))
        return [y, x, floats(2, (-2, 2), float16)(rng).view(uint32)[0], N]

    return launched("half2_saxpy", grid_of(1, 64), make, expected)


HALF = (
    half2("half2_arithmetic", 5, half2_arithmetic),
    half2("half2_compare", 2, half2_compare, uint32),
    half2("half2_extremes", 2, lambda a, b: [smaller(a, b), larger(a, b)]),
    half2_saxpy(),
)


def divide_by_constants() -> Case:
    def expected(args: Given) -> Outcomes:
        a, b = args[2:4]
        root = np.sqrt(fma(a, a, np.full(N, 1e-3)))
        tenth, least = float32(0.1), float32(-3e-38)
        return [
            np.stack([a / 0.1, a / 3, a / -1e300, 2.5 / root], 1),
            np.stack([b / tenth, b / float32(7), b / least], 1),
        ]

    return launched(
        "divide_by_constants",
        flat(N, 64),
        [
            blank((N, 4), float64),
            blank((N, 3)),
            floats(N, (-500, 500), float64, (*ENDS, 5e-324, -1e-310)),
            floats(N, (-100, 100), float32, (*ENDS, *DENORMALS)),
            N,
        ],
        expected,
    )


CASES = (*UNARY, *SINGLES, *DOUBLES, *CONVERSIONS, *HALF, divide_by_constants())

COUNTED = (
    unary("unary_sinf", np.sin, between(-50, 50, 1e5, 1e20), within(3), 5_000),
    unary("unary_reciprocal", lambda x: 1 / x, magnitudes(-149, 120), within(0.5), 5_000),
    *DOUBLES,
    *HALF,
)
