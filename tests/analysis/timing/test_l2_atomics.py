"""The queue of atomic operations at a slice of L2, on operations that are worked out by hand."""

import numpy as np
import pytest

from analysis.hardware.sm_constants import CONSTANTS
from analysis.timing.l2_atomics import MOST_CROWDED, AtomicOperations, atomic_time, slice_of

HOPPER = CONSTANTS["sm_90"]
L2_BYTES = 50 << 20
PART, WHOLE, SUM = (
    1e9 * x for x in (HOPPER.atomic_part_s, HOPPER.atomic_whole_s, HOPPER.atomic_sum_s)
)


def operations(*lines):
    """Operations on lines: (number, requests, parts, wholes, additions, first, last)."""
    names = ("line", "requests", "parts", "wholes", "additions", "first", "last")
    columns = dict(zip(names, map(np.array, zip(*lines, strict=True)), strict=True))
    return AtomicOperations(
        **{
            name: x.astype(np.uint64 if name == "line" else np.float64)
            for name, x in columns.items()
        }
    )


def ns(*lines):
    return 1e9 * atomic_time(operations(*lines), L2_BYTES, HOPPER).time_s


NONE = (0, 0, 0, 0)


def test_integers_to_one_address_follow_one_another():
    assert ns((7, 1000, 32_000, 0, NONE, 0, 0)) == pytest.approx(32_000 * PART)


def test_floats_to_one_address_wait_for_the_sum_before():
    assert ns((7, 1000, 1000, 0, (1000, 0, 0, 0), 0, 0)) == pytest.approx(1000 * SUM)
    # lanes of one request too, although other requests come between
    assert ns((7, 1000, 32_000, 0, (32_000, 0, 0, 0), 0, 0)) == pytest.approx(32_000 * SUM)


def test_a_request_for_a_whole_line_hides_the_sums_of_its_sectors():
    # 4 sectors at a time take longer than one sum: measured 2.36 to 2.5 ns per request
    assert ns((7, 1000, 0, 4000, (1000,) * 4, 0, 0)) == pytest.approx(4000 * WHOLE)


def test_a_sum_holds_up_what_comes_behind_it_in_the_slice():
    # two lines of one slice, in any order: every second request is for the sector of the one before
    lines = [(line, 500, 500, 0, (500, 0, 0, 0), 0, 0) for line in (0, 1)]
    expected = 1000 * (PART + 0.5 * (SUM - PART))
    assert ns(*lines) == pytest.approx(expected)
    assert expected == pytest.approx(1000 * 1.27, rel=0.03)  # measured on an H100


def test_runs_of_two_lines_alternate_between_two_slices_and_neighbours_have_others():
    found = slice_of(np.arange(16, dtype=np.uint64), 80)
    assert found.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    assert len(set(slice_of(np.arange(320, dtype=np.uint64), 80).tolist())) == 80
    for pitch in (8, 16, 32, 64, 128, 256):  # lines: powers of two spread too
        some = slice_of(np.arange(0, 80 * pitch, pitch, dtype=np.uint64), 80)
        assert np.bincount(some).max() <= 8, pitch


def test_slices_work_side_by_side():
    one = ns((0, 1000, 1000, 0, NONE, 0, 0))
    assert ns((0, 1000, 1000, 0, NONE, 0, 0), (8, 1000, 1000, 0, NONE, 0, 0)) == pytest.approx(one)
    assert ns((0, 1000, 1000, 0, NONE, 0, 0), (1, 1000, 1000, 0, NONE, 0, 0)) == pytest.approx(
        2 * one
    )


@pytest.mark.parametrize(("count", "at_a_time"), [(24, 8), (10, 10), (64, 64 / 7)])
def test_warps_that_walk_lines_in_one_order_keep_a_window_of_slices_busy(count, at_a_time):
    # lines of slices of their own: 24 take three windows of 10 requests, as was measured
    per_line = 1000 * PART
    some = [(8 * line, 1000, 1000, 0, NONE, line, line) for line in range(count)]
    crowded = min(count / at_a_time, MOST_CROWDED * ns(*some[:1]) / per_line * -(-count // 40))
    assert ns(*some) == pytest.approx(crowded * per_line)
    anywhere = [(*line[:5], 0, count - 1) for line in some]  # walks that begin anywhere
    assert ns(*anywhere) == pytest.approx(-(-count // 40) * per_line)


def test_operations_on_lines_that_few_blocks_access_spread_over_all_slices():
    alone = AtomicOperations(
        **{
            name: np.zeros(
                0 if name != "additions" else (0, 4), np.uint64 if name == "line" else float
            )
            for name in ("line", "requests", "parts", "wholes", "additions", "first", "last")
        },
        other_parts=80_000,
    )
    assert 1e9 * atomic_time(alone, L2_BYTES, HOPPER).time_s == pytest.approx(1000 * PART)


def test_a_basis_names_the_slices_or_the_additions():
    one = operations((7, 1000, 1000, 0, (1000, 0, 0, 0), 0, 0))
    assert atomic_time(one, L2_BYTES, HOPPER).basis == (
        "1,000 sector operations in the busiest of 80 L2 slices, 1.76 ns each"
    )
    all_lanes = operations((7, 1000, 32_000, 0, (32_000, 0, 0, 0), 0, 0))
    assert atomic_time(all_lanes, L2_BYTES, HOPPER).basis == (
        "32,000 float additions to one sector, one after the other, 1.76 ns each"
    )
