"""The hierarchical roofline: a pair of points per variant and level, roofs, and what hides what."""

from dataclasses import replace

import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from reports import style
from reports.figures import hierarchy
from reports.ladder import View
from tests.reports.profiles_by_hand import change, foreseen, view, with_ceilings


def trace(figure, name):
    return next(one for one in figure.data if one.name == name)


def names(figure):
    return [one.name for one in figure.data]


def test_a_pair_of_points_per_variant_and_level(in_counters):
    drawn = trace(hierarchy.figure(view(in_counters)), "tiled, DRAM")
    flop = 2 * 4096**3
    assert drawn.x == pytest.approx((flop / 2.1e9, flop / 2e9))  # 0.9 + 1.2 GB against 1 + 1
    # shared memory: 2^32 wavefronts of loads, a 32nd of stores: 8/33 FLOP/B
    roof = 8 / 33 * 128 * 82 * 1.695e9
    assert drawn.y == pytest.approx((roof, flop / 0.0516459))
    assert drawn.marker.symbol == ("triangle-up-open-dot", "triangle-up")
    assert drawn.line.color == style.LEVEL_COLOURS["DRAM"]
    predicted, measured = drawn.hovertext
    assert "65.45 FLOP/B: 1.956 GiB (simulated)" in predicted
    assert "4.31 TFLOP/s (attainable, limited by shared)" in predicted
    assert "2.66 TFLOP/s (measured)" in measured
    assert "68.72 FLOP/B: 1.863 GiB (measured)" in measured
    assert "roof here: 64.3 TFLOP/s (nominal)" in measured


def test_a_level_at_which_nothing_moves_has_no_point(in_counters):
    drawn = names(hierarchy.figure(view(in_counters)))
    assert "naive-coalesced, shared memory" not in drawn
    assert "naive-coalesced, L1" in drawn


def test_an_earlier_runs_points_are_its_own_kind(in_simulation, in_counters):
    figure = hierarchy.figure(view(in_simulation, in_counters))
    assert trace(figure, "tiled, L1").marker.symbol == ("triangle-up-open-dot", "triangle-up-dot")
    assert "recorded 2026-02-03" in names(figure)
    assert trace(figure, "tiled, DRAM").marker.symbol == ("triangle-up-dot",)  # not predicted


def test_a_rate_without_counters_stands_at_the_predicted_traffic(on_gpu):
    drawn = trace(hierarchy.figure(view(on_gpu)), "tiled, shared memory")
    assert drawn.x[0] == drawn.x[1]
    assert drawn.y[1] == pytest.approx(2 * 4096**3 / 0.0516459)


def test_counters_without_a_rate_stand_at_what_is_attainable(in_counters):
    made = change(in_counters, "tiled", measured=None)
    drawn = trace(hierarchy.figure(view(made)), "tiled, DRAM")
    # the hardware took 12% more wavefronts for stores: a 32nd of the loads
    assert drawn.y[0] / drawn.y[1] == pytest.approx((1 + 1.12 / 32) / (1 + 1 / 32))
    assert "not timed: attainable" in drawn.hovertext[1]


def test_two_levels_of_one_bandwidth_have_one_roof(in_counters):
    figure = hierarchy.figure(view(in_counters))
    roof = next(one for one in figure.data if one.name.startswith("shared/L1 "))
    assert roof.meta is None  # it stays while one of the two levels is hidden
    assert not any(one.name.startswith("L1 ") for one in figure.data)
    assert not any(one.name.startswith("L2 ") for one in figure.data)  # not known
    known = hierarchy.figure(view(with_ceilings(in_counters)))
    dashes = [one.line.dash for one in known.data if one.name.startswith("L2 ")]
    assert dashes == ["solid", "dash"]


def test_buttons_hide_variants_and_levels(in_counters):
    figure = hierarchy.figure(view(in_counters))
    variants, others = figure.layout.meta["toggles"]
    assert list(variants) == [r.label for r in in_counters.records if r.counted]
    assert list(others) == ["shared memory", "L1", "L2", "DRAM", "source texts' ceilings"]
    needs = [one.meta["needs"] for one in figure.data if one.meta]
    assert {name for pair in needs for name in pair} == {*variants, *others}


def test_a_kernel_of_a_library_is_drawn_where_it_was_counted(in_counters):
    made = change(in_counters, "cublas", counted=in_counters.records[3].counted)
    assert trace(hierarchy.figure(view(made)), "cublas, L2").marker.symbol == ("x",)


def test_before_volta_l1_has_points_and_no_roof(in_counters):
    old = replace(in_counters, device=find_device("gtx-1080-ti"))
    figure = hierarchy.figure(view(old))
    assert "tiled, L1" in names(figure)
    assert not any("L1 " in one for one in names(figure))
    assert "bandwidth not known" in trace(figure, "tiled, L1").hovertext[0]


def test_without_traffic_the_figure_says_so(in_theory):
    figure = hierarchy.figure(View(in_theory, parse_shape("1")))
    assert not figure.data
    assert "--counters" in figure.layout.annotations[0].text


def test_a_predicted_time_gives_the_predicted_rate(in_counters):
    drawn = trace(hierarchy.figure(view(foreseen(in_counters))), "tiled, DRAM")
    assert drawn.y[0] == pytest.approx(2 * 4096**3 / (0.0516459 * 1.1))
    assert drawn.marker.symbol == ("triangle-up-open-dot", "triangle-up")
    assert "2.42 TFLOP/s (predicted)" in drawn.hovertext[0]


def test_the_source_texts_ceilings_are_marked_lines(in_counters):
    lines = [
        one for one in hierarchy.figure(view(in_counters)).data
        if one.meta and one.meta["needs"] == ["source texts' ceilings"]
    ]  # fmt: skip
    rates = [round(one.y[0] / 1e9) for one in lines]
    # the RTX 3090's 936.2 GB/s by 0.25, 8, 16 (64 x 64) and 32 FLOP/B (128 x 128)
    assert rates == [234, 7490, 14979, 29958]
    assert [one.x[1] for one in lines] == [0.25, 8, 16, 32]
    assert "of naive-uncoalesced and naive-coalesced" in lines[0].hovertext
    assert lines[0].line.dash == "dot"
