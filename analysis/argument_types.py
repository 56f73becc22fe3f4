"""Checks of arguments and fields: a value of a wrong type raises an error of one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from analysis.errors import InputError, shortened

Given = ParamSpec("Given")
Result = TypeVar("Result")

_NUMBERS: dict[object, tuple[type, float, float]] = {  # NaN is within no bounds
    int: (Integral, -(2**63), 2**64 - 1),
    float: (Real, -sys.float_info.max, sys.float_info.max),
}
_OF_PYTHON = (int, bool, float, str, tuple, NoneType)
_WORDS: dict[object, str] = {
    int: "a whole number of at most 64 bits",
    float: "a finite number",
    str: "a text",
    bytes: "bytes",
    bool: "True or False",
    NoneType: "None",
    Sequence: "a list",
    tuple: "a list",
    Mapping: "a dict",
    Callable: "a function",
}


def checked(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Function that raises InputError for a value that its annotations do not allow.

    Integers of NumPy become integers of Python.
    """

    @wraps(function)
    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        bound = _signature(function).bind(*given, **named)
        check_types(function, bound.arguments)
        for name, value in bound.arguments.items():
            if isinstance(value, Integral) and not isinstance(value, bool):
                bound.arguments[name] = int(value)
        return function(*bound.args, **bound.kwargs)

    return run


def check_types(declared: object, values: Mapping[str, object], where: str = "") -> None:
    """Raise InputError for a value that the annotations of a function or a class do not allow."""
    for name, hint in _hints(declared).items():
        if name in values and not _fits(values[name], hint):
            raise InputError(f"{where}{name} = {shown(values[name])}: give {_described(hint)}")


def check_fields(record: Any) -> None:
    """Raise InputError for a field that its annotation does not allow; for `__post_init__`.

    Integers of NumPy become integers of Python: products of 32-bit sizes would overflow.
    """
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    check_types(type(record), values, f"{type(record).__name__}: ")
    for name, value in values.items():
        if type(value) not in _OF_PYTHON and isinstance(value, Integral):
            object.__setattr__(record, name, int(value))


def shown(value: object) -> str:
    """Short text of a value for a message of one line."""
    try:
        return shortened(" ".join(repr(value).split()))
    except Exception:  # from an object's own __repr__, or for a number with too many digits
        return f"<{type(value).__name__}>"


_signature = cache(signature)


@cache
def _hints(declared: object) -> dict[str, Any]:
    """Types of parameters or fields; Any for types that are imported for type checkers only."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(declared, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = Any


def _fits(value: Any, hint: Any) -> bool:
    origin, among = get_origin(hint) or hint, get_args(hint)
    if hasattr(origin, "__value__"):  # the name of another hint, as NumPy's NDArray may be
        return _fits(value, origin.__value__)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in among)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in among)
    if origin in (Sequence, tuple):
        is_one = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        # for other element types the function itself checks the elements
        is_known = among == (str,) or origin is tuple
        return is_one and (not is_known or all(_fits(one, among[0]) for one in value))
    if hint in _NUMBERS:
        kind, least, most = _NUMBERS[hint]
        is_one = isinstance(value, kind) and not isinstance(value, bool)
        return is_one and bool(least <= value <= most)
    return hint is Any or isinstance(value, (bytes, bytearray) if hint is bytes else origin)


def _described(hint: Any) -> str:
    """Name the values that a hint allows: 'a', 'a or b', 'a, b or c'."""
    *others, last = dict.fromkeys(_alternatives(hint))
    return f"{', '.join(others)} or {last}" if others else last


def _alternatives(hint: Any) -> Iterator[str]:
    among = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        if {int, Sequence[int]}.issubset(among):
            yield "one to three whole sizes of at least 1"
            return
        for one in among:
            yield from _alternatives(one)
    elif get_origin(hint) is Literal:
        yield from map(repr, among)
    else:
        plain = get_origin(hint) or hint
        yield _WORDS.get(plain, f"a {plain.__name__}".lower())
