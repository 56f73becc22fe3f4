"""The page of the ladder in a browser: devices, widths, schemes, keyboard, print."""

from dataclasses import replace
from functools import cache

import pytest

from reports import render
from tests.reports.profiles_by_hand import SHAPE, SMALL, change, foreseen, profile, with_ceilings
from tests.reports.test_kernel_page_in_browser import (
    CONTRAST,
    FIRST_SCREEN,
    LAYOUT,
    LONGEST_SENTENCE,
    MOST_WORDS,
    PRINTED_PX,
    READ_AT,
    seen_at,
)
from tests.sampling import exhaustive
from toolkit.store.recorded_runs import recorded_run

pytestmark = pytest.mark.browser

WIDTHS = (1440, 900, 400)
SCREEN_PX = 900
INK = "getComputedStyle(document.querySelector('.rows .yaxislayer-above text')).fill"
INKS = {"light": "rgb(21, 24, 30)", "dark": "rgb(233, 236, 241)"}
CHOSEN = "document.querySelector('#pane h2').textContent"
ROW = """(label) => {
  const plot = document.querySelector(".rows .plot"), { margin, height } = plot.layout;
  const labels = plot.layout.meta.labels, box = plot.getBoundingClientRect();
  const rowPx = (height - margin.t - margin.b) / labels.length;
  return [box.left + 60, box.top + margin.t + rowPx * (labels.indexOf(label) + 0.5)];
}"""


def at(visit, width):
    """The page at a width, once the chart has followed it."""
    seen_at(visit, width, "light")
    visit.until(
        "(p => p.dataset.narrow === String(p.clientWidth < NARROW)"
        " && p.querySelector('.main-svg').clientWidth === p.clientWidth)"
        "(document.querySelector('.rows .plot'))"
    )


@pytest.fixture(scope="module")
def pages(in_trace, in_theory, on_gpu):
    """Pages of profiles on three devices: measured, recorded and predicted, and by theory."""

    def recorded(key):
        run = recorded_run(key)
        shape = next(r.shape for r in run.records if r.shape.m == 4096)
        return render(replace(run, records=tuple(r for r in run.records if r.shape == shape)))

    make = {
        "rtx-3090": lambda: render(foreseen(in_trace), recorded=on_gpu),
        "theory": lambda: render(in_theory),
        "shapes": lambda: render(with_ceilings(foreseen(profile(SHAPE, SMALL, is_measured=True)))),
        "h100-sxm": lambda: recorded("h100-sxm"),
        "h200": lambda: recorded("h200"),
    }
    return cache(lambda name: make[name]())


@pytest.mark.parametrize("name", ["h200", *map(exhaustive, ("rtx-3090", "h100-sxm", "theory"))])
def test_it_is_readable_at_each_width_in_both_schemes(window, pages, name):
    visit = window.show(pages(name), width=1440)
    for width in WIDTHS:
        at(visit, width)
        assert visit.overflow() == 0, width
        found = visit.page.evaluate(LAYOUT)
        assert not any(found.values()), (width, found)
        first = visit.page.evaluate(FIRST_SCREEN)
        assert first["words"] <= MOST_WORDS
        assert first["longest"] <= LONGEST_SENTENCE
        assert first["top"] <= SCREEN_PX / 2
        if width == 1440:
            low = "[...document.querySelectorAll('.first, .pane')]"
            bottoms = visit.page.evaluate(f"{low}.map(e => e.getBoundingClientRect().bottom)")
            assert max(bottoms) <= SCREEN_PX
        assert width not in READ_AT or visit.page.evaluate(CONTRAST) == [], width
    for width in reversed(READ_AT):
        seen_at(visit, width, "dark")
        visit.until(f"{INK} === '{INKS['dark']}'")
        assert visit.page.evaluate(CONTRAST) == [], width
    assert visit.complaints == []
    assert visit.fetched() == []


def test_arrow_keys_choose_a_rung(window, pages):
    visit = window.show(pages("h200"), width=1440)
    before = visit.page.evaluate(CHOSEN)
    visit.page.focus(".rows")
    visit.page.keyboard.press("ArrowDown")
    after = visit.page.evaluate(CHOSEN)
    assert after != before
    assert visit.page.get_attribute(".options [aria-selected=true]", "id") == (
        visit.page.get_attribute(".rows", "aria-activedescendant")
    )
    assert after.split()[1] in visit.page.url
    assert after.split()[1] in visit.page.inner_text("#time h2")
    visit.page.keyboard.press("ArrowUp")
    assert visit.page.evaluate(CHOSEN) == before
    visit.page.keyboard.press("Home")
    assert visit.page.evaluate(CHOSEN).startswith("2")


def test_links_to_sections_that_the_chosen_rung_lacks_are_hidden(window, in_trace):
    made = change(foreseen(in_trace), "tiled", simulated=None)
    visit = window.show(render(made), width=1440)
    links = "[...document.querySelectorAll('nav a')].filter(a => !a.hidden).map(a => a.hash)"
    full = visit.page.evaluate(links)
    assert full == ["#summary", "#time", "#roof", "#memory", "#lines", "#trust", "#more"]
    visit.page.mouse.click(*visit.page.evaluate(ROW, "tiled"))
    visit.until(f"{CHOSEN}.includes('tiled')")
    left = visit.page.evaluate(links)
    assert left != full
    assert all(visit.page.query_selector(one) for one in left)
    visit.page.mouse.click(*visit.page.evaluate(ROW, "vectorized"))
    visit.until(f"{CHOSEN}.includes('vectorized')")
    assert visit.page.evaluate(links) == full


def test_a_click_on_a_row_chooses_its_rung(window, pages):
    for width in (1440, 400):
        visit = window.show(pages("h200"), width=width)
        visit.page.mouse.click(*visit.page.evaluate(ROW, "tiled"))
        assert visit.page.evaluate(CHOSEN).split() == ["4", "tiled"]
        marked = "document.querySelector('.rows .plot').layout.shapes[0].y0"
        visit.until(f"{marked} === 1.5")  # the third row


@pytest.mark.parametrize("rungs", [3, exhaustive(18)])
def test_every_rung_has_a_pane_that_fits(window, pages, rungs):
    visit = window.show(pages("h200"), width=400)
    visit.page.focus(".rows")
    visit.page.keyboard.press("Home")
    for _ in range(rungs):
        visit.page.keyboard.press("ArrowDown")
        assert visit.overflow() == 0, visit.page.evaluate(CHOSEN)
        found = visit.page.evaluate(LAYOUT)
        assert not any(found.values()), (visit.page.evaluate(CHOSEN), found)
    assert visit.complaints == []


def test_a_link_names_a_rung(window, pages):
    visit = window.show(pages("h200"), width=1440, fragment="#rung=tiled")
    visit.until(f"{CHOSEN}.includes('tiled')")


def test_figures_below_are_drawn_when_they_are_opened(window, pages):
    visit = window.show(pages("h200"), width=1440)
    assert visit.page.locator(".js-plotly-plot").count() == 1
    visit.open_details()
    visit.wait()
    assert visit.page.locator(".js-plotly-plot").count() == 3  # roofline and samples
    lines = "[...document.querySelectorAll('.drawing .plot')].at(-1).data"
    chosen = "getComputedStyle(document.documentElement).getPropertyValue('--gain').trim()"
    shown = f"{lines}.filter(t => t.line.color === {chosen} && t.meta).map(t => t.name).join()"
    assert visit.page.evaluate(shown) == visit.page.evaluate(CHOSEN).split()[1]
    visit.page.focus(".rows")
    visit.page.keyboard.press("Home")
    visit.until(f"{shown} === 'naive-uncoalesced'")
    for width in (900, 400):
        at(visit, width)
        assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.exhaustive
def test_another_shape_keeps_the_chosen_rung(window, pages):
    visit = window.show(pages("shapes"), width=1440)
    visit.page.mouse.click(*visit.page.evaluate(ROW, "tiled"))
    visit.page.select_option("#shape", label="2048 × 2048 × 2048")
    visit.until("document.querySelector('h1').textContent.includes('2048')")
    visit.until(f"{CHOSEN}.includes('tiled')")
    visit.wait()
    assert visit.page.locator(".rows .js-plotly-plot").count() == 1
    visit.page.select_option("#shape", index=0)
    visit.until("document.querySelector('h1').textContent.includes('4096')")
    assert visit.complaints == []


@pytest.mark.exhaustive  # both are read above
def test_the_figure_takes_the_colours_of_another_scheme(window, pages):
    visit = window.show(pages("h200"), width=1440)
    assert visit.page.evaluate(INK) == INKS["light"]
    visit.page.emulate_media(color_scheme="dark")
    visit.until(f"{INK} === '{INKS['dark']}'")


@pytest.mark.exhaustive  # so does one of the page of a launch
def test_a_title_of_a_table_sorts_it(window, pages):
    visit = window.show(pages("h200"), width=1440)
    visit.open_details()
    numbers = (
        "[...document.querySelectorAll('#more .cards tbody td:first-child')].map(c => +c.dataset.v)"
    )
    before = visit.page.evaluate(numbers)
    visit.page.click("#more .cards th:first-child button")
    assert visit.page.evaluate(numbers) == sorted(before, reverse=True)


@pytest.mark.exhaustive  # the page of a launch is printed
def test_it_prints_the_still_drawing(window, pages):
    visit = window.show(pages("h200"), width=PRINTED_PX)
    visit.page.focus(".rows")
    visit.page.keyboard.press("Home")
    visit.page.emulate_media(media="print", color_scheme="light")
    assert visit.overflow() == 0
    assert visit.count(".top") == 0
    assert visit.count(".rows .plot") == 0
    assert visit.count(".still svg") == 1
    top = "document.querySelector('.still .nar .sel').getBoundingClientRect().top"
    first = "document.querySelector('.still .nar svg').getBoundingClientRect().top"
    assert visit.page.evaluate(f"{top} - {first}") == pytest.approx(56, abs=2)  # the first row
    assert len(visit.page.pdf(format="A4")) > 10_000


@pytest.mark.exhaustive  # as on the page of a launch
def test_nothing_of_the_first_rung_is_missing_without_scripts(window, pages, tmp_path):
    page = window.show(pages("h200"), width=1440).page
    pane = page.inner_text("#pane")
    file = tmp_path / "page.html"
    file.write_text(pages("h200"), encoding="utf-8")
    context = page.context.browser.new_context(
        java_script_enabled=False, viewport={"width": 1440, "height": 900}
    )
    try:
        other = context.new_page()
        other.goto(file.as_uri())
        assert other.locator("#pane").inner_text() == pane
        assert other.locator(".still svg:visible text", has_text="tall-thread-tile").count() == 1
        assert other.evaluate(LAYOUT)["overlapping"] == []
        assert "needs" not in other.locator("noscript").inner_text()
    finally:
        context.close()


def test_the_first_figure_is_drawn_soon(window, pages):
    """The still drawing is there with the first paint, before Plotly is unpacked."""
    visit = window.show(pages("h200"), width=1440, waits=False)
    assert visit.page.locator(".still svg, .rows .js-plotly-plot").count() > 0


@pytest.mark.exhaustive  # nor does markup in a page of a launch
def test_markup_in_labels_runs_nothing(window, on_gpu):
    evil = "</script><img src=x onerror=\"document.title='owned'\"><b>x"
    made = change(foreseen(on_gpu), "tiled", label=evil, title=evil, idea=evil)
    visit = window.show(render(made), width=1440)
    visit.page.mouse.click(*visit.page.evaluate(ROW, evil))
    assert visit.page.inner_text("#pane h2").endswith("<b>x")
    assert visit.page.title().startswith("SGEMM ladder on GeForce RTX 3090")
    assert visit.page.locator("img").count() == 0
    assert visit.complaints == []
