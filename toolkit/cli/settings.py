"""Variables that `--set NAME=ARRAY` sets: text in, content by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, shortened
from toolkit.cli.argument_syntax import (
    UNWRITTEN,
    BufferArgument,
    array_of,
    parse_argument,
)
from toolkit.cli.typed_numbers import is_number
from toolkit.launch.element_types import type_named
from toolkit.machine_code.signature import Declared, DeclaredVariable, declared_variables

Setting = BufferArgument | np.generic


def parse_settings(texts: Sequence[str], source: str) -> dict[str, Setting]:
    """Description of each variable's content, by name; no large array is made yet.

    The `source` gives a bare number its type. Raises InputError for text that is not understood,
    and for a name that is given twice.
    """
    found: dict[str, Setting] = {}
    declared = declared_variables(source)
    for text in texts:
        name, _, content = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_$][\w:$]*", name, re.ASCII) or not content:
            raise InputError(
                f"--set {shortened(text)!r} is not understood: give the name of a variable and its "
                "content: --set filter='f32[25]=ones', --set n=i32=5 or --set filter=data.npy"
            )
        if name in found:
            raise InputError(f"--set {shortened(text)!r}: {name} was set before: set it once")
        plain = declared.get(name.rpartition("::")[2])
        if not declared and source and is_number(content):
            raise InputError(
                f"--set {shortened(text)!r}: the source declares no __constant__ or __device__ "
                f"variable: for one of a header give a type: {name}=i32={content}"
            )
        if plain is None and declared and is_number(content):
            raise InputError(
                f"--set {shortened(text)!r}: the source declares no variable {name}, only "
                f"{', '.join(declared)}: give one of these or, for one of a header, a type: "
                f"{name}=i32={content}"
            )
        item = parse_argument(f"--set {name}", content, _as_parameter(plain))
        if isinstance(item, BufferArgument) and item.fill == UNWRITTEN:
            raise InputError(
                f"--set {shortened(text)!r}: give its content, such as zeros, or leave it out"
            )
        found[name] = item
    return found


def make_settings(
    parsed: Mapping[str, Setting], *, seed: int
) -> dict[str, NDArray[np.generic] | np.generic]:
    """The content itself, random arrays from `seed` and the variable's name."""
    return {
        name: array_of(f"--set {name}", item, np.random.default_rng((seed, crc32(name.encode()))))
        if isinstance(item, BufferArgument)
        else item
        for name, item in parsed.items()
    }


def _as_parameter(variable: DeclaredVariable | None) -> Declared | None:
    """A variable's declaration in the form of a parameter's, which gives a number its type."""
    if variable is None:
        return None
    if variable.dtype is None or variable.is_array:
        return Declared(text=variable.text, name=None, pointer=variable.is_array)
    dtype = type_named(variable.dtype)
    return Declared(
        text=variable.text,
        name=None,
        pointer=False,
        kind="float" if dtype.kind == "f" else "integer",
        size=dtype.itemsize,
    )
