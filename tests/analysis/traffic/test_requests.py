"""Sectors and banks that each lane accesses."""

import random

import pytest

from analysis.coalescing import sectors, shared_wavefronts
from analysis.traffic.requests import pieces, strides

ROW = [4 * lane for lane in range(32)]


def test_consecutive_floats_fill_four_sectors():
    found = pieces(ROW, 4, "global")
    assert [piece.number for piece in found] == [0, 1, 2, 3]  # 128 B / 32 B
    assert [piece.used_bytes for piece in found] == [32] * 4
    assert found[1].lanes == tuple(range(8, 16))


def test_a_broadcast_is_one_word_of_all_lanes():
    (found,) = pieces([8] * 32, 4, "shared")
    assert (found.number, found.words) == (2, 1)
    assert found.lanes == tuple(range(32))


def test_every_other_word_meets_twice_in_half_of_the_banks():
    found = pieces([8 * lane for lane in range(32)], 4, "shared")
    assert [piece.number for piece in found] == list(range(0, 32, 2))
    assert {piece.words for piece in found} == {2}
    assert found[0].lanes == (0, 16)


def test_lanes_that_take_no_part_touch_nothing():
    assert pieces([None] * 31 + [0], 4, "global")[0].lanes == (31,)


@pytest.mark.parametrize("seed", range(20))
def test_they_add_up_to_what_a_request_costs(seed):
    made = random.Random(seed)
    width = made.choice([4, 8, 16])
    lanes = [made.choice([None, width * made.randrange(64)]) for _ in range(31)] + [0]
    addresses, active = [one or 0 for one in lanes], [one is not None for one in lanes]
    of_global = pieces(lanes, width, "global")
    assert len(of_global) == sectors(addresses, width_bytes=width, active=active)
    of_shared = pieces(lanes, width, "shared")
    most = [
        max(piece.words for piece in of_shared if piece.group == group)
        for group in {piece.group for piece in of_shared}
    ]
    cost = shared_wavefronts(addresses, width_bytes=width, operation="store", active=active)
    assert sum(most) == cost.wavefronts


def test_strides_are_between_neighbours_that_take_part():
    assert strides(ROW) == {4}
    assert strides([0, None, 8, 12]) == {4}
