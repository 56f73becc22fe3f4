"""docs/notebook.ipynb does what it shows, and is a page of the site."""

import copy

import nbformat
import pytest

from docs.snippets.notebook import (
    FIGURE,
    NOTEBOOKS,
    code_cells,
    differences,
    executed,
    read,
    text_of,
    write,
)
from docs.snippets.pages import ROOT

(NOTEBOOK,) = NOTEBOOKS


@pytest.fixture(scope="module")
def kept():
    return read(NOTEBOOK)


def test_every_notebook_is_looked_at():
    assert sorted((ROOT / "docs").rglob("*.ipynb")) == sorted(NOTEBOOKS)


@pytest.mark.exhaustive  # other tests call what its cells call
def test_outputs_are_those_of_the_code(kept):
    made = executed(NOTEBOOK)
    drawn = [
        one.data[FIGURE]
        for cell in code_cells(made)
        for one in cell.outputs
        if FIGURE in one.get("data", {})
    ]
    assert len(drawn) == 4
    assert all(figure["data"] for figure in drawn)
    found = list(differences(kept, made))
    assert not found, "\n\n".join(found) + f"\n\npython -m docs.update {NOTEBOOK} writes them anew"


def test_text_is_kept_and_figures_are_not(kept, tmp_path):
    assert text_of(code_cells(kept)[0]) == ("256",)  # K/16 of 4096
    cell = code_cells(kept)[0]
    cell.outputs.append(nbformat.v4.new_output("display_data", data={FIGURE: {"data": []}}))
    write(kept, tmp_path / "one.ipynb")
    assert read(tmp_path / "one.ipynb") == read(NOTEBOOK)


def test_another_number_is_a_difference(kept):
    other = copy.deepcopy(kept)
    code_cells(other)[0].outputs[0].text = "257\n"
    (said,) = differences(kept, other)
    assert said.startswith("code cell 1: ")
    assert said.endswith("shown:\n256\nprinted:\n257")
