"""Floating-point numbers as bits and exact fractions, and operations that round once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

NEAREST, DOWN, UP, ZERO = "RN", "RM", "RP", "RZ"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A binary format: how many bits its fields have, and the NaN that arithmetic yields."""

    exponent_bits: int
    fraction_bits: int
    nan: int

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @cached_property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def infinity(self) -> int:
        return (1 << self.exponent_bits) - 1 << self.fraction_bits

    @cached_property
    def one(self) -> int:
        return self.infinity >> 1 & self.infinity

    @cached_property
    def least_exponent(self) -> int:
        return 2 - (1 << (self.exponent_bits - 1))

    def is_nan(self, x: int) -> bool:
        return x & ~self.sign > self.infinity

    def is_finite(self, x: int) -> bool:
        return x & ~self.sign < self.infinity

    def is_infinite(self, x: int) -> bool:
        return x & ~self.sign == self.infinity

    def is_zero(self, x: int) -> bool:
        return not x & ~self.sign

    def is_negative(self, x: int) -> bool:
        return bool(x & self.sign)

    def flushed(self, x: int) -> int:
        return x if x & self.infinity else x & self.sign

    def value(self, x: int) -> Fraction:
        """The value of a finite number."""
        exponent = (x & self.infinity) >> self.fraction_bits
        fraction = x & (1 << self.fraction_bits) - 1
        significand = fraction | (1 << self.fraction_bits if exponent else 0)
        if self.is_negative(x):
            significand = -significand
        scale = max(exponent, 1) - 1 + self.least_exponent - self.fraction_bits
        return Fraction(significand << scale) if scale > 0 else Fraction(significand, 1 << -scale)

    def rounded(self, value: Fraction, direction: str = NEAREST) -> int:
        """The bits of a value other than 0, rounded once."""
        top, bottom = abs(value.numerator), value.denominator
        exponent = top.bit_length() - bottom.bit_length()
        exponent -= top << max(-exponent, 0) < bottom << max(exponent, 0)
        exponent = max(exponent, self.least_exponent)
        scale = exponent - self.fraction_bits
        bottom <<= max(scale, 0)
        count, rest = divmod(top << max(-scale, 0), bottom)
        outward = direction == (DOWN if value < 0 else UP)
        if direction == NEAREST:
            count += 2 * rest + (count & 1) > bottom  # ties to even
        else:
            count += outward and rest > 0
        sign = self.sign if value < 0 else 0
        x = (exponent - self.least_exponent << self.fraction_bits) + count
        if x >= self.infinity:
            x = self.infinity - (direction != NEAREST and not outward)
        return sign | x

    def fused(self, a: int, b: int, c: int | None, direction: str = NEAREST) -> int:
        """a * b + c, or a * b where c is None, rounded once."""
        sign = (a ^ b) & self.sign  # that of the product
        present = [x for x in (a, b, c) if x is not None]
        if not all(self.is_finite(x) for x in present):
            return self._of_infinities(a, b, c)
        exact = self.value(a) * self.value(b) + (0 if c is None else self.value(c))
        if exact:
            return self.rounded(exact, direction)
        if c is None or (sign == c & self.sign and self.is_zero(c)):
            return sign
        return self.sign if direction == DOWN else 0

    def _of_infinities(self, a: int, b: int, c: int | None) -> int:
        """The same where one of them is infinite or no number."""
        product = (a ^ b) & self.sign | self.infinity
        infinite = self.is_infinite(a) or self.is_infinite(b)
        impossible = infinite and (self.is_zero(a) or self.is_zero(b))
        if impossible or any(self.is_nan(x) for x in (a, b, c) if x is not None):
            return self.nan
        if not infinite:
            assert c is not None
            return c
        return self.nan if c is not None and self.is_infinite(c) and c != product else product

    def ordered(self, x: int) -> int:
        """An integer in the order of the numbers, -0 below +0; not for NaN."""
        return ~(x & ~self.sign) if self.is_negative(x) else x

    def extreme(self, a: int, b: int, *, least: bool, nan_wins: bool = False) -> int:
        nans = self.is_nan(a) + self.is_nan(b)
        if nans == 2 or (nans and nan_wins):
            return self.nan
        if nans:
            return b if self.is_nan(a) else a
        return (min if least else max)(a, b, key=self.ordered)

    def relation(self, a: int, b: int) -> str:
        """Relation of a to b: one of L, E, G, U (less, equal, greater, unordered)."""
        if self.is_nan(a) or self.is_nan(b):
            return "U"
        if self.is_zero(a) and self.is_zero(b):
            return "E"
        x, y = self.ordered(a), self.ordered(b)
        return "E" if x == y else "L" if x < y else "G"


BINARY16 = Format(exponent_bits=5, fraction_bits=10, nan=0x7FFF)
BFLOAT16 = Format(exponent_bits=8, fraction_bits=7, nan=0x7FFF)
BINARY32 = Format(exponent_bits=8, fraction_bits=23, nan=0x7FFFFFFF)
BINARY64 = Format(exponent_bits=11, fraction_bits=52, nan=0xFFF8000000000000)

FORMATS = {
    np.dtype(np.float16): BINARY16,
    np.dtype(np.float32): BINARY32,
    np.dtype(np.float64): BINARY64,
}


def _by_bits(function: Callable[..., int], *operands: Array) -> Array:
    """`function` of the bits of numbers of one type, which the result has too."""
    unsigned = f"u{operands[0].itemsize}"
    columns = np.broadcast_arrays(*operands)
    bits = [np.ascontiguousarray(x).view(unsigned).ravel().tolist() for x in columns]
    found = [function(*row) for row in zip(*bits, strict=True)]
    return np.array(found, unsigned).view(operands[0].dtype).reshape(columns[0].shape)


def fma(x: Array, y: Array, z: Array, mode: str = NEAREST) -> Array:
    """x·y + z in the type of `x`, rounded once."""
    return _by_bits(lambda a, b, c: FORMATS[x.dtype].fused(a, b, c, mode), x, y, z)


def add(x: Array, y: Array, mode: str = NEAREST) -> Array:
    return fma(x, np.ones_like(x), y, mode)


def multiply(x: Array, y: Array, mode: str = NEAREST) -> Array:
    return _by_bits(lambda a, b: FORMATS[x.dtype].fused(a, b, None, mode), x, y)


def narrow(x: Array, dtype: DTypeLike, mode: str = NEAREST) -> Array:
    """Floats, or integers of any size, as `dtype`."""
    form = FORMATS[np.dtype(dtype)]
    unsigned = f"u{np.dtype(dtype).itemsize}"

    def one(number: float) -> int:
        if math.isfinite(number) and number:
            return form.rounded(Fraction(number), mode)
        return int(np.asarray(number, dtype).view(unsigned))

    found = [one(number) for number in x.ravel().tolist()]
    return np.array(found, unsigned).view(dtype).reshape(x.shape)


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
    return _by_bits(lambda x, y: FORMATS[a.dtype].extreme(x, y, least=True), a, b)


def larger(a: Array, b: Array) -> Array:
    return _by_bits(lambda x, y: FORMATS[a.dtype].extreme(x, y, least=False), a, b)


def ulps(value: Array, count: Array | float, dtype: DTypeLike = np.float32) -> Array:
    """`count` units in the last place of `dtype` at each value."""
    form = FORMATS[np.dtype(dtype)]
    least = form.least_exponent
    with np.errstate(all="ignore"):
        exponent: Array = np.floor(np.log2(np.abs(value.astype(np.float64))))
    exponent = np.clip(np.nan_to_num(exponent, neginf=least), least, 1 - least)
    return np.asarray(count * np.exp2(exponent - form.fraction_bits))
