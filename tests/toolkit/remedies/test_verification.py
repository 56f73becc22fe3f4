"""Comparison of written bytes: equal, rounding, or a first different element."""

import numpy as np

from toolkit.remedies.verification import Pages, compared


def pages(values):
    content = np.asarray(values)
    return Pages(
        label="argument 0 `x`",
        dtype=content.dtype,
        shape=content.shape,
        content=content.reshape(-1).view(np.uint8),
        written={0: content.reshape(-1).view(np.uint8)},
    )


def compare(before, after):
    return compared([pages(before)], [pages(after)], 4, 8)


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


def test_infinity_is_no_rounding():
    found = compare(np.array([1.0]), np.array([np.inf]))
    assert not found.is_rounding
