"""Checks of arguments and fields: a value of a wrong type raises an error of one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_KINDS: dict[object, Any] = {bytes: (bytes, bytearray), Any: object}
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
    for name, (hint, fits) in _tests(declared).items():
        if name in values and not fits(values[name]):
            raise InputError(f"{where}{name} = {shown(values[name])}: give {_described(hint)}")


def check_fields(record: Any) -> None:
    """Raise InputError for a field that its annotation does not allow; for `__post_init__`.

    Numbers of NumPy become numbers of Python: products of 32-bit sizes would overflow.
    """
    check_types(type(record), vars(record), f"{type(record).__name__}: ")
    for name, value in vars(record).items():
        if (plain := _of_python(value)) is not value:
            object.__setattr__(record, name, plain)


def shown(value: object) -> str:
    """Short text of a value for a message of one line."""
    try:
        return shortened(" ".join(repr(value).split()))
    except Exception:  # from an object's own __repr__, or for a number with too many digits
        return f"<{type(value).__name__}>"


_OF_PYTHON = int, float, str, tuple, Fraction


def _of_python(value: Any) -> Any:
    """An integer or a float instead of a number of another type; other values as they are."""
    if isinstance(value, _OF_PYTHON) or not isinstance(value, Real):
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


_KINDS[_Unknown] = object


def _hints(declared: object) -> dict[str, Any]:
    """Types of parameters or fields."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(declared, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = _Unknown


Test = Callable[[Any], bool]


@cache
def _tests(declared: object) -> dict[str, tuple[Any, Test]]:
    """Annotation of each parameter or field, and a function that says if a value fits it."""
    return {name: (hint, _test_of(hint)) for name, hint in _hints(declared).items()}


def _test_of(hint: Any) -> Test:
    origin, among = get_origin(hint) or hint, get_args(hint)
    if hasattr(origin, "__value__"):  # the name of another hint, as NumPy's NDArray may be
        return _test_of(origin.__value__)
    if origin in (Union, UnionType):
        tests = [_test_of(one) for one in among]
        return lambda value: any(test(value) for test in tests)
    if origin is Literal:
        return lambda value: any(type(value) is type(one) and value == one for one in among)
    if origin in (Sequence, tuple):
        # for other element types the function itself checks the elements
        is_known = among == (str,) or (origin is tuple and among != ())
        return _test_of_list(_test_of(among[0]) if is_known else None)
    if hint in _NUMBERS:
        return _test_of_number(hint, *_NUMBERS[hint])
    kinds = _KINDS.get(hint, origin)
    return lambda value: isinstance(value, kinds)


def _test_of_list(of_one: Test | None) -> Test:
    def fits(value: Any) -> bool:
        is_one = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return is_one and (of_one is None or all(map(of_one, value)))

    return fits


def _test_of_number(usual: type, kind: type, least: float, most: float) -> Test:
    def fits(value: Any) -> bool:
        if type(value) is not usual:
            if not isinstance(value, kind) or isinstance(value, bool):
                return False
            value = _of_python(value)
        return bool(least <= value <= most)

    return fits


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
