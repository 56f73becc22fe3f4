"""Predicted times as a figure: against measured ones, or under the simple bounds."""

import pytest

from reports.figures import predicted

FLOP = 2 * 4096**3


def named(figure, name):
    (found,) = (trace for trace in figure.data if trace.name == name)
    return found


def test_points_stand_at_measured_and_predicted_times(build, on_gpu):
    made = build.foreseen(on_gpu)
    figure = predicted.figure(build.view(made))
    tiled = named(figure, "tiled")
    assert (tiled.x[0], tiled.y[0]) == pytest.approx((0.0516459, 0.0516459 * 1.1))
    assert "1.10× (+10.0 %)" in tiled.hovertext[0]
    assert "limited by shared memory (busy 60.0 % of the time)" in tiled.hovertext[0]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert "both are equal" in predicted.reading(build.view(made))
    assert named(figure, "measured").marker.symbol == "circle"


def test_the_band_is_as_wide_as_it_says(build, on_gpu):
    figure = predicted.figure(build.view(build.foreseen(on_gpu)))
    band = named(figure, "±12 %")
    assert [y / x for x, y in zip(band.x, band.y, strict=True)] == pytest.approx(
        [1.12, 1.12, 0.88, 0.88]
    )
    assert band.x[0] < 0.0075122 / 1.1  # around all points
    assert band.x[1] > 0.459418 * 1.1


def test_recorded_times_are_marked_as_such(build, in_prediction, on_gpu):
    figure = predicted.figure(build.view(in_prediction, on_gpu))
    assert named(figure, "tiled").marker.symbol.endswith("-dot")
    assert figure.layout.xaxis.title.text == "time, recorded, s"
    assert named(figure, "recorded 2026-02-03")


def test_without_measurements_rates_stand_under_their_bounds(build, in_prediction):
    figure = predicted.figure(build.view(in_prediction))
    (bars,) = (trace for trace in figure.data if trace.type == "bar")
    assert len(bars.x) == 6
    assert bars.x[2] == pytest.approx(FLOP / (0.0516459 * 1.1))
    shared = named(figure, "shared memory alone")
    assert shared.x[2] == pytest.approx(bars.x[2] / 0.6)
    assert "so much of shared memory" in shared.hovertext[2]
    assert figure.layout.xaxis.range[1] == pytest.approx(1.05 * 35.58e12)
    assert "each mark is the rate" in predicted.reading(build.view(in_prediction))


def test_marks_are_told_apart_by_their_shape(build, in_prediction):
    figure = predicted.figure(build.view(in_prediction))
    symbols = [trace.marker.symbol for trace in figure.data if trace.name.endswith(" alone")]
    assert len(set(symbols)) == len(symbols) == 3


def test_nothing_predicted_is_said(build, on_gpu):
    figure = predicted.figure(build.view(on_gpu))
    assert not figure.data
    assert figure.layout.annotations[0].text == "No time was predicted at this shape."
