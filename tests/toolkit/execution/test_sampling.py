"""Estimates from random blocks: intervals, and what blocks that agree leave open."""

import numpy as np
import pytest
from scipy.stats import t

from toolkit.execution.observation import Observed
from toolkit.execution.sampling import (
    Estimates,
    drawn_blocks,
    drawn_from_parts,
    estimated_counts,
    estimates,
    further_draws,
    half_width_in_errors,
    longest_missed,
    nearest_drawn,
    relative_half_width,
    unseen_share,
)
from toolkit.sass.core.binding import COUNT


def counts_of(*executed):
    """Counts of blocks of one instruction each."""
    found = []
    for n in executed:
        one = np.zeros(1, COUNT)
        one["executed"] = n
        found.append(one)
    return found


def metrics(counts, rows):
    counts = counts if rows is None else counts[rows]
    return {"instructions": int(counts["executed"].sum()), "sectors": int(counts["sectors"].sum())}


def open_counts(*names):
    found = np.zeros(1, COUNT)
    for name in names:
        found[name] = 1
    return found


@pytest.mark.parametrize(("drawn", "share"), [(32, 0.0894), (149, 0.0199), (0, 1.0)])
def test_share_of_blocks_that_may_differ_unseen(drawn, share):
    # (1 - share) ** drawn = 0.05
    assert unseen_share(drawn) == pytest.approx(share, abs=5e-5)


def test_random_blocks_are_none_of_the_known_ones_and_follow_from_the_seed():
    known = [0, 5, 99]
    first, again = (drawn_blocks(known, 100, 20, b"seed") for _ in range(2))
    other = drawn_blocks(known, 100, 20, b"other")
    assert first == again != other
    assert len(set(first)) == 20
    assert not set(first) & set(known)


def test_if_fewer_blocks_are_left_than_wanted_all_of_them_are_drawn():
    assert drawn_blocks([9, 1, 0], 10, 20, b"seed") == [2, 3, 4, 5, 6, 7, 8]


def test_the_mean_of_random_blocks_stands_for_the_rest():
    # two known blocks of 100 and 50, and four of 10, 10, 20, 20 for the other 98: 150 + 98 * 15
    total = estimated_counts(
        np.zeros(1, COUNT),
        open_counts("executed"),
        counts_of(100, 50),
        counts_of(10, 10, 20, 20),
        100,
    )
    assert total["executed"].tolist() == [150 + 98 * 15]


def test_what_is_certain_stays():
    certain = np.zeros(1, COUNT)
    certain["executed"], certain["sectors"] = 7, 3
    total = estimated_counts(certain, open_counts("executed"), [], counts_of(2, 2), 50)
    assert (total["executed"][0], total["sectors"][0]) == (100, 3)


def test_an_interval_is_of_the_mean_and_only_of_counters_that_may_differ():
    drawn = counts_of(*[10] * 50, *[20] * 50)
    total = {"instructions": 1000 * 15, "sectors": 4}
    found = estimates(total, open_counts("executed"), drawn, 1000, metrics)
    low, high = found.intervals["instructions"]
    # 2.4 standard errors: 2.4 * 5.025 / 10 * sqrt(0.9) per block
    assert high - 15_000 == pytest.approx(1000 * 2.4 * 5.0252 / 10 * 0.9**0.5, rel=1e-3)
    assert 15_000 - low == pytest.approx(high - 15_000)
    assert "sectors" not in found.intervals
    assert (found.drawn, found.agreeing) == (100, 50)
    assert not found.is_narrow


def test_blocks_that_agree_have_no_width_but_leave_a_share_open():
    for drawn, is_narrow in ((32, False), (149, True)):
        found = estimates(
            {"instructions": 50_000, "sectors": 0},
            open_counts("executed"),
            counts_of(*[50] * drawn),
            1000,
            metrics,
        )
        assert found.intervals["instructions"] == (50_000, 50_000)
        assert found.agreeing == drawn
        assert found.is_narrow == is_narrow


def test_an_interval_does_not_go_below_what_was_executed():
    drawn = counts_of(*[0] * 30, 1000)
    total = {"instructions": round(100 * 1000 / 31), "sectors": 0}
    found = estimates(total, open_counts("executed"), drawn, 100, metrics)
    assert found.intervals["instructions"][0] >= 1000


@pytest.mark.parametrize(("interval", "width"), [((90, 110), 0.1), ((5, 5), 0.0), ((0, 0), 0.0)])
def test_relative_half_width(interval, width):
    assert relative_half_width(interval) == pytest.approx(width)


def test_the_nearest_drawn_block_stands_for_others():
    one_class = np.zeros(10, dtype=np.uint32)
    assert nearest_drawn([7, 1, 3], [], one_class).tolist() == [1, 1, 1, 3, 3, 3, 7, 7, 7, 7]
    assert nearest_drawn([2], [], one_class[:4]).tolist() == [2, 2, 2, 2]


def test_a_block_of_another_class_stands_for_none():
    class_of = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=np.uint32)
    # none of class 1 was drawn: of its executed blocks, 0 and 3, the nearest one
    found = nearest_drawn([5, 8], [0, 3, 5, 8], class_of)
    assert found.tolist() == [0, 0, 3, 3, 5, 5, 5, 8, 8, 8]


def test_further_draws_are_as_many_as_a_narrow_interval_needs():
    assert further_draws(np.full(149, 50.0), 4096) == 0
    values = np.where(np.arange(150) % 2, 150.0, 50.0)  # standard deviation 50.2, mean 100
    error = 2.4 * 50.2 / 100 / 150**0.5
    assert further_draws(values, 10**9) == pytest.approx(150 * ((error / 0.02) ** 2 - 1), rel=0.01)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_intervals_hold_for_kinds_of_a_tenth_and_more(share):
    rng = np.random.default_rng(11)
    counts = dict(zip((20, 200), counts_of(20, 200), strict=True))
    held = 0
    for _ in range(400):
        values = np.where(rng.random(3000) < share, 200, 20)
        drawn = [counts[n] for n in rng.choice(values, 149, replace=False)]
        mean = np.mean([one["executed"][0] for one in drawn])
        total = {"instructions": round(3000 * mean), "sectors": 0}
        found = estimates(total, open_counts("executed"), drawn, 3000, metrics)
        low, high = found.intervals["instructions"]
        held += low <= values.sum() <= high
    assert held >= 0.95 * 400


@pytest.mark.parametrize(("greatest", "is_sufficient"), [(102.0, True), (102.1, False)])
def test_counters_of_slow_paths_may_be_as_uncertain_as_a_narrow_interval(greatest, is_sufficient):
    """Few random blocks are enough where only slow paths may differ: 2% either way."""
    few = Estimates(
        intervals={"sectors": (98.0, greatest)}, drawn=32, agreeing=32, unseen_share=0.09
    )
    assert not few.is_narrow
    empty = np.zeros(0, np.uint32)
    observed = Observed(
        counts=empty,
        class_of=empty,
        work=empty,
        stand_in=empty,
        run_of={},
        grid=(1, 1, 1),
        accesses=object(),
        lost="",
        estimates=few,
        slow_paths=("a division",),
    )
    assert observed.is_sufficient == is_sufficient


def test_what_cannot_differ_counts_in_full_at_the_lower_end():
    """Sectors are proved: only the instructions of blocks that were not executed may be fewer."""
    drawn = counts_of(*[0] * 9, 1)
    for one in drawn:
        one["sectors"] = 5

    def both(counts, rows):
        return {"both": sum(metrics(counts, rows).values())}

    found = estimates({"both": 510}, open_counts("executed"), drawn, 100, both)
    least, greatest = found.intervals["both"]
    assert least == 501  # 100 blocks of 5 sectors, and the instruction that was executed
    assert greatest > 520


@pytest.mark.parametrize("drawn", [2, 3, 4, 5, 6, 7, 8, 149])
def test_intervals_of_few_draws_are_those_of_student(drawn):
    quantile = t.ppf(0.975, drawn - 1)
    assert quantile <= half_width_in_errors(drawn) <= max(2.4, 1.005 * quantile)


def test_one_block_of_each_part_is_drawn():
    for seed in range(20):
        found = drawn_from_parts(103, 5, bytes([seed]))
        ends = [20, 41, 61, 82, 103]  # fifths of 103 blocks, rounded down
        assert np.searchsorted(ends, found, "right").tolist() == [0, 1, 2, 3, 4]
    assert found == drawn_from_parts(103, 5, bytes([19]))
    assert found != drawn_from_parts(103, 5, bytes([18]))


def test_the_longest_of_many_blocks_exceeds_the_longest_drawn_one():
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(300):
        every = rng.exponential(5.0, 500) + 1
        drawn = rng.choice(every, 25, replace=False)
        ratios.append((1 + longest_missed(drawn, 500)) * drawn.max() / every.max())
    assert 0.9 < np.mean(ratios) < 1.15
    assert longest_missed(np.full(25, 7.0), 500) == 0
    assert longest_missed(drawn, 25) == 0
