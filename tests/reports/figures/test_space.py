"""The space of a tuning run, over the values of one parameter at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.figures import space
from tests.reports.tuned_by_hand import SHAPE, WINNER


def test_each_grade_is_a_trace_of_those_that_have_it() -> None:
    figure = space.figure(SHAPE)
    assert {trace.name: len(trace.x) for trace in figure.data} == {
        "predicted": 4,
        "measured, sweep": 2,
        "measured, tied for the best": 1,
    }
    assert [trace.marker.symbol for trace in figure.data] == ["circle-open", "circle", "star"]
    assert figure.layout.yaxis.type == "log"


def test_marks_stand_in_the_column_of_their_value() -> None:
    figure = space.figure(SHAPE)
    assert list(figure.layout.xaxis.ticktext) == ["4", "8", "16"]  # of bk
    predicted = figure.data[0]  # in the order of candidates: bk is 16, 8, 4, 16
    assert [round(x) for x in predicted.x] == [2, 1, 0, 2]
    # two share the last column: 0.7 × (1/4 - 1/2) and 0.7 × (3/4 - 1/2) beside its middle
    assert list(predicted.x) == pytest.approx([2 - 0.175, 1, 0, 2 + 0.175])


def test_a_menu_moves_every_trace_to_another_parameter() -> None:
    figure = space.figure(SHAPE)
    (menu,) = figure.layout.updatemenus
    assert [button.label for button in menu.buttons] == ["bk", "tm"]
    traces, layout = menu.buttons[1].args
    assert list(map(len, traces["x"])) == [4, 2, 1]
    assert [round(x) for x in traces["x"][0]] == [0, 0, 1, 1]  # tm is 8, 8, 16, 16
    assert layout["xaxis"]["ticktext"] == ["8", "16"]
    assert layout["xaxis"]["title"]["text"] == "tm"


def test_hover_has_every_time_with_its_grade() -> None:
    won = space.figure(SHAPE).data[2]
    assert won.hovertext[0].split("<br>") == [
        "coarsened-1d:bk=8,tm=8",
        "2.00 ms (predicted)",
        "1.000 ms (measured, sweep)",
        "1.000 ms (measured, tied for the best)",
    ]


def test_a_space_of_one_configuration_has_no_figure() -> None:
    figure = space.figure(replace(SHAPE, candidates=(WINNER,)))
    assert not figure.data
    assert "No two configurations" in figure.layout.annotations[0].text
