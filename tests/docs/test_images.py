"""The pictures of docs/: one command makes all of them, and pages show all of them."""

import re
import struct

import pytest

pytest.importorskip("playwright")

from benchmarks.gallery import FIGURES, OPENED, PAGES, PARTS, VARIANT, take
from docs.snippets.pages import ROOT, pages
from kernels import find
from toolkit import profile

FOLDER = ROOT / "docs" / "images"
SHOWN = {
    name
    for page in pages()
    for name in re.findall(r"!\[[^]]+\]\([^)]*images/([\w-]+)\.png\)", page.read_text("utf-8"))
}


def test_pages_show_what_one_command_makes():
    assert {path.stem for path in FOLDER.iterdir()} == {*PARTS, *FIGURES, *PAGES} == SHOWN


def size_px(picture):
    """Width and height, from the header of a PNG (its specification, section 11.2.2)."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


@pytest.mark.browser
@pytest.mark.exhaustive  # other tests open the same page
@pytest.mark.parametrize("names", [["source", "access"], ["gap"]])
def test_pictures_are_taken(window, tmp_path, names):
    shown = window.blank()
    shown.set_viewport_size({"width": 1000, "height": 1000})
    made = profile(shapes=["256"], variants=[VARIANT], device="h200", executor="simulate", seed=1)
    take(shown, made, names, tmp_path)
    assert OPENED in find(VARIANT).source  # type: ignore[union-attr]
    for name in names:
        width, height = size_px(tmp_path / f"{name}.png")
        assert 900 < width <= 1000
        assert height > 400  # a part that is not empty
