"""Winners of a tuning run: ties by intervals, leaders by medians, on numbers by hand."""

from dataclasses import replace

import pytest

from analysis.problem import parse_shape
from analysis.records.profile import Interval, Ratio
from analysis.records.tuning import Candidate, Swept, TunedShape, cost, leaders, tied
from tests.records_by_hand import measured


def timed(low, median, high):
    interval = Interval(low=low, high=high)
    return measured(median, samples_s=(low, median, high), interval_s=interval)


def beside_cublas(time, low, median, high):
    interval = Interval(low=low, high=high)
    ratio = Ratio(peer="cublas", median=median, interval=interval)
    return replace(time, relative_to_cublas=ratio)


def test_a_configuration_whose_interval_meets_the_fastest_ones_is_tied_with_it():
    finals = {
        "fastest": timed(0.98, 1.00, 1.02),
        "touches": timed(1.02, 1.05, 1.08),
        "apart": timed(1.03, 1.05, 1.07),
    }
    assert tied(finals) == {"fastest", "touches"}


def test_a_series_too_short_for_an_interval_cannot_be_told_apart():
    short = replace(timed(5, 5, 5), interval_s=None)
    assert tied({"fastest": timed(0.9, 1, 1.1), "short": short}) == {"fastest", "short"}


def test_ties_are_those_of_the_ratios_where_a_drifting_clock_would_hide_the_difference():
    # both series drift by a half, cuBLAS beside them too
    finals = {
        "fast": beside_cublas(timed(1.0, 1.2, 1.5), 0.99, 1.00, 1.01),
        "slow": beside_cublas(timed(1.0, 1.25, 1.5), 0.94, 0.95, 0.96),
    }
    assert tied(finals) == {"fast"}
    without = {label: replace(one, relative_to_cublas=None) for label, one in finals.items()}
    assert tied(without) == {"fast", "slow"}


def test_ratios_count_only_where_every_series_has_one():
    finals = {
        "ratio": beside_cublas(timed(1.9, 2.0, 2.1), 3.0, 3.1, 3.2),  # a third of cuBLAS's time
        "seconds": timed(0.9, 1.0, 1.1),
    }
    assert tied(finals) == {"seconds"}


def test_nobody_is_tied_where_nobody_was_timed():
    assert tied({}) == frozenset()


def test_a_cost_is_the_inverse_of_the_speed_over_cublas():
    middle, interval = cost(beside_cublas(timed(1, 1, 1), 0.5, 0.8, 1.0))
    assert middle == pytest.approx(1.25)
    assert interval == Interval(low=1.0, high=2.0)


def test_leaders_are_within_five_percent_of_the_best_the_fastest_first():
    swept = {"a": 1.05, "b": 1.0, "c": 1.0501, "d": 1.02}
    assert leaders(swept, most=9) == ("b", "d", "a")
    assert leaders(swept, most=2) == ("b", "d")
    assert leaders({}, most=2) == ()


def test_the_median_of_a_sweep_is_no_mean():
    assert Swept(samples_s=(1.0, 9.0, 2.0), from_cache=False).median_s == 2.0


def test_winners_are_the_tied_ones_with_the_best_median_first():
    def candidate(label, measured, is_tied):
        return Candidate(
            label=label, parameters={}, estimate_s=1.0, measured=measured, is_tied=is_tied
        )

    square = parse_shape("8")
    shape = TunedShape(
        shape=square,
        executed_shape=square,
        combinations=3,
        exclusions=(),
        method="by hand",
        candidates=(
            candidate("second", timed(1.0, 1.2, 1.4), is_tied=True),
            candidate("slow", timed(2, 2, 2), is_tied=False),
            candidate("first", timed(1.0, 1.1, 1.2), is_tied=True),
        ),
    )
    assert [one.label for one in shape.winners] == ["first", "second"]
