"""Symbols of C++ functions as their source writes them: `softmax<256>` of `_Z7softmaxILi256EEvPKf`.

These are the names of the Itanium C++ ABI that kernels have: namespaces, template arguments that
are types, numbers and packs, and parameters. A symbol of anything else is left as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from toolkit.machine_code.signature import Declared

_BUILTINS = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
    "Dn": "std::nullptr_t",
    "Di": "char32_t",
    "Ds": "char16_t",
    "Da": "auto",
    "DF16_": "_Float16",
    "DF16b": "std::bfloat16_t",
}
_STANDARD = {"St": "std", "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string"}
_SUFFIX = {"P": "*", "R": "&", "O": "&&"}
_ANONYMOUS = re.compile(r"_GLOBAL__N_|_INTERNAL_")
MOST_DEPTH = 64


class _NotKnownError(Exception):
    """A part of a symbol that is not read here."""


@dataclass(frozen=True, kw_only=True)
class Demangled:
    """A function: its name with template arguments, and the types of its parameters."""

    name: str
    parameters: tuple[str, ...]


@lru_cache(maxsize=4096)
def demangled(symbol: str) -> Demangled | None:
    """The function that a symbol means; None if it is no symbol of C++, or not read here.

    >>> demangled("_Z7softmaxILi256EfEvPKT0_i")
    Demangled(name='softmax<256, float>', parameters=('const float *', 'int'))
    """
    if not symbol.startswith("_Z"):
        return None
    try:
        return _Reader(symbol).function()
    except (_NotKnownError, IndexError, RecursionError, ValueError):
        return None


def parameters_of(symbol: str) -> tuple[Declared, ...] | None:
    """The parameters of a function by the types in its symbol, without names; None if unknown."""
    from dataclasses import replace

    from toolkit.machine_code.signature import declared

    found = demangled(symbol)
    if found is None:
        return None
    return tuple(replace(declared(f"{text} _"), text=text, name=None) for text in found.parameters)


class _Text:
    """A symbol, read from its start."""

    def __init__(self, symbol: str) -> None:
        self._text, self._at = symbol, 2

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _match(self, pattern: str) -> str | None:
        found = re.compile(pattern).match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _number(self, letter: str) -> int:
        """The number of `S_` (0), `S0_` (1), `S1_` (2) and so on."""
        text = self._match(rf"{letter}[0-9A-Z]*_")
        if text is None:
            raise _NotKnownError
        return int(text[1:-1], 36) + 1 if len(text) > 2 else 0


class _Reader(_Text):
    """Names and types of a symbol."""

    def __init__(self, symbol: str) -> None:
        super().__init__(symbol)
        self._known: list[str] = []  # what S_, S0_ and so on stand for
        self._arguments: list[str] = []  # what T_, T0_ and so on stand for
        self._depth = 0

    def function(self) -> Demangled:
        name, is_template = self._name()
        types = list[str]()
        if is_template:
            self._type()  # that of the result
        while self._at < len(self._text) and self._text[self._at] not in ".$@":
            types += self._types()
        return Demangled(name=name, parameters=tuple([] if types == ["void"] else types))

    # Names.

    def _name(self) -> tuple[str, bool]:
        """A name, and whether template arguments end it."""
        if self._take("N"):
            return self._nested()
        if self._peek() == "Z":
            raise _NotKnownError
        if self._peek() == "S" and self._peek(2) != "St":
            name = self._substitution()
        else:
            name = ("std::" if self._take("St") else "") + self._source_name()
            if self._peek() == "I":
                self._known.append(name)
        if self._peek() != "I":
            return name, False
        return name + self._template_arguments(), True

    def _nested(self) -> tuple[str, bool]:
        self._match("[rVK]*[RO]?")
        name, is_template = "", False
        while not self._take("E"):
            if self._peek() == "I":
                name, is_template = name + self._template_arguments(), True
            elif self._peek() == "S" and not name:
                name, is_template = self._substitution(), False
                continue
            elif self._peek() == "T" and not name:
                name, is_template = self._parameter(), False
            else:
                part = self._source_name()
                name, is_template = f"{name}::{part}" if name else part, False
            if self._peek() != "E":
                self._known.append(name)
        return name, is_template

    def _source_name(self) -> str:
        self._take("L")  # of internal linkage
        digits = self._match(r"\d+")
        if digits is None:
            raise _NotKnownError
        end = self._at + int(digits)
        name, self._at = self._text[self._at : end], end
        if len(name) != int(digits):
            raise _NotKnownError
        return "(anonymous namespace)" if _ANONYMOUS.match(name) else name

    def _substitution(self) -> str:
        for short, name in _STANDARD.items():
            if self._take(short):
                return f"{name}::{self._source_name()}" if short == "St" else name
        return self._known[self._number("S")]

    def _parameter(self) -> str:
        return self._arguments[self._number("T")]

    # Template arguments.

    def _template_arguments(self) -> str:
        self._take("I")
        found = list[str]()
        outer = self._arguments
        while not self._take("E"):
            found += self._argument()
        self._arguments = found if not outer or self._depth == 0 else outer
        return f"<{', '.join(found)}>"

    def _argument(self) -> list[str]:
        if self._take("L"):
            return [self._literal()]
        if self._take("J"):
            found = list[str]()
            while not self._take("E"):
                found += self._argument()
            return found
        if self._peek() == "X":
            raise _NotKnownError
        return self._types()

    def _literal(self) -> str:
        kind = self._type()
        value = self._match(r"n?[0-9a-f]*")
        if not value or not self._take("E"):
            raise _NotKnownError
        number = value.replace("n", "-")
        if kind == "bool":
            return {"0": "false", "1": "true"}[number]
        if kind in ("float", "double", "long double"):
            raise _NotKnownError
        return number if kind in _BUILTINS.values() else f"({kind}){number}"

    # Types.

    def _types(self) -> list[str]:
        """A type, or those of a pack."""
        if self._take("Dp"):
            raise _NotKnownError
        return [self._type()]

    def _type(self) -> str:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _NotKnownError
        try:
            return self._read_type()
        finally:
            self._depth -= 1

    def _read_type(self) -> str:
        for code in sorted(_BUILTINS, key=len, reverse=True):
            if self._take(code):
                return _BUILTINS[code]
        letter = self._peek()
        if letter in _SUFFIX:
            self._at += 1
            inner = self._type()
            space = "" if inner.endswith(("*", "&")) else " "
            found = f"{inner}{space}{_SUFFIX[letter]}"
        elif qualifiers := self._match("r?V?K+|r?V"):
            inner = self._type()
            words = "const " if "K" in qualifiers else ""
            words += "volatile " if "V" in qualifiers else ""
            found = f"{inner} {words.strip()}" if inner.endswith("*") else f"{words}{inner}"
        elif letter == "T":
            found = self._parameter()
            if self._peek() == "I":
                raise _NotKnownError
        elif letter == "S" and self._peek(2) not in _STANDARD:
            found = self._substitution()
            if self._peek() != "I":
                return found
            found += self._template_arguments()
        elif letter in "NS" or letter.isdigit():
            found = self._name()[0]
        else:
            raise _NotKnownError
        self._known.append(found)
        return found
