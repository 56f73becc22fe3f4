"""Times of pages: a page is written by a process of its own, and seen once it is drawn."""

import shutil

import pytest

from benchmarks.gallery import EXECUTABLES, browser
from benchmarks.page_speed import Times, line, seconds_to_draw, seconds_to_write

LATE = (
    '<main id="main"><div class="stk"><svg style="display: none"></svg></div></main>'
    "<script>setTimeout(() => { document.querySelector('svg').style.display = ''; }, 200)</script>"
)


def test_a_page_is_written_by_a_process_that_leaves_this_one_as_it_is(tmp_path):
    made = []

    def html():
        made.append(1)
        return "<p>µs</p>"

    wall_s, cpu_s = seconds_to_write(html, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "<p>µs</p>"
    assert made == []
    assert 0 <= cpu_s <= wall_s + 0.1  # clocks of different steps


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="the page was not written"):
        seconds_to_write(lambda: "", tmp_path / "missing" / "page.html")


def test_a_row_has_medians():
    times = Times([3, 1, 2], [0.5], [0.4, 0.3, 0.2], [], 12_345, 1.0)
    assert line("copy", times).split() == ["copy", "2.000", "0.500", "0.300", "12", "1.0"]


@pytest.mark.browser
def test_a_page_is_drawn_when_its_first_figure_is(tmp_path):
    pytest.importorskip("playwright")
    if not any(map(shutil.which, EXECUTABLES)):
        pytest.skip("no Chromium")
    (tmp_path / "page.html").write_text(LATE, encoding="utf-8")
    with browser() as window:
        (drawn_s,) = seconds_to_draw(window, tmp_path / "page.html", has_chart=False)
    assert drawn_s > 0.2  # the figure comes after 200 ms
