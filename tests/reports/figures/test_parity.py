"""Predicted against counted, one point per counter."""

from reports.figures import parity


def test_without_two_grades_the_figure_says_so(build, in_theory):
    figure = parity.figure(build.view(in_theory))
    assert not figure.data
    assert "two grades" in figure.layout.annotations[0].text


def test_classes_differ_by_colour_and_symbol(build, in_counters):
    figure = parity.figure(build.view(in_counters))
    diagonal, exact, noisy, modelled, key = figure.data
    assert diagonal.x == diagonal.y
    assert len({trace.marker.color for trace in (exact, noisy, modelled)}) == 3
    assert set(noisy.marker.symbol) == {"diamond"}
    assert set(exact.marker.symbol) == {"circle", "circle-open"}  # a warp instruction too many
    assert exact.marker.symbol.count("circle-open") == 1
    assert set(modelled.marker.symbol) == {"square", "square-open"}
    assert key.name == "open: apart, not explained"
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert figure.layout.xaxis.title.text == "counted by hardware, count"
    assert figure.layout.yaxis.title.text == "simulated, count"


def test_hover_has_all_numbers(build, in_counters):
    exact = parity.figure(build.view(in_counters)).data[1]
    (about,) = (one for one in exact.hovertext if "tiled: warp instructions<" in one)
    assert about.split("<br>") == [
        "tiled: warp instructions",
        "smsp__inst_executed.sum",
        "simulated: 4,294,967,296",
        "measured: 4,294,967,297",
        "ratio: 1.00× (−0.000000023 %)",  # 1 / 4,294,967,297
        "exact: apart",
    ]


def test_a_button_shows_the_ratio(build, in_counters):
    counts, ratio = parity.figure(build.view(in_counters)).layout.updatemenus[0].buttons
    assert ratio.args[1]["yaxis.type"] == "linear"
    assert ratio.args[0]["y"][0] == [1, 1]
    assert max(ratio.args[0]["y"][3]) == 1.2  # DRAM writes
    assert counts.args[1]["yaxis.type"] == "log"


def test_without_hardware_theory_is_the_reference(build, in_simulation):
    figure = parity.figure(build.view(in_simulation))
    assert figure.layout.xaxis.title.text == "closed form (theory), count"
    assert figure.layout.yaxis.title.text == "simulated, count"
    assert all(x == y for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True))
