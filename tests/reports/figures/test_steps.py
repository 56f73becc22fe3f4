"""The ladder as steps."""

from reports.figures import steps


def test_what_a_name_stands_for_is_said(build, in_prediction):
    notes = ("vectorized is another at this shape", "a note")
    made = build.change(in_prediction, "vectorized", notes=notes)
    *_, said = steps.figure(build.view(made)).layout.sliders[0].steps
    assert said.value.startswith("vectorized is another at this shape. vectorized is 1.29×")


def test_rungs_without_a_time_are_left_out(build, in_prediction):
    figure = steps.figure(build.view(in_prediction))
    assert list(figure.layout.xaxis.ticktext) == [
        "naive-uncoalesced", "naive-coalesced", "tiled", "coarsened-1d", "coarsened-2d",
        "vectorized",
    ]  # fmt: skip
    assert [trace.name.split(" (")[0] for trace in figure.data] == ["predicted", "FP32 peak"]


def test_each_position_adds_a_rung(build, in_prediction):
    figure = steps.figure(build.view(in_prediction))
    rates = list(figure.data[0].y)
    (slider,) = figure.layout.sliders
    for place, step in enumerate(slider.steps):
        (shown,) = step.args[0]["y"]
        assert list(shown) == [*rates[: place + 1], *[None] * (len(rates) - place - 1)]
    assert slider.steps[0].value.startswith("naive-uncoalesced: ")
    assert slider.steps[-1].value.startswith("vectorized is 1.29× (predicted) as fast as")


def test_predicted_and_recorded_times_stand_beside_each_other(build, in_prediction, on_gpu):
    figure = steps.figure(build.view(in_prediction, on_gpu))
    predicted, recorded = figure.data[:2]
    # 10% more time
    assert recorded.y[-1] / predicted.y[-1] == 1.1
    assert predicted.line.dash != recorded.line.dash
    assert predicted.marker.symbol != recorded.marker.symbol
    assert figure.data[-1].name.startswith("cuBLAS (recorded) 26.5 TFLOP/s")


def test_without_times_it_says_so(build, in_theory):
    assert not steps.figure(build.view(in_theory)).data
