"""Markdown of docstrings, as Sphinx takes it."""

from docs.docstrings import restructured


def test_tables_become_tables():
    lines = ["Counts.", "", "| a | b |", "|---|:-:|", "| 2*K | one |", "", "More."]
    assert restructured(lines) == [
        "Counts.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - a",
        "     - b",
        r"   * - 2\*K",
        "     - one",
        "",
        "",
        "More.",
    ]


def test_tables_stay_as_deep_as_they_were():
    assert restructured(["  | a |", "  |---|"])[0] == "  .. list-table::"


def test_bars_are_no_substitutions():
    assert restructured(["|A|·|B| and `x | y`"]) == [r"\|A\|·\|B\| and `x | y`"]


def test_examples_stay_as_they_are():
    assert restructured([">>> flags = 1 | 2", "... | 4"]) == [">>> flags = 1 | 2", "... | 4"]
