"""Predicted over measured times of the configurations of a tuning run."""

from __future__ import annotations

from reports.figures import foresight
from tests.reports.tuned_by_hand import SHAPE, UNMEASURED


def test_measured_configurations_are_compared_and_winners_are_stars() -> None:
    diagonal, beaten, tied = foresight.figure(SHAPE).data
    assert diagonal.x == diagonal.y
    assert (beaten.x, beaten.y) == ((2e-3,), (4e-3,))
    assert (tied.x, tied.y, tied.marker.symbol) == ((1e-3,), (2e-3,), "star")
    assert tied.hovertext[0].split("<br>")[-1] == "+100.0 %"  # 2 ms predicted, 1 ms measured


def test_without_a_measurement_the_figure_says_so() -> None:
    figure = foresight.figure(UNMEASURED)
    assert not figure.data
    assert "both predicted and measured" in figure.layout.annotations[0].text
