"""Sampling with timers and a clock that are made up: when it stops, and what is kept."""

import math
from dataclasses import fields
from itertools import count, pairwise, repeat
from random import Random

import pytest

from analysis.comparison.statistics import median_interval
from analysis.errors import InputError, LaunchError
from toolkit.gpu.sampling import FEWEST_SAMPLES, FOR_AN_INTERVAL, Sampling, interleave

EQUAL = repeat(1.0)
LIMITS = [field.name for field in fields(Sampling)]


class Bench:
    """Competitors whose samples are given; each sample advances the clock by itself."""

    def __init__(self):
        self.now = 0.0
        self.order = []
        self.interrupted = None

    def clock(self):
        return self.now

    def timer(self, label, samples):
        def take():
            self.order.append(label)
            sample = next(samples)
            if isinstance(sample, BaseException):
                raise sample
            if math.isfinite(sample):
                self.now += sample
            return sample

        return take

    def run(self, peer=None, fewest=1, hooks=None, **given):
        """Limits of `Sampling`, with no limit of time but what is given, and samples by label."""
        limits = {name: given.pop(name) for name in LIMITS if name in given}
        timers = {label: self.timer(label, samples) for label, samples in given.items()}
        how = {"peer": peer, "fewest": fewest, "clock": self.clock} | (hooks or {})
        sampling = Sampling(**{"time_limit_s": 1e99} | limits)
        series, self.interrupted = interleave(timers, sampling, **how)
        return series


@pytest.fixture
def bench():
    return Bench()


def never_precise(start=1.0):
    """Samples that grow tenfold: no interval of their median is ever narrow."""
    return (start * 10 ** (n % 7) for n in count())


def test_equal_samples_stop_at_the_fewest(bench):
    series = bench.run(a=repeat(0.25))
    assert not bench.interrupted
    assert series["a"].stopped_by == "precision"
    assert series["a"].samples_s == [0.25] * FEWEST_SAMPLES


@pytest.mark.parametrize(("wild", "taken"), [(0, 20), (7, 40), (25, 80), (60, 160)])
def test_precision_is_asked_for_at_doubled_counts_only(bench, wild, taken):
    """Wild samples first, then equal ones: the interval is narrow long before it is asked for."""
    samples = (10.0 ** (1 + n % 7) if n < wild else 1.0 for n in count())
    series = bench.run(a=samples)
    assert (len(series["a"].samples_s), series["a"].stopped_by) == (taken, "precision")


def test_the_interval_where_sampling_stops_covers_the_true_median():
    """0.95 for a fixed count; asked after every sample, 0.91."""
    random, covered, runs = Random(1), 0, 1000
    for _ in range(runs):
        timers = {"a": lambda: random.lognormvariate(0, 0.1)}  # of median 1
        series, _ = interleave(timers, Sampling(precision=0.02, time_limit_s=1e9))
        interval = median_interval(series["a"].samples_s)
        covered += interval.low <= 1 <= interval.high
    assert covered / runs >= 0.93


def test_the_time_limit_waits_for_an_interval(bench):
    series = bench.run(time_limit_s=1.0, fewest=FOR_AN_INTERVAL, a=EQUAL, b=repeat(5.0))
    assert len(series["a"].samples_s) == FOR_AN_INTERVAL
    assert len(series["b"].samples_s) == 2  # 10 s: the limit ten times
    assert {s.stopped_by for s in series.values()} == {"time limit"}


def test_the_time_limit_stops_what_is_not_precise(bench):
    series = bench.run(time_limit_s=111, a=never_precise())
    assert series["a"].stopped_by == "time limit"
    assert series["a"].samples_s == [1, 10, 100]
    assert series["a"].spent_s == 111


def test_a_tiny_time_limit_still_takes_one_sample(bench):
    series = bench.run(time_limit_s=1e-300, a=never_precise(), b=never_precise())
    assert [s.samples_s for s in series.values()] == [[1], [1]]


def test_the_sample_limit_stops_what_is_not_precise(bench):
    series = bench.run(max_samples=33, a=never_precise())
    assert series["a"].stopped_by == "sample limit"
    assert len(series["a"].samples_s) == 33


def test_each_competitor_leaves_on_its_own(bench):
    series = bench.run(max_samples=30, fast=EQUAL, slow=never_precise())
    assert (len(series["fast"].samples_s), len(series["slow"].samples_s)) == (FEWEST_SAMPLES, 30)


def test_competitors_take_turns_and_the_peer_is_first(bench):
    bench.run(max_samples=2, peer="p", a=EQUAL, p=EQUAL, b=EQUAL)
    assert bench.order == ["p", "a", "b", "p", "b", "a"]


def test_nobody_always_follows_the_same_one(bench):
    bench.run(max_samples=6, a=EQUAL, b=EQUAL, c=EQUAL)
    for label in "abc":
        before = {x for x, y in pairwise(bench.order) if y == label}
        assert len(before) > 1


def test_every_sample_has_the_one_of_the_peer_before_it(bench):
    series = bench.run(
        max_samples=40, peer="p", a=never_precise(), p=(n + 0.5 for n in count()), b=EQUAL
    )
    assert series["a"].peer_s == [n + 0.5 for n in range(40)]
    assert series["b"].peer_s == [n + 0.5 for n in range(FEWEST_SAMPLES)]
    assert series["p"].peer_s == []


def test_the_peer_stays_until_the_last_has_left(bench):
    series = bench.run(max_samples=50, peer="p", p=EQUAL, a=never_precise())
    assert len(series["p"].samples_s) == 50  # precise after 20, and the other took 50
    assert series["p"].stopped_by == "sample limit"


def test_the_peer_goes_on_alone_until_it_is_known_itself(bench):
    series = bench.run(max_samples=50, peer="p", p=never_precise(), a=EQUAL)
    assert len(series["p"].samples_s) == 50
    assert len(series["a"].samples_s) == len(series["a"].peer_s) == FEWEST_SAMPLES


def test_the_peer_takes_no_more_than_the_sample_limit(bench):
    series = bench.run(max_samples=1, peer="p", p=EQUAL, a=EQUAL)
    assert [len(s.samples_s) for s in series.values()] == [1, 1]


def test_a_peer_alone_is_sampled_like_any_other(bench):
    series = bench.run(peer="p", p=repeat(2.0))
    assert len(series["p"].samples_s) == FEWEST_SAMPLES


def test_a_peer_that_is_not_there_changes_nothing(bench):
    series = bench.run(peer="cublas", a=EQUAL)
    assert series.keys() == {"a"}
    assert series["a"].peer_s == []


def test_nothing_to_time_is_nothing(bench):
    for peer in (None, "p"):
        assert bench.run(peer=peer) == {}
        assert not bench.interrupted


@pytest.mark.parametrize("error", [LaunchError("illegal address"), InputError("no room")])
def test_a_launch_that_fails_ends_its_series_only(bench, error):
    failing = iter([1.0, 1.0, error])
    series = bench.run(a=failing, b=EQUAL)
    assert not bench.interrupted
    assert series["a"].error == str(error)
    assert series["a"].samples_s == [1.0, 1.0]
    assert series["b"].stopped_by == "precision"


def test_a_peer_that_fails_midway_leaves_its_pairs(bench):
    peer = iter([0.5, 0.6, LaunchError("gone")])
    series = bench.run(peer="p", p=peer, a=EQUAL)
    assert series["p"].error == "gone"
    assert series["a"].peer_s == [0.5, 0.6]
    assert len(series["a"].samples_s) == FEWEST_SAMPLES


def test_a_competitor_that_fails_gets_no_pair(bench):
    failing = iter([1.0, LaunchError("gone")])
    series = bench.run(peer="p", p=repeat(0.5), a=failing)
    assert series["a"].peer_s == [0.5]
    assert series["a"].samples_s == [1.0]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0, 0.0])
@pytest.mark.parametrize("position", [0, 25])
@pytest.mark.parametrize("peer", [None, "a", "b"])
def test_a_sample_that_is_no_time_is_an_error(bench, wrong, position, peer):
    samples = (wrong if n == position else 10.0 ** (n % 3) for n in count())
    series = bench.run(max_samples=60, peer=peer, a=samples, b=never_precise())
    assert series["a"].error == f"sample {position} is {wrong} s: the clock cannot be right"
    assert len(series["a"].samples_s) == position
    assert len(series["b"].samples_s) == 60


@pytest.mark.parametrize("limit", [{"time_limit_s": 1e-9}, {"max_samples": 1}, {"precision": 1.0}])
@pytest.mark.parametrize("peer", [None, "p"])
def test_all_that_fail_at_once_end_the_run(bench, limit, peer):
    failing = {label: iter([LaunchError(label)]) for label in "pa"}
    series = bench.run(**limit, peer=peer, **failing)
    assert [s.error for s in series.values()] == ["p", "a"]


@pytest.mark.parametrize("position", range(12))
@pytest.mark.parametrize("stopped", ["p", "a", "b"])
def test_ctrl_c_in_a_sample_keeps_all_before_it(bench, stopped, position):
    samples = {label: (float(n) for n in count(1)) for label in "apb"}
    until = [*range(1, position + 1), KeyboardInterrupt()]
    series = bench.run(peer="p", **samples | {stopped: iter(until)})
    assert bench.interrupted
    turns = ["p", "a", "b"] if position % 2 == 0 else ["p", "b", "a"]
    done = turns.index(stopped)
    for turn, label in enumerate(turns):
        taken = position + (turn < done)
        assert series[label].samples_s == [float(n + 1) for n in range(taken)]
        assert series[label].stopped_by == "interrupt"
        assert series[label].error is None
    for label in ("a", "b"):
        assert series[label].peer_s == series[label].samples_s


def test_ctrl_c_between_a_sample_and_its_pair_keeps_the_sample(bench):
    readings = repeat(0.0, 7)  # two readings a sample; the eighth is Ctrl-C

    def clock():
        try:
            return next(readings)
        except StopIteration:
            raise KeyboardInterrupt from None

    bench.clock = clock
    series = bench.run(peer="p", p=EQUAL, a=EQUAL)
    assert bench.interrupted
    assert series["a"].samples_s == [1.0, 1.0]
    assert series["a"].peer_s == [1.0]


def test_ctrl_c_leaves_what_had_ended_as_it_ended(bench):
    samples = iter([*(10.0 ** (n % 3) for n in range(30)), KeyboardInterrupt()])
    series = bench.run(a=EQUAL, b=iter([LaunchError("gone")]), c=samples)
    assert bench.interrupted
    assert [s.stopped_by for s in series.values()] == ["precision", None, "interrupt"]
    assert len(series["c"].samples_s) == 30


def test_samples_are_kept_where_no_other_can_be_taken(bench):
    lost = []

    def on_sample(label, series):
        if series.error is not None:
            lost.append(label)

    failing = iter([1.0, LaunchError("gone")])
    hooks = {"on_sample": on_sample, "usable": lambda: not lost}
    series = bench.run(hooks=hooks, a=EQUAL, b=failing, c=EQUAL)
    assert not bench.interrupted
    assert bench.order == ["a", "b", "c", "b"]
    assert series["b"].error == "gone"
    for label in "ac":
        assert (series[label].samples_s, series[label].stopped_by) == ([1.0], "interrupt")


def test_ctrl_c_while_telling_is_no_loss(bench):
    def on_sample(label, series):
        if len(series.samples_s) == 3:
            raise KeyboardInterrupt

    series = bench.run(hooks={"on_sample": on_sample}, a=repeat(0.1))
    assert bench.interrupted
    assert series["a"].samples_s == [0.1] * 3


def test_every_sample_is_told(bench):
    told = []
    hooks = {"on_sample": lambda label, series: told.append((label, len(series.samples_s)))}
    bench.run(max_samples=2, peer="p", hooks=hooks, a=EQUAL, p=EQUAL)
    assert told == [("p", 1), ("a", 1), ("p", 2), ("a", 2)]


@pytest.mark.parametrize("field", ["precision", "time_limit_s", "max_samples"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_limit_that_would_not_end_sampling_is_refused(field, value):
    with pytest.raises(InputError, match=rf"{value} is out of range"):
        Sampling(**{field: value})


def test_rounds_are_told_before_the_first_and_after_each(bench):
    heard = []
    hooks = {"on_round": lambda done: heard.append((done, len(bench.order)))}
    bench.run(max_samples=3, precision=1e-9, hooks=hooks, a=EQUAL, b=EQUAL)
    assert heard == [(0, 0), (1, 2), (2, 4), (3, 6)]  # two samples a round
