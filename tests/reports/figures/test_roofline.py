"""The roofline: roofs, points, and the line between theory and measurement."""

from dataclasses import replace

import pytest

from reports import style
from reports.figures import roofline


def named(figure, start):
    return [trace for trace in figure.data if trace.name.startswith(start)]


def test_a_rung_joins_measured_and_attainable(build, on_gpu):
    (rung,) = named(roofline.figure(build.view(on_gpu)), "tiled")
    measured, attainable, gap, uncached = rung.y
    assert set(rung.x) == {8.0}  # 2·4096³ FLOP / (4 B · 2·4096³/32)
    assert measured == pytest.approx(2 * 4096**3 / 0.0516459)
    assert attainable == 35.58e12
    assert gap is None  # the line ends here
    assert uncached == pytest.approx(8 * 936.2e9)
    assert list(rung.marker.symbol) == [
        "triangle-up", "triangle-up-open-dot", "triangle-up", "triangle-up-open",
    ]  # fmt: skip


def test_without_measurements_only_theory_is_drawn(build, in_theory):
    figure = roofline.figure(build.view(in_theory))
    (rung,) = named(figure, "tiled")
    assert list(rung.y) == [35.58e12, None, pytest.approx(8 * 936.2e9)]
    assert not named(figure, "measured")
    assert not named(figure, "cuBLAS")


def test_rungs_of_one_intensity_stand_apart(build, in_theory):
    figure = roofline.figure(build.view(in_theory))
    (one,), (other,) = named(figure, "coarsened-2d"), named(figure, "vectorized")
    assert other.x[0] / one.x[0] == pytest.approx(roofline.SPREAD)
    # around 2·128·128·16 FLOP / (2·128·16·4 B) = 32 FLOP/B
    assert one.x[0] * other.x[0] == pytest.approx(32**2)


def test_many_rungs_of_one_intensity_stay_near_it(build, in_theory):
    vectorized = in_theory.records[6]
    sweep = tuple(replace(vectorized, label=f"vectorized:{number}") for number in range(20))
    figure = roofline.figure(build.view(replace(in_theory, records=sweep)))
    places = [rung.x[0] for rung in named(figure, "vectorized")]
    assert len(set(places)) == 20
    assert max(places) / min(places) == pytest.approx(roofline.WIDEST_GROUP)


def test_the_uncached_bound_is_drawn_no_higher_than_the_peak(build, in_theory):
    theory = in_theory.records[6].theory
    fast = replace(theory, uncached=replace(theory.uncached, flop_per_s=160e12))
    changed = build.change(in_theory, "vectorized", theory=fast)
    (rung,) = named(roofline.figure(build.view(changed)), "vectorized")
    assert rung.y[-1] == in_theory.device.fp32_flop_per_s
    assert "bound without caches (theory): 160 TFLOP/s" in rung.hovertext[-1]


def test_roofs_meet_at_the_ridge_point(build, in_theory):
    figure = roofline.figure(build.view(in_theory))
    (dram,) = named(figure, "DRAM")
    assert dram.name == "DRAM 936.2 GB/s (nominal)"
    assert dram.x[-1] == pytest.approx(35.58e12 / 936.2e9)  # 38.0 FLOP/B
    assert dram.y[-1] == pytest.approx(35.58e12)
    assert dram.y[0] / dram.x[0] == pytest.approx(936.2e9)
    (fp32,) = named(figure, "FP32")
    assert set(fp32.y) == {35.58e12}
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")


def test_measured_roofs_are_dashed(build, in_theory):
    figure = roofline.figure(build.view(build.with_ceilings(in_theory)))
    dashes = {trace.name: trace.line.dash for trace in named(figure, "DRAM")}
    assert dashes == {"DRAM 936.2 GB/s (nominal)": "solid", "DRAM 868.0 GB/s (measured)": "dash"}
    assert len(named(figure, "L2")) == 2
    assert len(named(figure, "FP32")) == 2


def test_levels_without_a_rate_are_left_out(build, in_theory):
    assert not named(roofline.figure(build.view(in_theory)), "L2")


def test_cublas_is_a_line(build, on_gpu):
    (line,) = named(roofline.figure(build.view(on_gpu)), "cuBLAS")
    assert line.name == "cuBLAS 26.5 TFLOP/s (measured)"
    assert list(line.y) == pytest.approx([2 * 4096**3 / 0.00518697] * len(line.x))


def test_a_recorded_run_is_a_symbol_of_its_own(build, in_theory, on_gpu):
    figure = roofline.figure(build.view(in_theory, on_gpu))
    (rung,) = named(figure, "vectorized")
    assert rung.y[1] == pytest.approx(2 * 4096**3 / 0.0075122)
    assert rung.marker.symbol[1] == "star-dot"
    assert rung.marker.line.color[1] == style.INK  # the page gives it the ink of its scheme
    assert "recorded 2026-02-03 on NVIDIA GeForce RTX 3090" in rung.hovertext[1]
    assert named(figure, "recorded 2026-02-03")


def test_a_rung_that_failed_its_check_keeps_only_theory(build, on_gpu):
    wrong = replace(build.passed(), passed=False)
    changed = build.change(on_gpu, "tiled", check=wrong)
    (rung,) = named(roofline.figure(build.view(changed)), "tiled")
    assert len(rung.y) == 3


def test_no_theory_is_an_empty_figure_with_a_reason(build, in_theory):
    bare = replace(in_theory, records=tuple(replace(r, theory=None) for r in in_theory.records))
    figure = roofline.figure(build.view(bare))
    assert not figure.data
    assert figure.layout.annotations[0].text == "No rung has a theory at this shape."
