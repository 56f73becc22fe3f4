"""Layouts of structures that Python shares with C, declared as text: "u4 a b[2]; u8 c"."""

from __future__ import annotations

from typing import Any

import numpy as np


def fields_of(declared: str) -> list[tuple[str, str, int]]:
    """(name, type as NumPy writes it, length) of the fields of a structure."""
    found = []
    for declaration in declared.split(";"):
        kind, *names = declaration.split()
        for field in names:
            name, _, length = field.removesuffix("]").partition("[")
            found.append((name, kind, int(length or 1)))
    return found


def dtype_of(declared: str, *, align: bool = False) -> np.dtype[Any]:
    """The structure as a type of NumPy; `align` leaves gaps as C does."""
    return np.dtype(
        [(name, kind, *([n] if n > 1 else [])) for name, kind, n in fields_of(declared)],
        align=align,
    )
