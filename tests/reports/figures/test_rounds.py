"""Samples and the GPU's state over the same rounds."""

import itertools

import pytest

from reports.figures import rounds
from tests.reports.profiles_by_hand import SHAPE, change, measured, view, watched


def test_samples_stand_in_the_round_that_took_them(on_gpu):
    three = measured(1.0, SHAPE, samples_s=(0.9, 1.0, 1.2))
    made = change(on_gpu, "vectorized", measured=three)
    figure = rounds.figure(view(made)).plotly()
    assert [one.name for one in figure.data][-2:] == ["vectorized", "cublas"]  # a CPU has no rounds
    of_three = figure.data[-2]
    assert list(of_three.x) == [1, 2, 3]
    assert list(of_three.y) == pytest.approx([-0.1, 0.0, 0.2])


def test_states_share_the_axis_of_rounds(on_gpu):
    figure = rounds.figure(view(watched(on_gpu))).plotly()
    clock, temperature, power = figure.data[-3:]
    assert list(clock.x) == [0, 25, 50, 75, 100]
    assert list(clock.y) == pytest.approx([1.70e9, 1.68e9, 1.66e9, 1.64e9, 1.62e9])
    assert list(temperature.y) == [42, 47, 52, 57, 62]
    assert {one.xaxis for one in figure.data} == {None}
    assert [one.yaxis for one in (clock, temperature, power)] == ["y2", "y3", "y4"]
    assert power.hovertext[1].startswith("500.0 ms after the first round began<br>")


def test_one_slow_sample_does_not_hide_the_others(on_gpu):
    samples = (*[1.0] * 99, 3.0)  # with six other series of 100, 1 of 700
    made = change(on_gpu, "vectorized", measured=measured(1.0, SHAPE, samples_s=samples))
    figure = rounds.figure(view(made)).plotly()
    low, high = figure.layout.yaxis.range
    shown = [y for one in figure.data for y in one.y if y < 1]  # the others are within 1%
    room = rounds.ROOM * (max(shown) - min(shown))
    expected = min(shown) - room, max(shown) + room
    assert (low, high) == pytest.approx(expected, rel=0.02)  # nearly all of them
    assert -0.02 < low < high < 0.02


def test_panels_do_not_overlap(on_gpu):
    layout = rounds.figure(view(watched(on_gpu))).plotly().layout
    domains = [layout[name].domain for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert domains[0][1] == 1
    assert domains[-1][0] == 0
    for upper, lower in itertools.pairwise(domains):
        assert lower[1] < upper[0]


def test_without_states_there_are_samples_alone(on_gpu):
    figure = rounds.figure(view(on_gpu)).plotly()
    assert len(figure.data) == 7  # six rungs and cuBLAS
    assert figure.layout.yaxis.domain == (0, 1)


def test_a_recorded_run_stands_in(in_theory, on_gpu):
    figure = rounds.figure(view(in_theory, watched(on_gpu))).plotly()
    assert "recorded 2026-02-03" in figure.layout.title.text
    assert not rounds.figure(view(in_theory)).plotly().data
