"""A warp's request, drawn."""

import pytest

from reports.figures import lanes
from tests.reports.profiles_by_hand import view


def test_one_request_is_shown_and_a_menu_offers_the_others(in_trace):
    figure = lanes.figure(view(in_trace), "tiled")
    (menu,) = figure.layout.updatemenus
    assert [button.label for button in menu.buttons] == [
        "line 3: load from A, 4 B per lane",
        "line 3: store to shared memory, 4 B per lane",
        "line 4: load from shared memory, 4 B per lane",
    ]
    assert [trace.visible for trace in figure.data] == [True] * 3 + [False] * 6
    for place, button in enumerate(menu.buttons):
        assert [n // 3 == place for n in range(9)] == list(button.args[0]["visible"])
    below = [button.args[1]["xaxis.title.text"].split()[-2] for button in menu.buttons]
    assert below == ["sector", "bank", "bank"]


def test_a_column_is_32_sectors_and_a_stride_of_two_a_conflict(in_trace):
    figure = lanes.figure(view(in_trace), "tiled")
    of_load, of_store, of_read = figure.data[2], figure.data[5], figure.data[8]
    assert len(of_load.x) == 32
    assert set(of_store.text) == {"1"}
    assert len(of_read.x) == 16
    assert set(of_read.text) == {"2"}
    assert set(of_read.marker.symbol) == {"square"}  # crowded: not by colour alone
    assert set(of_store.marker.symbol) == {"circle"}


def test_every_lane_tells_where_it_reaches(in_trace):
    figure = lanes.figure(view(in_trace), "tiled")
    assert figure.data[1].hovertext[5] == "lane 5<br>A[5][0], byte 1,280"
    assert figure.data[8].hovertext[0] == "bank 0: 2 words<br>lanes 0 and 16"
    assert "in 32 sectors of 32<br>B; 4 could hold them" in figure.layout.annotations[0].text


def test_every_piece_stands_inside_the_axis(in_trace):
    figure = lanes.figure(view(in_trace), "tiled")
    lowest = min(y for trace in figure.data for y in trace.y if y is not None)
    assert figure.layout.yaxis.range[0] == pytest.approx(lowest - lanes.ROW / 2)


def test_without_a_trace_it_says_so(in_simulation):
    for label in ("tiled", "nothing"):
        figure = lanes.figure(view(in_simulation), label)
        assert not figure.data
        assert "No request of this variant was traced" in figure.layout.annotations[0].text
