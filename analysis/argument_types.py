"""Checks of arguments and fields: a value of a wrong type raises an error of one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
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

    Numbers of NumPy become numbers of Python.
    """

    @wraps(function)
    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        bound = _signature(function).bind(*given, **named)
        check_types(function, bound.arguments)
        for name, value in bound.arguments.items():
            bound.arguments[name] = _of_python(value)
        return function(*bound.args, **bound.kwargs)

    return run


def check_types(declared: object, values: Mapping[str, object], where: str = "") -> None:
    """Raise InputError for a value that the annotations of a function or a class do not allow."""
    for name, hint in _hints(declared).items():
        if name in values and not _fits(values[name], hint):
            raise InputError(f"{where}{name} = {shown(values[name])}: give {_described(hint)}")


def check_fields(record: Any) -> None:
    """Raise InputError for a field that its annotation does not allow; for `__post_init__`.

    Numbers of NumPy become numbers of Python: products of 32-bit sizes would overflow.
    """
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    check_types(type(record), values, f"{type(record).__name__}: ")
    for name, value in values.items():
        if (plain := _of_python(value)) is not value:
            object.__setattr__(record, name, plain)


def shown(value: object) -> str:
    """Short text of a value for a message of one line."""
    try:
        return shortened(" ".join(repr(value).split()))
    except Exception:  # from an object's own __repr__, or for a number with too many digits
        return f"<{type(value).__name__}>"


def _of_python(value: Any) -> Any:
    """An integer or a float instead of a number of another type; other values as they are."""
    if isinstance(value, int | float | Fraction) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


_signature = cache(signature)


class _UnknownNames(type):
    """Class of a name whose attributes and items are unknown types too: `np.float64`."""

    def __getattr__(cls, name: str) -> _UnknownNames:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item: object) -> _UnknownNames:
        return cls


class _Unknown(metaclass=_UnknownNames):
    """A type that is imported for type checkers only: any value fits."""


@cache
def _hints(declared: object) -> dict[str, Any]:
    """Types of parameters or fields."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(declared, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = _Unknown


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
        return is_one and bool(least <= _of_python(value) <= most)
    return hint in (Any, _Unknown) or isinstance(
        value, (bytes, bytearray) if hint is bytes else origin
    )


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
