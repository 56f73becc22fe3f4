"""The pictures of docs/: one command makes all of them, and pages show all of them."""

import re
import struct

import pytest

pytest.importorskip("playwright")

from benchmarks.gallery import FIGURES, ON_TENSOR_CORES, PAGES, SCREENS, SECTIONS, take
from docs.snippets.pages import ROOT, pages
from toolkit import profile

FOLDER = ROOT / "docs" / "images"
SHOWN = {
    name
    for page in pages()
    for name in re.findall(r"!\[[^]]+\]\([^)]*images/([\w-]+)\.png\)", page.read_text("utf-8"))
}


def test_pages_show_what_one_command_makes():
    assert (
        {path.stem for path in FOLDER.iterdir()} == {*SCREENS, *SECTIONS, *FIGURES, *PAGES} == SHOWN
    )


def size_px(picture):
    """Width and height, from the header of a PNG (its specification, section 11.2.2)."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


@pytest.mark.browser
@pytest.mark.exhaustive  # other tests open the same page
@pytest.mark.parametrize(
    ("names", "variants"),
    [
        (["report", "rung", "memory"], ("naive-coalesced", "tiled")),
        (["hierarchy"], ("naive-coalesced", "tiled")),
        (["tensor_roofs"], ON_TENSOR_CORES),
    ],
)
def test_pictures_are_taken(window, tmp_path, names, variants):
    shown = window.blank()
    made = profile(shapes=["256"], variants=variants, device="h200", executor="simulate", seed=1)
    take(shown, made, names, tmp_path)
    for name in names:
        width, height = size_px(tmp_path / f"{name}.png")
        assert 900 < width <= 1280
        assert height > 200  # a part that is not empty
