"""The rate over the size."""

from dataclasses import replace

from analysis.problem import parse_shape
from reports import style
from reports.figures import sizes
from tests.reports.profiles_by_hand import SHAPE, SMALL, foreseen, profile


def test_a_curve_per_variant_in_order_of_size():
    made = profile(SHAPE, SMALL, is_measured=True)
    curve = next(one for one in sizes.figure(made).plotly().data if one.name == "tiled")
    assert list(curve.x) == [2048, 4096]
    assert curve.line.dash == "solid"
    assert "N = 4,096<br>2.66 TFLOP/s (measured)" in curve.hovertext[1]


def test_a_variant_that_was_measured_has_no_predicted_line(in_prediction):
    recorded = profile(SHAPE, SMALL, is_measured=True)
    figure = sizes.figure(in_prediction, recorded=recorded, chosen="tiled").plotly()
    (curve,) = [one for one in figure.data if one.name == "tiled"]
    assert curve.line.dash == "solid"
    assert curve.line.color == style.CHOSEN


def test_predictions_alone_are_dashed_with_open_marks():
    made = foreseen(profile(SHAPE, SMALL, is_measured=True))
    unmeasured = tuple(replace(r, measured=None) for r in made.records)
    curve = sizes.figure(replace(made, records=unmeasured)).plotly().data[0]
    assert (curve.line.dash, curve.marker.symbol) == ("dash", "circle-open")


def test_the_axis_has_the_sizes_themselves():
    made = profile(SHAPE, SMALL, is_measured=True)
    axis = sizes.figure(made).plotly().layout.xaxis
    assert list(axis.tickvals) == [2048, 4096]
    assert list(axis.ticktext) == ["2,048", "4,096"]


def test_products_that_are_not_square_are_left_out(on_gpu):
    flat = parse_shape("64x4096x4096")
    records = tuple(replace(r, shape=flat) for r in on_gpu.records)
    assert not sizes.figure(replace(on_gpu, records=records)).plotly().data


def test_one_size_is_no_curve(on_gpu):
    assert not sizes.figure(on_gpu).plotly().data


def test_a_host_is_no_gpu():
    made = profile(SHAPE, SMALL, is_measured=True)
    names = [one.name for one in sizes.figure(made).plotly().data]
    assert "tiled" in names
    assert "cpu" not in names
