"""Comparison of written bytes: equal, rounding, or a first different element."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.timing.predicted import Effect
from toolkit.remedies.edit import Edit
from toolkit.remedies.verification import Pages, Written, compared

EDIT = Edit(effect=Effect.BLOCK_START, lines=(), title="")


def written(values, label="argument 0 `x`", stored_bytes=0):
    content = np.asarray(values)
    pages = Pages(
        label=label,
        dtype=content.dtype,
        shape=content.shape,
        content=content.reshape(-1).view(np.uint8),
        written={0: content.reshape(-1).view(np.uint8)},
    )
    return Written(pages=(pages,), stored_bytes=stored_bytes)


def compare(before, after):
    return compared(written(before), written(after), EDIT, 4, 8)


def test_equal_bytes_are_equal():
    found = compare(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    assert found.is_equal
    assert found.text == "4 of 8 blocks compared"


def test_the_first_difference_has_its_place():
    found = compare(np.array([[1, 2], [3, 4]]), np.array([[1, 2], [5, 6]]))
    assert found.place == "argument 0 `x` at [1, 0]: 5 instead of 3"
    assert not found.is_rounding  # integers


def test_rounding_has_a_bound():
    one = np.float32(1)
    near = compare(np.array([one]), np.array([np.nextafter(one, np.float32(2))]))
    assert near.is_rounding
    assert near.error == 2.0**-23
    far = compare(np.array([one]), np.array([one + np.float32(2.0**-15)]))
    assert not far.is_rounding  # more than 128 * 2^-23 = 2^-16


def test_the_place_is_the_first_difference_that_is_no_rounding():
    before = np.array([1, 2, 4, 0.5], np.float32)
    after = np.array([np.nextafter(np.float32(1), np.float32(2)), 2, 4.5, 0.75], np.float32)
    found = compare(before, after)
    assert found.place == "argument 0 `x` at [2]: 4.5 instead of 4.0"
    assert found.error == 0.5  # of the last one


def test_a_zero_with_another_sign_is_a_difference_of_0():
    found = compare(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    assert found.place == "argument 0 `x` at [0]: -0.0 instead of 0.0"
    assert found.error == 0
    assert found.is_rounding


@pytest.mark.parametrize("is_reversed", [False, True])
def test_rounding_of_each_array_has_the_bound_of_its_type(is_reversed):
    def of_both(step, *, beyond=0):
        arrays = []
        for label, one in (("a", np.float32(1)), ("b", np.float64(1))):
            near = one + step * np.finfo(one.dtype).eps
            arrays += written(np.array([near], one.dtype), label).pages
        arrays += written(np.array([beyond]), "c").pages
        return Written(pages=tuple(arrays[::-1] if is_reversed else arrays), stored_bytes=0)

    near = compared(of_both(0), of_both(3), EDIT, 1, 1)
    assert near.is_rounding
    assert (near.error, near.bound) == (3 * 2.0**-52, 2.0**-45)  # both have 3/128 of their bounds
    assert not compared(of_both(0), of_both(300), EDIT, 1, 1).is_rounding
    assert not compared(of_both(0), of_both(3, beyond=1), EDIT, 1, 1).is_rounding


def test_infinity_is_no_rounding():
    found = compare(np.array([1.0]), np.array([np.inf]))
    assert not found.is_rounding


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"block": (256, 1, 1)}, "16 bytes stored instead of 32"),
        ({"grid": (1056, 1, 1)}, "16 bytes stored instead of 32"),
        ({}, ""),  # a compiler may leave out stores that later ones replace
    ],
)
def test_another_launch_stores_as_many_bytes(changes, place):
    """Of blocks that write what memory held, equal pages do not show that none is missing."""
    before, after = (written(np.zeros(8), stored_bytes=size) for size in (32, 16))
    found = compared(before, after, replace(EDIT, **changes), 8, 8)
    assert found.place == place
    assert found.is_rounding is False


def test_variables_of_one_version_alone_are_left_out():
    both, more = written(np.zeros(8)), written(np.ones(8), "variable `count`")
    before = Written(pages=(*both.pages, *more.pages), stored_bytes=0)
    assert compared(before, both, EDIT, 8, 8).is_equal
    assert compared(both, before, EDIT, 8, 8).is_equal
