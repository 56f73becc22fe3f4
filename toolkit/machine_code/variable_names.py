"""Names of variables in a cubin, as their source has them: `_ZN2ns5tableE` is ns::table."""

from __future__ import annotations

import re

# Namespaces of NVIDIA's headers, and what the compiler makes itself: strings, tables of classes.
_LIBRARIES = {"cuda", "cooperative_groups", "std", "thrust", "cub", "nvcuda"}
_OF_THE_COMPILER = ("$", "__unnamed_", "_ZTV", "_ZTI", "_ZTS", "__cuda", "__nv", "_param")
# Unnamed namespaces: an own one of each file, and those that the source leaves without a name.
_UNNAMED = ("_INTERNAL_", "_GLOBAL__N_")
_LENGTH = re.compile(r"\d+")


def variable_name(symbol: str) -> str:
    """Name of a variable in its source, with its namespaces; a name that is not understood stays.

    >>> variable_name("_ZN2ns2in5tableE")
    'ns::in::table'
    >>> variable_name("_ZZ5scalePfE5calls")  # in a function
    'scale::calls'
    """
    if (inner := re.fullmatch(r"_Z(Z.+)E(\d+)(\w+)", symbol)) is not None:
        function = _parts(f"_{inner[1]}")
        if function and int(inner[2]) <= len(inner[3]):
            return "::".join([*function, inner[3][: int(inner[2])]])
    return "::".join(_parts(symbol)) or symbol


def is_of_user(symbol: str) -> bool:
    """True if the source of a kernel declares the variable, rather than a header of NVIDIA's."""
    if symbol.startswith(_OF_THE_COMPILER):
        return False
    return variable_name(symbol).partition("::")[0] not in _LIBRARIES


def _parts(symbol: str) -> list[str]:
    """Namespaces and name of a mangled symbol; of a template, the name without its arguments."""
    start = re.match(r"_Z(N)?L?", symbol)
    if start is None:
        return []
    found, at = [], start.end()
    while (length := _LENGTH.match(symbol, at)) is not None:
        end = length.end() + int(length[0])
        found.append(symbol[length.end() : end])
        at = end
        if not start[1]:
            break
    return [part for part in found if not any(mark in part for mark in _UNNAMED)]
