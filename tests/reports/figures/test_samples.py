"""Every sample is drawn."""

from dataclasses import replace

import pytest

from reports.figures import samples


def test_every_sample_of_every_variant(build, on_gpu):
    figure = samples.figure(build.view(on_gpu))
    assert len(figure.data) == 8  # six rungs ran, and two references
    assert all(len(box.x) == 100 for box in figure.data)
    assert all(box.boxpoints == "all" for box in figure.data)


def test_samples_are_relative_to_their_median(build, on_gpu):
    measured = build.measured(1.0, build.SHAPE, samples_s=(0.9, 1.0, 1.2))
    figure = samples.figure(build.view(build.change(on_gpu, "vectorized", measured=measured)))
    box = figure.data[5]
    assert list(box.x) == pytest.approx([-0.1, 0.0, 0.2])
    assert box.hovertext[2] == "3: 1.200 s"
    relative, time = figure.layout.updatemenus[0].buttons
    assert list(relative.args[0]["x"][5]) == pytest.approx([-0.1, 0.0, 0.2])
    assert list(time.args[0]["x"][5]) == [0.9, 1.0, 1.2]


def test_theory_has_no_samples(build, in_theory):
    figure = samples.figure(build.view(in_theory))
    assert not figure.data
    assert figure.layout.annotations[0].text == ("Nothing was timed on a GPU at this shape.")


def test_a_hosts_samples_alone_are_no_figure(build, in_theory):
    records = (*in_theory.records, build.cpu(build.SHAPE))
    assert not samples.figure(build.view(replace(in_theory, records=records))).data


def test_recorded_samples_are_labelled(build, in_theory, on_gpu):
    figure = samples.figure(build.view(in_theory, on_gpu))
    assert len(figure.data) == 6
    assert figure.layout.yaxis.ticktext[5] == "vectorized<br>(recorded)"
    assert "recorded 2026-02-03" in figure.data[5].name
