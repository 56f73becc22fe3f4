"""The GPU's state over the run."""

from dataclasses import replace

import pytest

from analysis.records.profile import GpuState
from reports.figures import conditions


def test_each_shape_has_a_moment_before_and_after(build):
    made = build.profile(build.SHAPE, build.SMALL, is_measured=True)
    figure = conditions.figure(made)
    clock, temperature, power = figure.data
    assert list(clock.y) == [1.695e9, 1.62e9, None, 1.695e9, 1.62e9]  # None: no line between
    assert list(temperature.y) == [41, 63, None, 41, 63]
    assert list(power.y) == [120, 349, None, 120, 349]
    assert list(figure.layout.xaxis.ticktext) == [
        "4096 ×<br>4096 ×<br>4096",
        "2048 ×<br>2048 ×<br>2048",
    ]
    assert "throttled by power cap" in clock.hovertext[1]


def test_states_while_it_sampled_stand_between_the_two(build, on_gpu):
    clock, temperature, _ = conditions.figure(build.watched(on_gpu)).data
    assert list(temperature.y) == [41, 42, 47, 52, 57, 62, 63]
    # before; from 0.1 to 0.8 of the shape's room in equal times; after
    assert list(clock.x) == pytest.approx([0, 0.1, 0.275, 0.45, 0.625, 0.8, 0.9])
    assert clock.hovertext[2].startswith(
        "4096 × 4096 × 4096, 500.0 ms into its samples, 25 rounds done<br>SM clock 1.680 GHz"
    )


def test_a_recorded_run_stands_in_where_nothing_was_measured(in_theory, on_gpu):
    figure = conditions.figure(in_theory, recorded=on_gpu)
    assert len(figure.data) == 3
    assert "recorded 2026-02-03" in figure.layout.title.text


def test_without_a_gpu_it_says_so(in_theory):
    assert not conditions.figure(in_theory).data


def test_a_gpu_that_tells_nothing_has_no_states(on_gpu):
    def silent(profile):
        nothing = GpuState()
        return replace(
            profile,
            conditions=(),
            records=tuple(
                replace(x, measured=replace(x.measured, before=nothing, after=nothing))
                if x.measured
                else x
                for x in profile.records
            ),
        )

    assert any(x.measured for x in on_gpu.records)
    figure = conditions.figure(silent(on_gpu))
    assert not figure.data
    assert "No state of a GPU was read" in figure.layout.annotations[0].text
