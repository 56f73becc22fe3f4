"""Time that L2 needs for stores to few lines."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.hardware.sm_constants import CONSTANTS
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.l2_stores import (
    MEETING,
    shares_of_instructions,
    store_time,
    stores_that_meet,
)

HOPPER = CONSTANTS["sm_90"]
L2_BYTES = 50 << 20
RUN_LINES = 2  # lines of a slice that follow one another


def stores(lines, requests, sectors=1):
    """`requests` to each line, of so many sectors; line k is stored to by instruction k."""
    count, zeros = len(lines), np.zeros(len(lines))
    return AtomicOperations(
        line=np.array(lines, np.uint64),
        requests=zeros + requests,
        parts=zeros + requests * sectors,
        wholes=zeros,
        additions=np.zeros((count, 4)),
        first=zeros,
        last=zeros,
        instruction=np.arange(count),
    )


def seconds(found):
    return store_time(found, L2_BYTES, HOPPER).time_s


def test_stores_to_one_sector_wait_for_each_other():
    assert seconds(stores([5], 1e6)) == pytest.approx(1e6 * HOPPER.store_s)


def test_stores_to_a_whole_line_take_longer():
    assert seconds(stores([5], 1e6, sectors=4)) == pytest.approx(1e6 * HOPPER.store_line_s)


def test_lines_of_one_slice_add_up_and_others_do_not():
    alone = seconds(stores([0], 1e6))
    assert seconds(stores([0, 1], 1e6)) == pytest.approx(2 * alone)
    assert seconds(stores([0, RUN_LINES], 1e6)) == pytest.approx(alone)


def test_lines_with_few_stores_are_left_out():
    few, many = stores([0], MEETING - 1), stores([7], MEETING)
    assert stores_that_meet(few) is None
    both = replace(
        few,
        **{
            k: np.concatenate([getattr(few, k), getattr(many, k)])
            for k in (
                "line",
                "requests",
                "parts",
                "wholes",
                "additions",
                "first",
                "last",
                "instruction",
            )
        },
    )
    assert stores_that_meet(both).line.tolist() == [7]


def test_instructions_have_the_share_of_their_stores():
    found = stores([0, 7], np.array([3000.0, 1000.0]))
    assert shares_of_instructions(found, 3).tolist() == [0.75, 0.25, 0.0]


def test_the_basis_says_how_many():
    assert "5,000 stores of warps" in store_time(stores([0], 5000), L2_BYTES, HOPPER).basis


def test_warps_that_store_to_lines_in_one_order_wait_for_the_same_slices():
    """24 lines are three KiB, each with two slices of four lines. Of ten requests in a row, the
    busiest slice has 4, 4 and 2 of them (lines 0 to 9, 10 to 19 and 20 to 23)."""
    lines = np.arange(24)
    walk = replace(stores(lines, 1e5), first=1.0 * lines, last=1.0 * lines)
    of_slice = 4e5 * HOPPER.store_s
    assert seconds(stores(lines, 1e5)) == pytest.approx(of_slice)
    assert seconds(walk) == pytest.approx(of_slice * (4 + 4 + 2) / 4)
    said = store_time(walk, L2_BYTES, HOPPER).basis
    assert said.endswith(", times 2.5 because warps wait for the same slices")
