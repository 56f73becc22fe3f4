"""The roofline of all rungs: a point per rung and level, and roofs."""

import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.roofline import roofline, tensor_roofs
from kernels import find
from reports import style
from reports.figures import hierarchy
from reports.figures.roofs import Span, tensor_lid
from reports.ladder import View
from tests.reports.profiles_by_hand import change, foreseen, view, with_ceilings


def trace(figure, name):
    return next(one for one in figure.data if one.name == name)


def test_a_point_per_rung_and_level_at_the_measured_rate(in_counters):
    drawn = trace(hierarchy.figure(view(in_counters), "tiled").plotly(), "DRAM")
    place = drawn.meta["labels"].index("tiled")
    flop = 2 * 4096**3
    assert drawn.x[place] == pytest.approx(flop / 2e9)  # 1 + 1 GB were counted
    assert drawn.y[place] == pytest.approx(flop / 0.0516459 / 1e12)
    assert drawn.marker.symbol[place] == "circle"
    assert drawn.marker.color[place] == style.CHOSEN
    assert "2.66 TFLOP/s (measured)" in drawn.hovertext[place]
    assert "68.72 FLOP/B: 1.863 GiB" in drawn.hovertext[place]


def test_a_level_at_which_nothing_moves_has_no_point(in_counters):
    drawn = trace(hierarchy.figure(view(in_counters)).plotly(), "shared memory")
    assert "naive-coalesced" not in drawn.meta["labels"]


def test_predicted_rates_are_open(in_prediction):
    drawn = trace(hierarchy.figure(view(in_prediction)).plotly(), "L1")
    place = drawn.meta["labels"].index("tiled")
    assert drawn.marker.symbol[place] == "diamond-open"
    assert drawn.y[place] == pytest.approx(2 * 4096**3 / (0.0516459 * 1.1) / 1e12)


def test_two_levels_of_one_bandwidth_have_one_roof(in_counters):
    figure = hierarchy.figure(view(in_counters)).plotly()
    assert any(one.name.startswith("shared/L1 ") for one in figure.data)
    assert not any(one.name.startswith("L1 ") for one in figure.data)
    assert not any(one.name.startswith("L2 ") for one in figure.data)  # not known
    known = hierarchy.figure(view(with_ceilings(in_counters))).plotly()
    dashes = [one.line.dash for one in known.data if one.name.startswith("L2 ")]
    assert dashes == ["solid", "dash"]


def test_a_kernel_of_a_library_is_drawn_where_it_was_counted(in_counters):
    made = change(in_counters, "cublas", counted=in_counters.records[3].counted)
    drawn = trace(hierarchy.figure(view(made)).plotly(), "L2")
    assert drawn.marker.color[drawn.meta["labels"].index("cublas")] == style.LOST


def test_a_measured_rate_stands_before_a_predicted_one(in_counters):
    drawn = trace(hierarchy.figure(view(foreseen(in_counters))).plotly(), "DRAM")
    place = drawn.meta["labels"].index("tiled")
    assert drawn.marker.symbol[place] == "circle"


def test_without_traffic_the_figure_says_so(in_theory):
    figure = hierarchy.figure(View(in_theory, parse_shape("1"))).plotly()
    assert not figure.data
    assert "--counters" in figure.layout.annotations[0].text


def test_a_roof_of_tensor_cores_has_its_name_in_one_line():
    device = find_device("h200")
    (roof,) = tensor_roofs([find("tf32-parts").tiling(find("tf32-parts").defaults)], device)
    drawn = tensor_lid(roof, roofline(device), Span(low=1, high=100, names_end=10))
    assert drawn["text"][-1] == "1/3 TF32 peak"
