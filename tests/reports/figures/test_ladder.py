"""The figure of all rungs: bars, circles, lines and the row that stands out."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from reports import style
from reports.figures import ladder
from reports.figures.ladder_still import drawing
from reports.sections.ladder_rows import rows
from tests.reports.profiles_by_hand import SHAPE, change, foreseen, measured, view

FLOP = 2 * 4096**3


def trace(figure, name):
    return next(one for one in figure.data if one.name == name)


def names(figure):
    return [one.name for one in figure.data if one.name]


def test_a_bar_is_what_the_rung_before_had_and_what_is_gained(on_gpu):
    figure = ladder.figure(view(on_gpu)).plotly()
    light, dark = trace(figure, "measured"), trace(figure, "gained over the rung before")
    first, second = FLOP / 0.459418 / 1e12, FLOP / 0.0685564 / 1e12
    assert light.x[:2] == pytest.approx((first, first))
    assert dark.x[0] is None  # nothing came before
    assert dark.base[1] == pytest.approx(first)
    assert dark.x[1] == pytest.approx(second - first)
    assert list(figure.layout.meta["labels"]) == [
        "naive-uncoalesced", "naive-coalesced", "tiled", "coarsened-1d", "coarsened-2d",
        "vectorized",
    ]  # fmt: skip


def test_what_a_rung_loses_is_an_open_box(on_gpu):
    slower = measured(0.0096 * 2, SHAPE)
    figure = ladder.figure(view(change(on_gpu, "vectorized", measured=slower))).plotly()
    lost = trace(figure, "lost")
    assert lost.base[-1] == pytest.approx(FLOP / 0.0192 / 1e12)
    assert lost.base[-1] + lost.x[-1] == pytest.approx(FLOP / 0.00969676 / 1e12)
    assert lost.marker.color == style.CLEAR
    assert "lost" not in names(ladder.figure(view(on_gpu)).plotly())


def test_predictions_are_circles_beside_measured_bars_alone(on_gpu, in_prediction):
    circles = trace(ladder.figure(view(foreseen(on_gpu))).plotly(), "predicted")
    assert circles.type == "scatter"
    assert circles.x[0] == pytest.approx(FLOP / (0.459418 * 1.1) / 1e12)
    bars = trace(ladder.figure(view(in_prediction)).plotly(), "predicted")
    assert bars.type == "bar"
    assert bars.marker.color == style.CLEAR  # open: nothing was measured


def test_cublas_and_the_peak_are_lines_with_names(on_gpu):
    figure = ladder.figure(view(on_gpu)).plotly()
    assert trace(figure, "cuBLAS 26.5").x[0] == pytest.approx(FLOP / 0.00518697 / 1e12)
    told = [one.text for one in figure.layout.annotations]
    assert told == ["cuBLAS 26.5", "FP32 peak 35.6", "TFLOP/s", "speedup"]


def test_a_row_stands_out(on_gpu):
    figure = ladder.figure(view(on_gpu), "tiled").plotly()
    assert {(one.y0, one.y1) for one in figure.layout.shapes} == {(1.5, 2.5)}  # the third row
    fastest = ladder.figure(view(on_gpu)).plotly()  # none reaches cuBLAS
    assert fastest.layout.shapes[0].y0 == 4.5


def test_hovering_tells_times_and_the_share_of_cublas(on_gpu):
    about = trace(ladder.figure(view(foreseen(on_gpu))).plotly(), "measured").hovertext[-1]
    assert about.split("<br>") == [
        "7 vectorized", "18.3 TFLOP/s measured, 7.512 ms", "16.6 TFLOP/s predicted, 8.26 ms",
        "69.0 % of cuBLAS",
    ]  # fmt: skip


def test_markup_in_a_label_is_literal(on_gpu):
    made = change(on_gpu, "tiled", label="<b>x</b>")
    figure = ladder.figure(view(made)).plotly()
    assert "&lt;b&gt;x" in figure.layout.yaxis.ticktext[2]
    assert "<b>x" not in str(drawing(rows(view(made)), None, "all"))


def test_on_a_telephone_texts_stand_above_bars(on_gpu):
    figure = ladder.figure(view(on_gpu), is_narrow=True).plotly()
    assert figure.layout.yaxis.tickvals[0] < figure.data[0].y[0]
    assert figure.layout.height > ladder.figure(view(on_gpu)).plotly().layout.height


def test_many_rungs_fit_a_screen(on_gpu):
    tiled = on_gpu.records[3]
    more = tuple(replace(tiled, label=f"tiled:tile={n}") for n in range(1, 13))
    made = replace(on_gpu, records=(*on_gpu.records, *more))
    assert ladder.figure(view(made), is_titled=False).plotly().layout.height <= 700


def test_theory_alone_has_ceilings(in_theory):
    figure = ladder.figure(view(in_theory)).plotly()
    assert names(figure)[0] == "theory"
    assert not any(name.startswith("cuBLAS") for name in names(figure))


def test_without_a_rate_the_figure_says_so(in_theory):
    none = tuple(replace(r, theory=None, status="skipped") for r in in_theory.records)
    figure = ladder.figure(view(replace(in_theory, records=none))).plotly()
    assert not figure.data
    assert figure.layout.annotations[0].text == "No rung has a rate at this shape."


@pytest.mark.parametrize(
    ("end", "expected"),
    [(70.2, [0, 10, 20, 30, 40, 50, 60, 70]), (0.9, [0, 0.2, 0.4, 0.6, 0.8])],
)
def test_ticks_are_round_numbers(end, expected):
    assert ladder.ticks(end) == expected


def test_the_still_drawing_has_the_same_rows(on_gpu):
    still = str(drawing(rows(view(foreseen(on_gpu))), "tiled", "all rungs"))
    assert still.count('class="pt"') == 2 * 6  # at two widths
    assert still.count(">18.3<") == 2
    assert still.count("cuBLAS 26.5") == 2


def lines_of(*named):
    """Rows of a chart of which the lines alone matter: name and rate in TFLOP/s."""
    return SimpleNamespace(
        cublas=None, roofs=[(name, 1e12 * rate) for name, rate in named], peak=40e12, rungs=[]
    )


@pytest.mark.parametrize(
    ("is_narrow", "expected"),
    [
        # px of 368: 234 to 350, 86 to 235, and one that begins at its line, 121 to 270
        (True, [0, 1, 2]),
        # px of 720: 474 to 590, 301 to 450, 161 to 310
        (False, [0, 0, 1]),
    ],
)
def test_names_of_lines_stand_in_as_many_rows_as_they_need(is_narrow, expected, monkeypatch):
    monkeypatch.setattr(ladder, "most", lambda _: 37.4e12)
    shown = lines_of(("FP32 peak", 35.6), ("1/3 FP16 peak", 23.7), ("1/3 TF32 peak", 11.9))
    at = ladder.place(14, is_narrow=is_narrow)
    assert ladder.head_rows(shown, at) == expected
    assert ladder.begins_at_line("1/3 TF32 peak 11.9", 0.33, at) is is_narrow
    room_px = ladder.HEAD_PX if is_narrow else 0  # for a third row
    assert ladder.placed(shown, is_narrow=is_narrow).head_px == at.head_px + room_px
