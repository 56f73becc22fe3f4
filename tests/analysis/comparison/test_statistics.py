from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.statistics import (
    is_precise,
    median_interval,
    quotient,
    ratio_interval,
    relative_half_width,
    time_verdict,
)
from analysis.errors import InputError
from analysis.records.profile import Interval
from tests.refusals import refusal


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (6, 1, 6),  # 1 - 2/2^6 = 0.969
        (8, 1, 8),  # 1 - 2·(1 + 8)/2^8 = 0.930 would not do
        (9, 2, 8),  # 1 - 2·(1 + 9)/2^9 = 0.961
        (20, 6, 15),  # the tables' ranks for 20 samples
        (100, 40, 61),  # 50 ± 1.96·5, rounded outwards
        (10_000, 4902, 5099),  # 5000 ± 1.96·50: the sum begins at 4500
    ],
)
def test_the_interval_lies_between_these_order_statistics(count, low, high):
    samples = [float(sample) for sample in range(1, count + 1)]
    assert median_interval(samples[::-1]) == Interval(low=low, high=high)


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_samples_have_no_interval(count):
    assert median_interval([1.0] * count) is None
    assert relative_half_width([1.0] * count) is None
    assert not is_precise([1.0] * count)


@given(st.integers(1, 200))
def test_ranks_are_the_narrowest_that_exact_binomials_allow(count):
    def missed(rank):  # the chance that fewer than `rank` samples are below
        return sum(comb(count, below) for below in range(rank)) / 2**count

    ranks = [rank for rank in range(1, count // 2 + 1) if 2 * missed(rank) <= 0.05]
    found = median_interval(list(map(float, range(1, count + 1))))
    expected = Interval(low=ranks[-1], high=count + 1 - ranks[-1]) if ranks else None
    assert found == expected


def test_half_width_is_relative_to_the_median():
    samples = [9.0, 10.0, 10.0, 10.0, 10.0, 11.0]
    assert relative_half_width(samples) == pytest.approx(0.1)  # (11 - 9) / 2 / 10
    assert is_precise(samples, relative=0.11)
    assert not is_precise(samples, relative=0.09)


def test_equal_samples_are_precise_and_zeros_are_not():
    assert is_precise([2.0] * 6)
    assert relative_half_width([0.0] * 6) is None
    assert not is_precise([0.0] * 6)


def test_ratios_are_taken_pair_by_pair():
    # the clock halves midway: the medians of either are useless, the ratio stays
    own = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    peer = [1.5, 1.5, 1.5, 3.0, 3.0, 3.0]
    assert ratio_interval(peer, own) == (1.5, Interval(low=1.5, high=1.5))
    assert ratio_interval([3.0], [2.0]) == (1.5, None)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_a_sample_that_is_no_time_is_refused(wrong):
    for ask in (median_interval, relative_half_width, is_precise):
        assert "sample 1 is" in refusal(InputError, ask, [1.0, wrong])
    assert "sample 1 is" in refusal(InputError, ratio_interval, [1.0, wrong], [1.0, 1.0])
    assert "sample 1 is" in refusal(InputError, ratio_interval, [1.0, 1.0], [1.0, wrong])


def test_unpaired_or_zero_samples_have_no_ratio():
    assert "1 samples of the peer and 2 of the launch" in refusal(
        InputError, ratio_interval, [1.0], [1.0, 2.0]
    )
    assert "at least 1" in refusal(InputError, ratio_interval, [], [])
    assert "sample 1 is 0 s" in refusal(InputError, ratio_interval, [1.0, 1.0], [1.0, 0.0])


def test_a_quotient_is_widest_at_opposite_ends():
    before, after = Interval(low=1.0, high=2.0), Interval(low=3.0, high=4.0)
    assert quotient(after, before) == Interval(low=1.5, high=4.0)  # 3/2, 4/1
    assert quotient(None, before) is quotient(after, None) is None
    assert quotient(after, Interval(low=0.0, high=1.0)) is None
    assert quotient(after, Interval(low=1.0, high=0.0)) is None


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.031, 1.2, "slower"),
        (1.03, 1.2, "ambiguous"),  # 3% more may be all
        (0.5, 0.969, "faster"),
        (0.97, 1.03, "same"),
        (0.96, 1.01, "ambiguous"),
        (0.9, 1.1, "ambiguous"),
    ],
)
def test_a_verdict_is_what_no_end_of_the_interval_contradicts(low, high, verdict):
    assert time_verdict(Interval(low=low, high=high)) == verdict


def test_without_an_interval_nothing_is_said():
    assert time_verdict(None) == "ambiguous"


@given(
    st.lists(st.floats(0.5, 2.0), min_size=6, max_size=40),
    st.lists(st.floats(0.5, 2.0), min_size=6, max_size=40),
)
def test_verdicts_turn_round_with_the_runs(before, after):
    ours, theirs = median_interval(before), median_interval(after)
    opposite = {"faster": "slower", "slower": "faster"}
    there, back = time_verdict(quotient(theirs, ours), 0.0), time_verdict(quotient(ours, theirs), 0)
    assert back == opposite.get(there, back)
    if max(after) < min(before):
        assert there == "faster"
    assert time_verdict(quotient(ours, ours)) in ("same", "ambiguous")


def test_runs_of_one_distribution_seldom_differ_and_runs_apart_do():
    draws = np.random.default_rng(0)
    verdicts = []
    for count in (6, 20, 100):
        for _ in range(200):
            runs = [draws.lognormal(0.0, 0.1, size=size).tolist() for size in (count, 2 * count)]
            ours, theirs = map(median_interval, runs)
            verdicts.append(time_verdict(quotient(theirs, ours), 0.0))
    assert np.mean([verdict in ("faster", "slower") for verdict in verdicts]) <= 0.05
    steady = [[scale * sample for sample in (1.0, 1.001, 1.002) * 5] for scale in (1.0, 1.1)]
    assert time_verdict(quotient(*map(median_interval, reversed(steady)))) == "slower"
