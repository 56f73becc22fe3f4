"""Values of a wrong type are refused in one line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from analysis.argument_types import checked, shown
from analysis.errors import InputError
from tests.refusals import refusal


@checked
def public(
    whole: int = 0,
    part: float | None = 0.0,
    text: str = "",
    names: Sequence[str] = (),
    sizes: int | Sequence[int] = 1,
    table: Mapping[str, object] | None = None,
    which: Literal["all", "some"] | int = "all",
    told: Callable[[int], None] | None = None,
    flag: bool = False,
    content: bytes = b"",
    anything: Any = None,
    unknown: "NoSuchClass | None" = None,  # noqa: F821 (as of an import for type checkers)
):
    return whole


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("whole", None, "a whole number of at most 64 bits"),
        ("whole", True, "a whole number of at most 64 bits"),
        ("whole", 1.5, "a whole number of at most 64 bits"),
        ("whole", 2**64, "a whole number of at most 64 bits"),
        ("part", "1", "a finite number or None"),
        ("part", float("nan"), "a finite number or None"),
        ("part", 10**400, "a finite number or None"),
        ("text", b"x", "a text"),
        ("names", "x", "a list"),
        ("names", [1], "a list"),
        ("sizes", 1.5, "one to three whole sizes of at least 1"),
        ("table", [1], "a dict or None"),
        ("which", "none", "'all', 'some' or a whole number of at most 64 bits"),
        ("told", 3, "a function or None"),
        ("flag", 1, "True or False"),
        ("content", "x", "bytes"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(name, value, remedy):
    said = refusal(InputError, public, **{name: value})
    assert said == f"{name} = {shown(value)}: give {remedy}"


def test_what_the_annotations_allow_is_passed_on():
    assert type(public(np.int64(3))) is int
    assert public(-(2**63), 1, "x", ["a"], [3, "checked by the function"], {}, "some", print) == -(
        2**63
    )
    assert public(flag=True, content=bytearray(b"x"), anything=object(), unknown=object()) == 0


def test_a_value_is_shown_in_a_short_line():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    assert shown(np.zeros((3, 3))) == "array([[0., 0., 0.], [0., 0., 0.], [0., 0., 0.]])"
    assert shown("a" * 100) == f"'{'a' * 59}…"
    assert shown(10**5000) == "<int>"
    assert shown(Odd()) == "<Odd>"


T = TypeVar("T")
Array = TypeAliasType("Array", np.ndarray[Any, np.dtype[T]], type_params=(T,))
Size = TypeAliasType("Size", int | None)


@checked
def of_named_types(array: Array[np.float32], size: Size = None):
    return size


def test_types_that_have_a_name_are_checked_as_what_they_stand_for():
    assert of_named_types(np.zeros(2, np.float32), 3) == 3
    for values in ((3,), (np.zeros(2), "3")):
        with pytest.raises(InputError):
            of_named_types(*values)
