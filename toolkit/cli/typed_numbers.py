"""The types and numbers in arguments that are written as text: `i32`, `-2e-3`, `0x1000`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from analysis.errors import InputError, UnknownNameError, shortened
from toolkit.launch.element_types import SMALL_FLOATS, is_real, small_float, type_named

TYPES: dict[str, np.dtype[Any]] = {
    f"{letter}{8 * size}": np.dtype(f"{kind}{size}")
    for letter, kind, sizes in (
        ("i", "i", (1, 2, 4, 8)),
        ("u", "u", (1, 2, 4, 8)),
        ("f", "f", (2, 4, 8)),
    )
    for size in sizes
} | {"bool": np.dtype("?"), "c64": np.dtype("c8"), "c128": np.dtype("c16")}
_OF_C = {"char": "i8", "short": "i16", "int": "i32", "unsigned": "u32", "long": "i64"} | {
    "half": "f16",
    "float": "f32",
    "double": "f64",
}
# Also by the names of NumPy and of C
NAMES = (
    TYPES
    | {dtype.name: dtype for dtype in TYPES.values()}
    | {name: TYPES[ours] for name, ours in _OF_C.items()}
)

_SMALL = {name: one.name for name, one in SMALL_FLOATS.items()} | {
    one.name: one.name for one in SMALL_FLOATS.values()
}
_FP8 = ("fp8", "f8", "float8")

_NOT_FINITE = re.compile("inf|nan", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"[-+]?(?:\.?\d[\w.+-]*|(?i:inf|infinity|nan))", re.ASCII)


def is_type(name: str) -> bool:
    """True for a name of a type, which may stand before `=` or `[`."""
    return name in NAMES or name in _SMALL or name in _FP8 or name == "struct"


def type_name(dtype: np.dtype[Any]) -> str:
    """The name of a type here: "f32"."""
    if (small := small_float(dtype)) is not None:
        return next(name for name, known in SMALL_FLOATS.items() if known == small)
    return next((name for name, known in TYPES.items() if known == dtype), dtype.name)


def type_of(name: str) -> np.dtype[Any]:
    """The type with a name; raises InputError for a name that is none."""
    if name in _FP8:
        raise InputError(f"{name} is one of two types: give e4m3 or e5m2")
    if name in _SMALL:
        return type_named(_SMALL[name])
    if name not in NAMES:
        raise UnknownNameError("type", name, [*TYPES, *SMALL_FLOATS])
    return NAMES[name]


def is_number(text: str) -> bool:
    """True for a number without a type."""
    return _BARE_NUMBER.fullmatch(text) is not None


def number(text: str, dtype: np.dtype[Any]) -> np.generic:
    """`text` as a number of a type; raises InputError where it is none, or does not fit."""
    if is_real(dtype):
        return _floating(text, dtype)
    if dtype.kind == "c":
        return _complex(text, dtype)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    named = {"true": 1, "false": 0}.get(text.lower()) if dtype.kind == "b" else None
    try:
        value = int(text, 0) if named is None else named
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is not an integer: give one such as 4096, -1 or 0x1000"
        ) from None
    if not low <= value <= high:
        raise InputError(f"{shortened(text)} does not fit: {dtype.name} holds {low} to {high}")
    result: np.generic = dtype.type(value)
    return result


def _floating(text: str, dtype: np.dtype[Any]) -> np.generic:
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is not a number: give one such as 1.5, -2e-3, inf or nan"
        ) from None
    small = small_float(dtype)
    if small and not small.has_infinity and np.isinf(value):
        raise InputError(f"{dtype.name} has no infinity: give a number up to {small.largest:g}")
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.generic = dtype.type(value)
    if not (np.isfinite(float(result)) or _NOT_FINITE.search(text)):
        largest = small.largest if small else float(np.finfo(dtype).max)
        raise InputError(f"{shortened(text)} does not fit: {dtype.name} ends at {largest:g}")
    return result


def _complex(text: str, dtype: np.dtype[Any]) -> np.generic:
    try:
        value = complex(re.sub(r"i$", "j", text.strip()))
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is not a complex number: give one such as 1.5, 2j or 1-2j"
        ) from None
    with np.errstate(over="ignore"):
        result: np.generic = dtype.type(value)
    if not (np.isfinite(result) or _NOT_FINITE.search(text)):
        raise InputError(
            f"{shortened(text)} does not fit: {dtype.name} ends at {np.finfo(dtype).max:g}"
        )
    return result
