"""The waterfall from nominal peak to the time of a launch."""

import pytest

from analysis.timing.predicted import GapStep
from reports.figures import gap
from tests.reports.profiles_by_hand import change, foreseen, predicted, record_of, view


def shown(figure):
    (found,) = (trace for trace in figure.data if trace.visible)
    return found


def test_the_fastest_predicted_variant_is_shown_first(in_prediction):
    figure = gap.figure(view(in_prediction))
    assert len(figure.data) == 6
    assert shown(figure).name == "vectorized"
    assert figure.layout.updatemenus[0].active == 5


def test_steps_end_in_the_predicted_time(in_prediction):
    figure = gap.figure(view(in_prediction))
    bars = shown(figure)
    time_s = 0.0075122 * 1.1
    assert list(bars.x) == pytest.approx([time_s / 4, time_s, -time_s / 4, time_s])
    assert list(bars.measure) == ["absolute", "relative", "relative", "absolute"]
    assert list(figure.layout.yaxis.ticktext)[-1] == "predicted"
    assert list(bars.text[1:3]) == ["+8.26 ms", "−2.07 ms"]


def test_a_measurement_adds_its_clock_and_a_remainder(on_gpu):
    figure = gap.figure(view(foreseen(on_gpu)))
    bars = shown(figure)
    assert list(figure.layout.yaxis.ticktext[3:]) == [
        "predicted", "clock actually <br>held", "remainder", "measured",
    ]  # fmt: skip
    steps = [x for x, kind in zip(bars.x, bars.measure, strict=True) if kind == "relative"]
    assert bars.x[0] + sum(steps) == pytest.approx(0.0075122, rel=1e-12)
    assert bars.x[-1] == 0.0075122


def test_the_menu_changes_bars_names_and_range(in_prediction):
    figure = gap.figure(view(in_prediction))
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == [trace.name for trace in figure.data]
    for place, button in enumerate(buttons):
        traces, changes = button.args
        assert [bool(one) for one in traces["visible"]].index(True) == place
        assert sum(traces["visible"]) == 1
        bars = figure.data[place]
        assert len(changes["yaxis.ticktext"]) == len(bars.x)
        low, high = changes["xaxis.range"]
        assert low == 0
        assert high > 1.2 * max(bars.x[0] + bars.x[1], bars.x[-1])  # room for the labels


def test_names_and_details_are_literal(in_prediction):
    evil = (GapStep(name="<b>x</b>", time_s=1.0, detail="<i>y</i>"),)
    record = record_of(in_prediction, "tiled")
    made = change(in_prediction, "tiled", predicted=predicted(record, 1e-9, gap=evil).predicted)
    figure = gap.figure(view(made))
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert "&lt;i&gt;y" in shown(figure).hovertext[0]


def test_nothing_predicted_is_said(on_gpu):
    assert not gap.figure(view(on_gpu)).data
