"""Sectors and wavefronts against the least that could do."""

from dataclasses import replace

from reports.figures import patterns


def lane(figure, name, axis="x"):
    return next(t for t in figure.data if t.name == name and t.xaxis == axis)


def test_uncoalesced_loads_ask_for_eight_times_the_ideal(build, in_theory):
    found = lane(patterns.figure(build.view(in_theory)), "naive-uncoalesced load A")
    assert list(found.x) == [4, 32]  # 128 B in 4 sectors; a column touches 32
    assert list(found.marker.symbol) == ["circle-open", "circle"]
    assert "32 sectors, ideal 4" in found.hovertext[0]
    assert "8.00× the ideal" in found.hovertext[0]


def test_shared_accesses_stand_in_a_panel_of_their_own(build, in_theory):
    figure = patterns.figure(build.view(in_theory))
    found = lane(figure, "vectorized store A", "x2")
    assert list(found.x) == [1, 4]
    assert figure.layout.xaxis.title.text == "sectors per global request"
    assert figure.layout.xaxis2.title.text == "wavefronts per shared access"
    assert list(figure.layout.yaxis2.ticktext) == [
        "tiled", "coarsened-1d", "coarsened-2d", "vectorized",
    ]  # fmt: skip
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]


def test_rungs_without_shared_memory_have_one_panel(build, in_theory):
    naive = tuple(r for r in in_theory.records if r.label.startswith("naive"))
    figure = patterns.figure(build.view(replace(in_theory, records=naive)))
    assert "xaxis2" not in figure.layout
    assert figure.layout.yaxis.domain == (0, 1)


def test_the_legend_names_only_what_occurs(build, in_theory):
    figure = patterns.figure(build.view(in_theory))
    legend = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert legend == ["load A", "load B", "store A", "store B", "store C", "ideal"]


def test_no_patterns(build, in_theory):
    assert not patterns.figure(build.view(replace(in_theory, records=()))).data
