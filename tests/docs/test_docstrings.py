"""Markdown of docstrings, as Sphinx takes it, and how docstrings begin."""

import re

import pytest

from docs.docstrings import restructured
from docs.snippets.pages import ROOT

# A docstring names its subject, or begins with a verb.
QUESTION = re.compile(
    r'^\s*"""(?:What|Whether|Who|Whose|Which|How|Where|When|Why|Whatever|Whoever)\b.*', re.M
)
FOLDERS = ("analysis", "benchmarks", "kernels", "reports", "toolkit", "validation")


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


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_word_of_a_question(folder):
    paths = ROOT.joinpath(folder).rglob("*.py")
    found = {str(path): QUESTION.findall(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: lines for path, lines in found.items() if lines} == {}
