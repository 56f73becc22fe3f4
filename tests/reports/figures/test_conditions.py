"""The GPU's state over the run."""

from __future__ import annotations

from types import SimpleNamespace

from analysis.result import Profile
from reports.figures import conditions


def test_each_shape_has_a_moment_before_and_after(build: SimpleNamespace) -> None:
    made = build.profile(build.SHAPE, build.SMALL, is_measured=True)
    figure = conditions.figure(made)
    clock, temperature, power = figure.data
    assert list(clock.y) == [1.695e9, 1.62e9] * 2
    assert list(temperature.y) == [41, 63] * 2
    assert list(power.y) == [120, 349] * 2
    assert list(figure.layout.xaxis.ticktext) == ["4096 × 4096 × 4096", "2048 × 2048 × 2048"]
    assert "throttled by power cap" in clock.hovertext[1]


def test_a_recorded_run_stands_in_where_nothing_was_measured(
    in_theory: Profile, on_gpu: Profile
) -> None:
    figure = conditions.figure(in_theory, recorded=on_gpu)
    assert len(figure.data) == 3
    assert "recorded 2026-02-03" in figure.layout.title.text


def test_without_a_gpu_it_says_so(in_theory: Profile) -> None:
    assert not conditions.figure(in_theory).data
