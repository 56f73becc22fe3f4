"""docs/notebook.ipynb does what it shows, and is a page of the site."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from docs.snippets.notebook import (
    NOTEBOOKS,
    code_cells,
    differences,
    executed,
    figures_of,
    is_same,
    read,
    text_of,
)
from docs.snippets.pages import ROOT

(NOTEBOOK,) = NOTEBOOKS


@pytest.fixture(scope="module")
def kept() -> Any:
    return read(NOTEBOOK)


def test_every_notebook_is_looked_at() -> None:
    assert sorted((ROOT / "docs").rglob("*.ipynb")) == sorted(NOTEBOOKS)


@pytest.mark.exhaustive  # other tests call what its cells call
def test_outputs_are_those_of_the_code(kept: Any) -> None:
    found = list(differences(kept, executed(NOTEBOOK)))
    assert not found, "\n\n".join(found) + f"\n\npython -m docs.update {NOTEBOOK} writes them anew"


def test_code_shows_figures_and_text(kept: Any) -> None:
    figures = [figure for cell in code_cells(kept) for figure in figures_of(cell)]
    assert len(figures) == 3
    assert all(figure["data"] for figure in figures)
    assert text_of(code_cells(kept)[0]) == ("256",)  # K/16 of 4096


def test_another_number_is_a_difference(kept: Any) -> None:
    other = copy.deepcopy(kept)
    code_cells(other)[0].outputs[0].text = "257\n"
    (said,) = differences(kept, other)
    assert said.startswith("code cell 1: ")
    assert said.endswith("shown:\n256\nprinted:\n257")


def test_another_figure_is_a_difference(kept: Any) -> None:
    other = copy.deepcopy(kept)
    (drawn,) = [cell for cell in code_cells(other) if "go.Figure" in cell.source]
    drawn.outputs[0].data["application/vnd.plotly.v1+json"]["data"][0]["y"][0] += 1
    (said,) = differences(kept, other)
    assert "another figure" in said


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-9, True),
        (1.0, 1.001, False),
        (1, 1.0, True),
        ([1.0], [1.0, 2.0], False),
        ({"a": [1.0]}, {"a": [1.0 + 1e-9]}, True),
        ({"a": 1}, {"b": 1}, False),
        ("a", "b", False),
        (None, 0.0, False),
    ],
)
def test_figures_are_the_same_up_to_rounding(one: object, other: object, same: bool) -> None:
    assert is_same(one, other) is same
