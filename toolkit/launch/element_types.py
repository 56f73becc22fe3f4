"""Types of the elements of an argument: those of NumPy, and bfloat16 and FP8 of ml_dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class SmallFloat:
    """A floating type that NumPy lacks; `name` is that of ml_dtypes."""

    name: str
    fraction_bits: int
    largest: float
    has_infinity: bool


# OCP 8-bit Floating Point Specification (OFP8), and the upper half of a float
SMALL_FLOATS = {
    "bf16": SmallFloat(
        name="bfloat16",
        fraction_bits=7,
        largest=float.fromhex("0x1.fep127"),
        has_infinity=True,
    ),
    "e4m3": SmallFloat(name="float8_e4m3fn", fraction_bits=3, largest=448.0, has_infinity=False),
    "e5m2": SmallFloat(name="float8_e5m2", fraction_bits=2, largest=57344.0, has_infinity=True),
}
_BY_NAME = {one.name: one for one in SMALL_FLOATS.values()}


def type_named(name: str) -> np.dtype[Any]:
    """The type of NumPy or, of bfloat16 and FP8, of ml_dtypes.

    Raises UnavailableError without ml_dtypes.
    """
    if name not in _BY_NAME:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnavailableError(f"arrays of {name} need ml_dtypes: pip install ml_dtypes") from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def small_float(dtype: np.dtype[Any]) -> SmallFloat | None:
    """The type among SMALL_FLOATS, None if it is none of them."""
    return None if dtype.fields else _BY_NAME.get(dtype.name)


def is_real(dtype: np.dtype[Any]) -> bool:
    """True for a floating type that is not complex."""
    return dtype.kind == "f" or small_float(dtype) is not None


def is_bytes(dtype: np.dtype[Any]) -> bool:
    """True for structs, and for bytes without a type."""
    return dtype.kind == "V" and small_float(dtype) is None


def epsilon(dtype: np.dtype[Any]) -> float:
    """Distance from 1 to the next number of a real or complex type."""
    small = small_float(dtype)
    return 2.0**-small.fraction_bits if small else float(np.finfo(dtype).eps)


def raw_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a C-ordered array, in place; some types have no buffer of Python's."""
    return array.reshape(-1).view(np.uint8)


def type_text(dtype: np.dtype[Any]) -> str:
    return "struct" if is_bytes(dtype) else dtype.name


def parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The real numbers and integers of an array: fields of structs, and both parts of complex."""
    if array.dtype.fields is not None:
        for name in array.dtype.fields:
            yield from parts(array[name])
    elif array.dtype.kind == "c":
        yield from (array.real, array.imag)
    else:
        yield array
