"""Kernel Tuner's strategies on times that are made up."""

import pytest

from analysis.devices import find_device
from analysis.errors import LaunchError, UnavailableError, UnknownNameError
from analysis.problem import parse_shape
from toolkit.gpu.sampling import Series
from toolkit.profiling.record import failed, planned, with_measurement
from toolkit.tuning.space import parse_space
from toolkit.tuning.strategy import check_strategy, search

pytest.importorskip("kernel_tuner", reason="Kernel Tuner is not installed: pip install '.[tune]'")

SELECTIONS = parse_space("coarsened-1d").selections


class Bench:
    """What was asked for; tm=4 fails, and of the others the larger tiles are faster."""

    def __init__(self):
        self.asked = []

    def __call__(self, selections):
        self.asked += [one.label for one in selections]
        return [self._measured(one) for one in selections]

    def _measured(self, selection):
        record = planned(selection, parse_shape("48"), find_device("h200"))
        if selection.parameters["tm"] == 4:
            return failed(record, "a fault")
        series = Series(samples_s=[1e-3 / selection.parameters["bk"]])
        return with_measurement(record, series, clock="CUDA events", l2="flushed")


@pytest.mark.parametrize(
    "strategy", ["random_sample", "genetic_algorithm", "mls", "pso", "simulated_annealing"]
)
def test_a_strategy_has_no_more_measured_than_it_may(strategy):
    bench = Bench()
    search(strategy, SELECTIONS, 3, bench)
    assert 1 <= len(set(bench.asked)) <= 3
    assert set(bench.asked) <= {one.label for one in SELECTIONS}


def test_a_strategy_that_may_measure_all_does():
    bench = Bench()
    search("random_sample", SELECTIONS, 16, bench)
    assert sorted(bench.asked) == sorted(one.label for one in SELECTIONS)


def test_what_a_measurement_raises_is_not_kernel_tuners():
    def measure(selections):
        raise UnavailableError("no GPU")

    with pytest.raises(UnavailableError, match=r"^no GPU$"):
        search("mls", SELECTIONS, 3, measure)


def test_what_kernel_tuner_stops_at_is_one_line():
    def measure(selections):
        raise ValueError("a\nb")

    with pytest.raises(LaunchError, match=r"^Kernel Tuner stopped: a$"):
        search("mls", SELECTIONS, 3, measure)


def test_an_unknown_strategy_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'brute_force'"):
        check_strategy("brute-force")


def test_only_other_strategies_need_kernel_tuner(monkeypatch):
    monkeypatch.setattr("toolkit.tuning.strategy.find_spec", lambda name: None)
    check_strategy("brute_force")
    with pytest.raises(UnavailableError, match=r"Kernel Tuner is not installed: pip install '\.\["):
        check_strategy("mls")
