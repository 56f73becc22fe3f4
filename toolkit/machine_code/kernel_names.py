"""The names of kernels: symbols of machine code, as a person reads and writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.errors import InputError, UnknownNameError
from toolkit.machine_code.signature import kernel_names

TEMPLATES = "a template needs its arguments: 'gemm<128, 64>'"


def symbol_of(kernel: str | None, symbols: Sequence[str], where: str, source: str = "") -> str:
    """The symbol of `kernel`, or the only one there is; raises InputError where that is unclear."""
    readable = list(map(plain_name, symbols))
    if kernel is None:
        if len(symbols) == 1:
            return symbols[0]
        if symbols:
            listed = ", ".join(readable)
            raise InputError(f"{where} holds {len(symbols)} kernels: say which one: {listed}")
        there = ", ".join(kernels_there(symbols, source))
        raise InputError(
            f"{where} holds no kernel, only {there} ({TEMPLATES})"
            if there
            else f"{where} holds no kernel"
        )
    if kernel in symbols:
        return kernel
    fitting = [symbol for symbol, name in zip(symbols, readable, strict=True) if name == kernel]
    if len(fitting) == 1:
        return fitting[0]
    raise UnknownNameError("kernel", kernel, fitting or readable)


def plain_name(symbol: str) -> str:
    """`_Z4gemmILi8EEvPf` is gemm<...>, `_Z4gemmPf` gemm; other names stay as they are.

    >>> plain_name("_ZN4deep4gemmILi8EEEvPf")
    'deep::gemm<...>'
    """
    match = re.match(r"_ZN?", symbol)
    if match is None:
        return symbol
    parts, end = [], match.end()
    while (length := re.compile(r"\d+").match(symbol, end)) is not None:
        start, end = length.end(), length.end() + int(length[0])
        parts.append(symbol[start:end])
        if match[0] == "_Z":
            break
    if not parts:
        return symbol
    return "::".join(parts) + ("<...>" if symbol[end : end + 1] == "I" else "")


def kernels_there(symbols: Sequence[str], source: str) -> list[str]:
    """The kernels in some machine code, then the templates of the source that are not in it."""
    readable = list(map(plain_name, symbols))
    compiled = {name.removesuffix("<...>").rpartition("::")[2] for name in readable}
    return readable + [f"{name}<...>" for name in kernel_names(source) if name not in compiled]
