"""The names of kernels: symbols of machine code, as a person reads and writes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from analysis.errors import InputError, UnknownNameError
from toolkit.machine_code.demangled import demangled
from toolkit.machine_code.signature import kernel_names, template_names

TEMPLATES = "a template needs its arguments: 'gemm<128, 64>'"


def symbol_of(kernel: str | None, symbols: Sequence[str], where: str, source: str = "") -> str:
    """The symbol of `kernel`, or the only one there is; raises InputError where that is unclear.

    `kernel` is a symbol, a name with or without template arguments, or a number from 1 on.
    """
    readable = list(map(plain_name, symbols))
    if kernel is None:
        if len(symbols) == 1:
            return symbols[0]
        if symbols:
            raise InputError(
                f"{where} holds {len(symbols)} kernels: say which one, by name or by number "
                f"(-k 1): {numbered(readable)}"
            )
        there = ", ".join(kernels_there(symbols, source))
        raise InputError(
            f"{where} holds no kernel, only {there} ({TEMPLATES})"
            if there
            else f"{where} holds no kernel"
        )
    if kernel in symbols:
        return kernel
    if kernel.isdecimal() and 1 <= int(kernel) <= len(symbols):
        return symbols[int(kernel) - 1]
    named = list(zip(symbols, readable, strict=True))
    fitting = [symbol for symbol, name in named if alike(name, kernel)]
    if not fitting:
        fitting = [symbol for symbol, name in named if same_kernel(name, kernel)]
    if not fitting and "<" not in kernel:
        plain = [(symbol, _without_arguments(name)) for symbol, name in named]
        fitting = [symbol for symbol, name in plain if same_kernel(name, kernel)]
    if len(fitting) == 1:
        return fitting[0]
    raise UnknownNameError("kernel", kernel, list(map(plain_name, fitting)) or readable)


def plain_name(symbol: str) -> str:
    """`_Z4gemmILi8EEvPf` is gemm<8>, `_Z4gemmPf` gemm; other names stay as they are.

    Template arguments that are not understood are `<...>`.

    >>> plain_name("_ZN4deep4gemmILi8EEEvPf")
    'deep::gemm<8>'
    """
    found = demangled(symbol)
    if found is not None:
        return found.name
    match = re.match(r"_ZN?", symbol)
    if match is None:
        return symbol
    parts, end = [], match.end()
    while (length := re.compile(r"L?\d+").match(symbol, end)) is not None:
        start, end = length.end(), length.end() + int(length[0].lstrip("L"))
        parts.append(symbol[start:end])
        if match[0] == "_Z":
            break
    if not parts:
        return symbol
    return "::".join(parts) + ("<...>" if symbol[end : end + 1] == "I" else "")


def alike(a: str, b: str) -> bool:
    """True if two names differ only in spaces, and in the types of literals: 256u is 256."""
    return _normal(a) == _normal(b)


def same_kernel(a: str, b: str) -> bool:
    """True if two names are alike, where one of them may lack its namespaces.

    >>> same_kernel("deep::gemm<8>", "gemm<8>"), same_kernel("deep::gemm<8>", "flat::gemm<8>")
    (True, False)
    """
    if "::" in _without_arguments(a) and "::" in _without_arguments(b):
        return alike(a, b)
    return alike(_without_namespaces(a), _without_namespaces(b))


def _without_namespaces(name: str) -> str:
    head, bracket, arguments = name.partition("<")
    return f"{head.rpartition('::')[2]}{bracket}{arguments}"


def _normal(name: str) -> str:
    without_casts = re.sub(r"\((?:unsigned )?(?:int|long|short|char|bool)\)(?=-?\d)", "", name)
    plain = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", without_casts)
    return re.sub(r"\s+", " ", re.sub(r"\s*([<>,*&:])\s*", r"\1", plain)).strip()


def _without_arguments(name: str) -> str:
    return name.partition("<")[0]


def numbered(names: Sequence[str], some: Collection[str] | None = None) -> str:
    """`1 scale, 2 gemm<8>`: each name, or `some` of them, with its number among all."""
    return ", ".join(
        f"{number} {name}"
        for number, name in enumerate(names, start=1)
        if some is None or name in some
    )


def kernels_there(symbols: Sequence[str], source: str) -> list[str]:
    """The kernels in some machine code, then the templates of the source that are not in it."""
    readable = list(map(plain_name, symbols))
    compiled = set(map(_plain, readable))
    templates = [name for name in template_names(source) if name not in compiled]
    return readable + [f"{name}<...>" for name in templates]


def is_left_out(kernel: str, symbols: Sequence[str], source: str) -> bool:
    """True of a kernel without template arguments that the source has and machine code lacks."""
    name = _plain(kernel)
    is_there = name in map(_plain, map(plain_name, symbols))
    return name in kernel_names(source) and name not in template_names(source) and not is_there


def _plain(name: str) -> str:
    return _without_arguments(name).rpartition("::")[2].strip()
