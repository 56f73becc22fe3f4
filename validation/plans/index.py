"""Integers that depend on the block alone, as text of C and as values of all blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]
WORD = 0xFFFFFFFF
MULTIPLIER = 2654435761  # Knuth's, of a multiplicative hash

COMPARISONS: Mapping[str, Callable[[Values, Values | int], NDArray[np.bool_]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}


@dataclass(frozen=True)
class Index:
    """`text` in C has `values`, one per block in order of the linear index.

    `parts` are the comparisons in it: the compiler may branch at each.
    """

    text: str
    values: Values
    parts: tuple[Values, ...] = ()

    def __add__(self, other: Index | int) -> Index:
        return self._with("+", other, self.values + valued(other))

    def __sub__(self, other: Index | int) -> Index:
        return self._with("-", other, self.values - valued(other))

    def __mul__(self, other: Index | int) -> Index:
        return self._with("*", other, self.values * valued(other))

    def __floordiv__(self, other: Index | int) -> Index:
        """Both not negative: C truncates, Python rounds down."""
        return self._with("/", other, self.values // valued(other))

    def __mod__(self, other: Index | int) -> Index:
        return self._with("%", other, self.values % valued(other))

    def __and__(self, other: Index | int) -> Index:
        return self._with("&", other, self.values & valued(other))

    def __or__(self, other: Index | int) -> Index:
        return self._with("|", other, self.values | valued(other))

    def __xor__(self, other: Index | int) -> Index:
        return self._with("^", other, self.values ^ valued(other))

    def __rshift__(self, by: int) -> Index:
        return self._with(">>", by, self.values >> by)

    def compared(self, how: str, other: Index | int, text: str | None = None) -> Index:
        """1 where the comparison is true. `text`: another name of the other side."""
        found = COMPARISONS[how](self.values, valued(other)).astype(np.int64)
        compared = self._with(how, other if text is None else Index(text, found), found)
        return compared.with_parts(found)

    def call(self, function: str, values: Values, *others: int) -> Index:
        """A function of C, whose values are given."""
        return replace(
            self, text=f"{function}({', '.join(map(str, (self.text, *others)))})", values=values
        )

    def unsigned(self) -> Index:
        return Index(f"(unsigned){self.text}", self.values & WORD)

    def hashed(self) -> Index:
        """16 bits that look random."""
        mixed = (self.values * MULTIPLIER & WORD) >> 16
        return Index(f"((unsigned){self.text} * {MULTIPLIER}u >> 16)", mixed)

    def with_parts(self, *parts: Values) -> Index:
        return replace(self, parts=(*self.parts, *parts))

    def _with(self, how: str, other: Index | int, values: Values) -> Index:
        parts = other.parts if isinstance(other, Index) else ()
        return Index(f"({self.text} {how} {texted(other)})", values, (*self.parts, *parts))


def valued(one: Index | int) -> Values | int:
    return one.values if isinstance(one, Index) else one


def texted(one: Index | int) -> str:
    return one.text if isinstance(one, Index) else str(one)
