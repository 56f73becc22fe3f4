"""Floating-point operations that round once, in any direction, from exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

NEAREST, ZERO, UP, DOWN = "rn", "rz", "ru", "rd"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A binary format of IEEE 754: bits of the significand, and the range of exponents."""

    precision: int
    least: int
    most: int


FORMATS = {
    np.dtype(np.float16): Format(precision=11, least=-14, most=15),
    np.dtype(np.float32): Format(precision=24, least=-126, most=127),
    np.dtype(np.float64): Format(precision=53, least=-1022, most=1023),
}


def rounded(value: Fraction, dtype: DTypeLike, mode: str = NEAREST) -> float:
    """`value` (not 0) as the nearest number of `dtype` in the direction of `mode`."""
    form = FORMATS[np.dtype(dtype)]
    sign, magnitude = (-1 if value < 0 else 1), abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, form.least) - form.precision + 1)
    count, rest = divmod(magnitude, quantum)
    away = {UP: sign > 0, DOWN: sign < 0, ZERO: False}.get(mode)
    if away is None:
        away = rest > quantum / 2 or (rest == quantum / 2 and count % 2 == 1)
    count += bool(rest and away)
    if count * quantum >= Fraction(2) ** (form.most + 1):
        largest = (Fraction(2) - Fraction(2) ** (1 - form.precision)) * Fraction(2) ** form.most
        return sign * (math.inf if away or mode == NEAREST else float(largest))
    return math.copysign(float(count * quantum), sign)


def fused(x: float, y: float, z: float | None, dtype: DTypeLike, mode: str = NEAREST) -> float:
    """x·y + z, or x·y where z is None, rounded once."""
    terms = (x, y) if z is None else (x, y, z)
    if not all(map(math.isfinite, terms)):
        if math.isfinite(x) and math.isfinite(y):
            return float(z or 0)  # infinite or NaN
        return float(np.float64(x) * np.float64(y) + np.float64(0 if z is None else z))
    product = Fraction(x) * Fraction(y)
    total = product + Fraction(z or 0)
    if total:
        return rounded(total, dtype, mode)
    negative = (math.copysign(1, x) < 0) != (math.copysign(1, y) < 0)
    if z is None:
        return -0.0 if negative else 0.0
    if product == 0 and negative == (math.copysign(1, z) < 0):
        return -0.0 if negative else 0.0
    return -0.0 if mode == DOWN else 0.0


def _elementwise(function: Callable[..., float], dtype: DTypeLike, *operands: Array) -> Array:
    lists = (np.asarray(operand, np.float64).ravel().tolist() for operand in operands)
    shape = np.shape(operands[0])
    return np.array([function(*row) for row in zip(*lists, strict=True)], dtype).reshape(shape)


def fma(x: Array, y: Array, z: Array, mode: str = NEAREST) -> Array:
    """x·y + z in the type of `x`, rounded once."""
    x, y, z = np.broadcast_arrays(x, y, z)
    return _elementwise(lambda a, b, c: fused(a, b, c, x.dtype, mode), x.dtype, x, y, z)


def add(x: Array, y: Array, mode: str = NEAREST) -> Array:
    return _elementwise(lambda a, b: fused(a, 1.0, b, x.dtype, mode), x.dtype, x, y)


def multiply(x: Array, y: Array, mode: str = NEAREST) -> Array:
    return _elementwise(lambda a, b: fused(a, b, None, x.dtype, mode), x.dtype, x, y)


def narrow(x: Array, dtype: DTypeLike, mode: str = NEAREST) -> Array:
    """Floats, or integers of any size, as `dtype`."""

    def one(number: float) -> float:
        if not math.isfinite(number) or number == 0:
            return float(number)
        return rounded(Fraction(number), dtype, mode)

    return np.array([one(number) for number in x.ravel().tolist()], dtype).reshape(x.shape)


def integer(x: Array, dtype: DTypeLike, mode: str, *, if_nan: int) -> Array:
    """Floats as integers of `dtype`, clamped to its range."""
    limits = np.iinfo(dtype)
    directions: dict[str, Callable[[float], int]] = {
        NEAREST: round, ZERO: math.trunc, UP: math.ceil, DOWN: math.floor,
    }  # fmt: skip
    rounding = directions[mode]

    def one(number: float) -> int:
        if math.isnan(number):
            return if_nan
        if math.isinf(number):
            return int(limits.max) if number > 0 else int(limits.min)
        return max(int(limits.min), min(int(limits.max), rounding(number)))

    numbers = x.astype(np.float64).ravel().tolist()
    return np.array([one(number) for number in numbers], dtype).reshape(x.shape)


def smaller(a: Array, b: Array) -> Array:
    """The smaller one: a number rather than NaN, -0 rather than +0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), np.fmin(a, b))


def larger(a: Array, b: Array) -> Array:
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), np.fmax(a, b))


def ulps(value: Array, count: Array | float, dtype: DTypeLike = np.float32) -> Array:
    """`count` units in the last place of `dtype` at each value."""
    form = FORMATS[np.dtype(dtype)]
    with np.errstate(all="ignore"):
        exponent: Array = np.floor(np.log2(np.abs(value.astype(np.float64))))
    exponent = np.clip(np.nan_to_num(exponent, neginf=form.least), form.least, form.most)
    return np.asarray(count * np.exp2(exponent - form.precision + 1))
