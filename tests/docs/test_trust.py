"""docs/trust.md sums up docs/validation.md: what it says of errors stands there."""

import re

from docs.snippets.pages import ROOT

FIGURE = re.compile(r"\b\d+(?:\.\d+)?%|\b\d+ (?:of \d+ )?launches|45,000")
TRUST, VALIDATION = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("trust.md", "validation.md")
)


def test_figures_are_those_of_the_validation():
    tables = "\n".join(line for line in TRUST.splitlines() if line.startswith("|"))
    figures = {figure for figure in FIGURE.findall(tables) if figure != "95%"}  # of an interval
    assert len(figures) > 12
    assert {figure for figure in figures if figure.partition(" of ")[0] not in VALIDATION} == set()
