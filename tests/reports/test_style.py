"""Colours and labels of figures."""

import re

from reports import style
from reports.templating import template
from tests.reports.profiles_by_hand import record_of


def test_labels_are_literal():
    assert style.plain("<b>&") == "&lt;b&gt;&amp;"


def test_no_two_colours_are_equal_so_that_a_script_tells_them_apart():
    assert len(set(style.COLOURS.values())) == len(style.COLOURS)


def test_every_colour_is_one_of_the_style_sheets_in_both_schemes():
    sheets = "".join("".join(template(name).render()) for name in ("kernel.css", "ladder.css"))
    for name, colour in style.COLOURS.items():
        values = re.findall(rf"--{name}: (#\w+);", sheets)
        assert len(values) == 2, name  # light, dark
        light = values[0] if len(values[0]) == 7 else "#" + "".join(2 * c for c in values[0][1:])
        assert light == colour, name


def test_the_chosen_rung_and_cublas_stand_out(on_gpu):
    tiled, cublas = record_of(on_gpu, "tiled"), record_of(on_gpu, "cublas")
    assert style.colour_of(tiled, "tiled") == style.CHOSEN
    assert style.colour_of(tiled, "vectorized") == style.GREY
    assert style.colour_of(cublas, "tiled") == style.LOST
