"""Numbers of C++ host code: their types, literals and arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolkit.launch.host_nodes import integer_of

_RANKS = ("i32", "u32", "i64", "u64", "f32", "f64")
BITS = {"b8": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16} | {x: int(x[1:]) for x in _RANKS}
C_TYPES = {
    "bool": "b8",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "uchar": "u8",
    "int8_t": "i8",
    "uint8_t": "u8",
    "short": "i16",
    "short int": "i16",
    "unsigned short": "u16",
    "ushort": "u16",
    "int16_t": "i16",
    "uint16_t": "u16",
    "int": "i32",
    "signed": "i32",
    "signed int": "i32",
    "int32_t": "i32",
    "unsigned": "u32",
    "unsigned int": "u32",
    "uint": "u32",
    "uint32_t": "u32",
    "long": "i64",
    "long int": "i64",
    "long long": "i64",
    "long long int": "i64",
    "int64_t": "i64",
    "ptrdiff_t": "i64",
    "ssize_t": "i64",
    "unsigned long": "u64",
    "unsigned long int": "u64",
    "unsigned long long": "u64",
    "unsigned long long int": "u64",
    "uint64_t": "u64",
    "size_t": "u64",
    "float": "f32",
    "double": "f64",
}


class UnknownValueError(Exception):
    """The value may be another one at run time."""


@dataclass(frozen=True)
class Number:
    """A number of a C type, such as 4096 of "i32"."""

    value: int | float
    kind: str

    @property
    def is_float(self) -> bool:
        return self.kind[0] == "f"


@dataclass(frozen=True)
class Dim3:
    """A dim3, or another struct of the components x, y and z."""

    x: Number
    y: Number
    z: Number

    @property
    def extents(self) -> tuple[int, int, int]:
        return int(self.x.value), int(self.y.value), int(self.z.value)


Value = Number | Dim3
ONE = Number(1, "u32")


def kind_name(kind: str) -> str:
    """A C type of this kind."""
    return next((name for name, known in C_TYPES.items() if known == kind), kind)


def literal(text: str) -> Number:
    """The number that a literal of C++ writes. Raises UnknownValueError."""
    plain = text.replace("'", "")
    whole = integer_of(plain)
    if whole is not None:
        suffix = (re.search(r"[uUlLzZ]+$", plain) or [""])[0].lower()
        unsigned, long = "u" in suffix, "l" in suffix or "z" in suffix
        is_hex = plain.lower().startswith("0x")
        if not long and whole < 2**31 and not unsigned:
            return Number(whole, "i32")
        if not long and whole < 2**32 and (unsigned or is_hex):
            return Number(whole, "u32")
        return checked(whole, "u64" if unsigned else "i64")
    match = re.fullmatch(r"([-+]?[0-9.]+(?:[eE][-+]?\d+)?)([fFlL]?)", plain)
    if match is None:
        raise UnknownValueError
    return checked(float(match[1]), "f32" if match[2] in ("f", "F") else "f64")


def promoted(kind: str) -> str:
    return kind if kind in _RANKS else "i32"


def checked(value: int | float, kind: str) -> Number:
    """A result of arithmetic. Raises UnknownValueError where a signed integer overflows."""
    if kind[0] == "f":
        try:
            with np.errstate(over="ignore"):
                rounded = float(np.float32(value)) if kind == "f32" else float(value)
        except OverflowError:
            raise UnknownValueError from None
        if not math.isfinite(rounded):
            raise UnknownValueError
        return Number(rounded, kind)
    bits, whole = BITS[kind], int(value)
    if kind[0] == "u":
        return Number(whole % 2**bits, kind)
    if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
        raise UnknownValueError
    return Number(whole, kind)


def converted(value: Number, kind: str) -> Number:
    """A number as another type; what does not fit a signed one is unknown."""
    if kind == "b8":
        return Number(int(bool(value.value)), kind)
    if kind[0] != "f" and value.is_float:
        whole = math.trunc(value.value)
        if kind[0] == "u" and whole < 0:
            raise UnknownValueError
        return checked(whole, kind)
    return checked(value.value, kind)


def combined(operator: str, a: Number, b: Number) -> Number:  # noqa: PLR0911
    """Result of a binary operator of C."""
    if operator in ("&&", "||"):
        return Number(int(bool(b.value)), "b8")  # the left side did not decide
    if operator in ("<<", ">>"):
        kind = promoted(a.kind)
        if a.is_float or b.is_float or not 0 <= b.value < BITS[kind]:
            raise UnknownValueError
        n = int(b.value)
        return checked(int(a.value) << n if operator == "<<" else int(a.value) >> n, kind)
    kind = max(promoted(a.kind), promoted(b.kind), key=_RANKS.index)
    a, b = converted(a, kind), converted(b, kind)
    x, y = a.value, b.value
    comparisons: dict[str, Callable[[float, float], bool]] = {
        "<": lambda p, q: p < q,
        ">": lambda p, q: p > q,
        "<=": lambda p, q: p <= q,
        ">=": lambda p, q: p >= q,
        "==": lambda p, q: p == q,
        "!=": lambda p, q: p != q,
    }
    if operator in comparisons:
        return Number(int(comparisons[operator](x, y)), "b8")
    if operator in ("/", "%"):
        if not y:
            raise UnknownValueError
        if kind[0] == "f":
            if operator == "%":
                raise UnknownValueError
            return checked(x / y, kind)
        quotient = abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
        return checked(quotient if operator == "/" else int(x) - quotient * int(y), kind)
    if operator in ("+", "-", "*"):
        result: int | float = x + y if operator == "+" else x - y if operator == "-" else x * y
        return checked(result, kind)
    if operator in ("&", "|", "^") and kind[0] != "f":
        p, q = int(x), int(y)
        return checked(p & q if operator == "&" else p | q if operator == "|" else p ^ q, kind)
    raise UnknownValueError


# Functions of real numbers, and how many they take; `powf` is `pow` in single precision
REAL_FUNCTIONS: dict[str, tuple[Callable[..., float], int]] = {
    "fabs": (math.fabs, 1),
    "sqrt": (math.sqrt, 1),
    "exp": (math.exp, 1),
    "log": (math.log, 1),
    "log2": (math.log2, 1),
    "log10": (math.log10, 1),
    "pow": (math.pow, 2),
}


def library_function(name: str, numbers: list[Number]) -> Number:
    """Result of a function of the standard library. Raises UnknownValueError for another one."""
    rounding = {"ceil": math.ceil, "floor": math.floor, "ceilf": math.ceil, "floorf": math.floor}
    if name in rounding and len(numbers) == 1:
        single = name.endswith("f") or numbers[0].kind == "f32"
        return checked(float(rounding[name](numbers[0].value)), "f32" if single else "f64")
    if name in ("min", "max", "fmin", "fmax", "MIN", "MAX") and len(numbers) == 2:
        a, b = numbers
        kind = max(promoted(a.kind), promoted(b.kind), key=_RANKS.index)
        pick = min if name.lower().endswith("min") else max
        return pick(converted(a, kind), converted(b, kind), key=lambda one: one.value)
    if name == "abs" and len(numbers) == 1:
        return checked(abs(numbers[0].value), promoted(numbers[0].kind))
    single = name.endswith("f") and name[:-1] in REAL_FUNCTIONS
    known = REAL_FUNCTIONS.get(name[:-1] if single else name)
    if known is None or len(numbers) != known[1]:
        raise UnknownValueError
    try:
        result = known[0](*(float(one.value) for one in numbers))
    except (ValueError, OverflowError):  # outside of its domain
        raise UnknownValueError from None
    all_single = all(one.kind == "f32" for one in numbers)
    return checked(result, "f32" if single or all_single else "f64")
