"""Rates, their intervals, and the lines that they are compared with."""

from dataclasses import replace

import pytest

from reports.figures import performance
from tests.reports.profiles_by_hand import SHAPE, change, measured, view

FLOP = 2 * 4096**3


def bars(figure):
    return [trace for trace in figure.data if trace.type == "bar"]


def named(figure, start):
    return [t for t in figure.data if t.type == "scatter" and t.name.startswith(start)]


def test_measured_rates_and_their_intervals(on_gpu):
    (measured,) = bars(performance.figure(view(on_gpu)))
    rate = FLOP / 0.0075122
    assert len(measured.x) == 6  # one-block is skipped, and has no row
    assert measured.x[5] == pytest.approx(rate)
    # the interval of the time is ±0.2 %
    assert measured.error_x.array[5] == pytest.approx(rate / 0.998 - rate)
    assert measured.error_x.arrayminus[5] == pytest.approx(rate - rate / 1.002)
    assert len(set(measured.marker.color)) == 6


def test_theory_stands_as_marks(in_theory):
    figure = performance.figure(view(in_theory))
    assert not bars(figure)
    (attainable,) = named(figure, "attainable")
    assert list(attainable.y) == [0, 1, 2, 3, 4, 5]
    (uncached,) = named(figure, "bound without caches")
    assert uncached.x[1] == pytest.approx(234.05e9)  # 0.25 FLOP/B · 936.2 GB/s


def test_predicted_rates_stand_beside_the_bars(in_prediction, on_gpu):
    (predicted,) = named(performance.figure(view(in_prediction)), "predicted")
    assert predicted.x[5] == pytest.approx(FLOP / (1.1 * 0.0075122))
    assert list(predicted.y) == [0, 1, 2, 3, 4, 5]
    assert not named(performance.figure(view(on_gpu)), "predicted")


def test_the_uncached_bound_does_not_stretch_the_axis(in_theory):
    figure = performance.figure(view(in_theory))
    peak = in_theory.device.fp32_flop_per_s
    (uncached,) = named(figure, "bound without caches (theory)")
    # 2-D tiles of 128 × 128 have 32 FLOP/B: 32 · 936.2 GB/s = 30.0 TFLOP/s, below the peak
    assert uncached.x[5] == pytest.approx(29.96e12, rel=1e-3)
    theory = in_theory.records[6].theory
    fast = replace(theory, uncached=replace(theory.uncached, flop_per_s=160e12))
    figure = performance.figure(view(change(in_theory, "vectorized", theory=fast)))
    (uncached,) = named(figure, "bound without caches (theory)")
    assert uncached.x[5] == peak
    assert "160 TFLOP/s" in uncached.hovertext[5]
    assert max(x for trace in figure.data for x in trace.x if x) == peak


def test_lines_of_the_peak_and_of_cublas(on_gpu):
    figure = performance.figure(view(on_gpu))
    (peak,) = named(figure, "FP32 peak 35.6 TFLOP/s (nominal)")
    (cublas,) = named(figure, "cuBLAS 26.5 TFLOP/s (measured)")
    assert set(peak.x) == {35.58e12}
    assert list(cublas.x) == pytest.approx([FLOP / 0.00518697] * 8)  # one per row and both ends
    assert peak.line.dash != cublas.line.dash


def test_a_recorded_run_has_bars_of_its_own(in_theory, on_gpu):
    figure = performance.figure(view(in_theory, on_gpu))
    (recorded,) = bars(figure)
    assert recorded.name == "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert recorded.x[5] == pytest.approx(FLOP / 0.0075122)
    assert recorded.marker.pattern.shape == "."
    assert named(figure, "cuBLAS 26.5 TFLOP/s (recorded)")


def test_both_runs_stand_side_by_side(on_gpu):
    figure = performance.figure(view(on_gpu, on_gpu))
    assert len(bars(figure)) == 2
    assert figure.layout.barmode == "group"


def test_too_few_samples_have_no_interval(on_gpu):
    few = measured(1e-2, SHAPE, interval_s=None)
    changed = change(on_gpu, "vectorized", measured=few)
    (drawn,) = bars(performance.figure(view(changed)))
    assert drawn.error_x.array[5] == 0
    assert "interval" not in drawn.hovertext[5]


def test_nothing_at_all(in_theory):
    assert not performance.figure(view(replace(in_theory, records=()))).data
