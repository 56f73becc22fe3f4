"""Actions of a reader: choose variants and shapes, open lines, print."""

from dataclasses import replace

import pytest

from reports import render
from tests.reports.profiles_by_hand import SHAPE, SMALL, only, profile

pytestmark = pytest.mark.browser

SOURCE = "section[aria-labelledby=source-0]"
ACCESS = "section[aria-labelledby=access-0]"


@pytest.fixture(scope="module")
def of_trace(in_trace):
    return render(in_trace)


def drawn(visit, plot):
    """The plot, once it is drawn: it is brought into view, and so among the first."""
    visit.page.evaluate(f"{plot}.scrollIntoView()")
    visit.until(f"{plot}.dataset.drawn !== undefined")
    return plot


def test_headings_and_controls_have_names(window, of_trace):
    window.blank()  # the first Tab of a page is pressed below
    visit = window.show(of_trace, waits=False, is_kept=True)
    nameless = visit.page.evaluate(
        "[...document.querySelectorAll('button, select, a, figure, [role=region]')]"
        ".filter(e => !e.closest('.plot') && !(e.getAttribute('aria-label') "
        "|| e.textContent.trim() && e.tagName !== 'SELECT' || e.labels?.length)).length"
    )
    assert nameless == 0
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_lines_that_waste_traffic_say_why(window, of_trace):
    visit = window.show(of_trace, waits=False, is_kept=True)
    visit.until(f"document.querySelector('{SOURCE} table.code') !== null")
    said = visit.page.locator(f"{SOURCE} .reason").all_text_contents()
    assert said == [
        "⚠ Global loads take 32 sectors each instead of 4 (uncoalesced). "
        "Neighbouring lanes are 1 row of A apart.",
        "⚠ Shared loads take 2 wavefronts each instead of 1 (bank conflicts). "
        "Neighbouring lanes are 8 B apart.",
    ]
    shares = visit.page.locator(f"{SOURCE} td.heat:not(.wide)").all_text_contents()
    assert shares == ["10.0 %", "20.0 %", "70.0 %"]


def test_source_shows_markup_as_it_is(window, of_trace):
    visit = window.show(of_trace, waits=False, is_kept=True)
    visit.until(f"document.querySelector('{SOURCE} table.code') !== null")
    assert visit.page.locator(f"{SOURCE} td.text b").count() == 0
    text = visit.page.locator(f"{SOURCE} td.text").first.text_content()
    assert text == "// a kernel <b>of four lines</b>"


def test_a_line_opens_its_machine_code_by_pointer_and_by_key(window, of_trace):
    visit = window.show(of_trace, waits=False, is_kept=True)
    line = visit.page.locator(f"{SOURCE} button.line", has_text="3")
    line.click()
    opened_row = visit.page.locator(f"{SOURCE} tr.sass")
    assert opened_row.locator("tbody code").all_text_contents() == [
        "LDG.E R1, [R2]",
        "STS [R3], R1",
    ]
    line.press("Enter")
    assert opened_row.count() == 0
    assert visit.complaints == []


def test_the_menu_draws_another_request(window, of_trace):
    visit = window.show(of_trace, waits=False, is_kept=True)
    plot = drawn(visit, f"document.querySelector('{ACCESS} .of-variant:not([hidden]) .plot')")
    shown = f"{plot}.data.filter(t => t.visible).at(-1)"
    assert visit.page.evaluate(f"{shown}.name") == "sectors"
    assert visit.page.evaluate(f"{shown}.x.length") == 32  # a column of a matrix
    section = visit.page.locator(f"{ACCESS} .of-variant:visible")
    section.locator(".controls select").select_option(
        label="line 4: load from shared memory, 4 B per lane"
    )
    visit.until(f"{shown}.name === 'banks'")
    assert visit.page.evaluate(f"{shown}.x.length") == 16  # every other bank
    assert set(visit.page.evaluate(f"{shown}.text")) == {"2"}
    section.locator(".controls select").select_option(index=0)
    visit.until(f"{shown}.name === 'sectors'")
    assert visit.complaints == []


def test_a_variant_is_chosen_for_source_and_requests_alike(window, of_trace):
    visit = window.show(of_trace, waits=False)
    visit.page.select_option("#access-variant-0", label="tiled")
    assert visit.page.input_value("#source-variant-0") == "tiled"
    assert visit.count(f"{ACCESS} .of-variant") == 1
    assert visit.page.locator(f"{ACCESS} .of-variant:visible").get_attribute("data-variant") == (
        "tiled"
    )
    visit.until(
        f"document.querySelector('{SOURCE} [role=region]').getAttribute('aria-label')"
        " === 'Source of tiled'"
    )
    assert visit.complaints == []


def test_source_opens_at_its_hottest_line(window, in_trace):
    long = replace(in_trace.listings[-1], source="//\n" * 200 + "hot", lines=(1, 2, 3, 201, 0))
    made = replace(in_trace, listings=(*in_trace.listings[:-1], long))
    visit = window.show(render(only(made, long.label)), waits=False)
    box = "document.querySelector('.source .scroll')"
    visit.until(f"{box}?.querySelectorAll('tbody tr').length === 201")
    place = (
        f"(([row, box]) => row.top >= box.top && row.bottom <= box.bottom)("
        f"[{box}.querySelectorAll('tbody tr')[200], {box}].map(e => e.getBoundingClientRect()))"
    )
    visit.until(place)


CONTRAST = """
() => {
  const light = ([r, g, b]) => {
    const one = (c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * one(r) + 0.7152 * one(g) + 0.0722 * one(b);
  };
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const worst = [];
  for (const element of document.querySelectorAll("body *:not(svg, svg *, script, option)")) {
    const has = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!has || !element.offsetParent || element.closest(".plot")) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    worst.push([ratio, element.className, element.tagName]);
  }
  return worst.sort((one, other) => one[0] - other[0])[0];
}
"""
PAPER_PX = (965, 725)  # Letter across, less margins of 12 mm, at 96 px to the inch
AA = 4.5  # WCAG 2.1, success criterion 1.4.3


def test_text_stands_out_from_what_is_behind_it(window, in_trace, on_gpu):
    few = only(in_trace, "naive-coalesced", "one-block", "vectorized")
    visit = window.show(render(few, recorded=on_gpu), waits=False)
    visit.open_details()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        ratio, *where = visit.page.evaluate(CONTRAST)
        assert ratio >= AA, (scheme, where)


def test_a_link_to_a_section_shows_its_shape(window):
    html = render(only(profile(SHAPE, SMALL), "one-block"))
    visit = window.show(html, fragment="#source-1", waits=False)
    assert visit.page.input_value("#shape") == "2048 × 2048 × 2048"
    assert visit.count("[data-shape='0']") == 0
    visit.until("Math.abs(document.getElementById('source-1').getBoundingClientRect().top) < 200")
    visit.page.select_option("#shape", label="4096 × 4096 × 4096")
    assert visit.page.evaluate("location.hash") == "#source-0"
    visit.page.locator("nav a", has_text="Roofline").click()
    assert visit.page.evaluate("location.hash") == "#roofline-0"


def test_it_prints_without_its_controls(window, in_theory, tmp_path):
    visit = window.show(render(only(in_theory, "tiled")), scheme="dark")
    assert all(visit.count(control) > 0 for control in (".bar", ".toggle"))
    file = tmp_path / "report.pdf"
    visit.page.pdf(path=file, prefer_css_page_size=True)
    assert file.read_bytes().startswith(b"%PDF")
    visit.page.emulate_media(media="print")
    assert [visit.count(control) for control in (".bar", ".toggle", ".skip")] == [0, 0, 0]
    assert visit.count(".controls select") > 0  # which says what a figure shows


# Draws for paper as soon as the first figure is drawn; true of each figure that paper will have.
PRINT_EARLY = """async () => {
  const drawn = () => visible().map((plot) => plot.dataset.drawn !== undefined);
  while (!drawn().some(Boolean)) await nextTask();
  const before = drawn();
  dispatchEvent(new Event("beforeprint"));
  return [before, drawn()];
}"""


def test_all_figures_are_drawn_anew_for_paper(window, of_two_shapes):
    window.blank()
    visit = window.show(of_two_shapes, width=1600, scheme="dark", waits=False, is_kept=True)
    before, on_paper = visit.page.evaluate(PRINT_EARLY)
    assert not all(before)
    assert all(on_paper)
    plot = "document.querySelector('section[aria-labelledby=answer-0] .plot')"
    look = (
        f"[{plot}.querySelector('.main-svg').clientWidth, "
        f"getComputedStyle({plot}.querySelector('.xtick text')).fill]"
    )
    assert visit.page.evaluate(look) == [950, "rgb(27, 31, 36)"]  # dark ink, and not later
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    width, ink = visit.page.evaluate(look)
    assert width > 1000
    assert ink == "rgb(230, 232, 235)"
    assert visit.complaints == []


def test_paper_has_whole_figures_and_tables(window, of_two_shapes):
    visit = window.show(of_two_shapes, width=1600, scheme="dark", waits=False)
    visit.page.set_viewport_size({"width": PAPER_PX[0], "height": PAPER_PX[1]})
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    visit.page.emulate_media(media="print")
    heights = visit.page.evaluate(
        "[...document.querySelectorAll('figure')].filter(f => f.offsetParent)"
        ".map(f => f.getBoundingClientRect().height)"
    )
    assert len(heights) == 5
    assert max(heights) < PAPER_PX[1]
    assert visit.overflow() == 0  # else a browser shrinks all of the page
    assert visit.count("summary") == 0
    told = visit.page.locator(".on-paper:visible").text_content()
    assert told == ("Printed for 4096 × 4096 × 4096 alone; the file also holds 2048 × 2048 × 2048.")
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
