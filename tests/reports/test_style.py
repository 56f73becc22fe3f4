"""Colours, symbols and labels."""

from dataclasses import replace

from reports import style


def test_rungs_differ_in_colour_and_in_symbol(in_theory):
    looks = style.looks(in_theory).values()
    assert len({look.colour for look in looks}) == 7
    assert len({look.symbol for look in looks}) == 7


def test_parameters_change_the_symbol_and_keep_the_colour(in_theory):
    tiled = in_theory.records[3]
    other = replace(tiled, label="tiled:tile=16")
    looks = style.looks(replace(in_theory, records=(*in_theory.records, other)))
    assert looks["tiled"].colour == looks["tiled:tile=16"].colour
    assert looks["tiled"].symbol != looks["tiled:tile=16"].symbol


def test_a_look_does_not_depend_on_the_other_variants(in_theory):
    alone = replace(in_theory, records=in_theory.records[-1:])
    assert style.looks(alone)["vectorized"] == style.looks(in_theory)["vectorized"]


def test_labels_are_literal():
    assert style.plain("<b>&") == "&lt;b&gt;&amp;"


def test_long_names_are_broken_for_an_axis(in_theory):
    record = replace(in_theory.records[3], label="coarsened-2d-vectorized:bm=128,bn=128")
    lines = style.tick(record).split("<br>")
    assert "".join(lines) == record.label
    assert max(map(len, lines)) <= style.LONGEST_TICK


def test_a_word_without_a_break_is_cut(in_theory):
    lines = style.tick(replace(in_theory.records[3], label="x" * 100)).split("<br>")
    assert max(map(len, lines)) == style.LONGEST_WORD


def test_an_axis_tells_what_was_skipped(in_theory):
    assert style.tick(in_theory.records[0]) == "one-block<br>(skipped)"


def test_sixteen_rungs_differ_in_symbol(in_theory):
    tiled = in_theory.records[3]
    records = tuple(replace(tiled, label=f"rung-{n}", rung=n) for n in range(1, 17))
    looks = style.looks(replace(in_theory, records=records)).values()
    assert len({look.symbol for look in looks}) == 16
