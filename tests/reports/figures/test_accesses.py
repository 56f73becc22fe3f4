"""Access counts per element of C."""

from reports.figures import accesses
from tests.reports.profiles_by_hand import view

RUNGS = 6  # one-block is skipped at 4096


def test_floats_per_element_of_c(in_theory):
    loads, stores, shared_loads, shared_stores = accesses.figure(view(in_theory)).data
    assert loads.name == "global loads"
    assert loads.x[1] == 8192  # naive: 2K
    assert loads.x[2] == 256  # tiled: K/16
    assert loads.x[5] == 64  # vectorized: K/64
    assert set(stores.x) == {1}
    assert shared_loads.x[2] == 8192  # tiled: 2K
    assert shared_loads.x[4] == 1024  # 2D: K/4
    assert shared_stores.x[2] == 256  # as many as global loads


def test_a_log_axis_shows_no_zero(in_theory):
    figure = accesses.figure(view(in_theory))
    assert figure.data[2].x[:2] == (None, None)
    assert figure.layout.xaxis.type == "log"


def test_a_button_changes_to_instructions(in_theory):
    floats, instructions = accesses.figure(view(in_theory)).layout.updatemenus[0].buttons
    assert floats.args[0]["x"][0][5] == 64
    assert instructions.args[0]["x"][0][5] == 16  # K/256: four floats an instruction
    assert instructions.args[1] == {
        "xaxis.title.text": "thread-level instructions per element of C"
    }


def test_hover_tells_totals(in_theory):
    about = accesses.figure(view(in_theory)).data[0].hovertext
    assert len(about) == RUNGS
    assert "8,192 floats per element of C" in about[1]
    assert "1.374 × 10¹¹ floats in all" in about[1]  # 2·4096³


def test_series_differ_in_more_than_colour(in_theory):
    series = {
        (bar.marker.color, bar.marker.pattern.shape)
        for bar in accesses.figure(view(in_theory)).data
    }
    assert len(series) == 4
    assert len({hatch for _, hatch in series}) == 2
