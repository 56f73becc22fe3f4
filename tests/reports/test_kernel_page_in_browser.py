"""The page of one launch in a browser: three widths, two schemes, keyboard, print, no script."""

import pytest

from tests.reports.launches import CASES, LAUNCHES, executed, page_of
from tests.sampling import chosen_of

pytestmark = pytest.mark.browser

WIDTHS = (1440, 900, 700, 400)
READ_AT = (1440, 400)  # px: where each text's contrast is taken
LEAST_CONTRAST = 4.5  # WCAG 2, AA
LEAST_TARGET_PX, LEAST_TEXT_PX = 31.5, 11.5
MOST_WORDS, LONGEST_SENTENCE = 60, 20
PRINTED_PX = 718  # A4 with margins of 1 cm at 96 px per inch

# What a reader cannot read or reach, by kind; all lists are empty on a good page.
LAYOUT = """() => {
  const shown = (e) => e.getClientRects().length > 0 && e.checkVisibility();
  const all = (s, of = document) => [...of.querySelectorAll(s)].filter(shown);
  const words = (e) => e.textContent.trim().slice(0, 40);
  const right = document.documentElement.clientWidth + 1;
  const box = (e) => e.getBoundingClientRect();
  const drawings = all("svg").filter((s) => !s.parentElement.closest("svg"));
  const texts = (s) => all("text", s).filter((t) => !t.getAttribute("transform"));
  const overlaps = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 4 && b.top < a.bottom - 4;
  return {
    beyond: all("main *").filter((e) => !e.closest("svg, pre") && box(e).right > right).map(words),
    small: all("button, summary, select, input, nav a")
      .filter((e) => box(e).height < LEAST_TARGET_PX).map(words),
    tiny: all("svg text, td, th, p, li, a").filter((e) => {
      const svg = e.closest("svg[viewBox]");
      const scale = svg ? box(svg).width / svg.viewBox.baseVal.width : 1;
      return scale * parseFloat(getComputedStyle(e).fontSize) < LEAST_TEXT_PX;
    }).map(words),
    clipped: drawings.flatMap((s) => texts(s).filter((t) => {
      const [inner, outer] = [box(t), box(s)];
      return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
    }).map(words)),
    cut: all("svg.stack > svg").flatMap((s) => texts(s).filter(
      (t) => box(t).right > box(s.querySelector("rect")).right + 1).map(words)),
    overlapping: drawings.flatMap((s) => texts(s).map((t) => [t, box(t)])
      .flatMap(([t, of], k, all) => all.slice(k + 1).filter(([, other]) => overlaps(of, other))
        .map(([o]) => words(t) + " | " + words(o)))),
    empty: all("figure").filter((f) => !f.innerText.trim() && !f.querySelector("svg")).map(words),
    long: all(".v").map(words).filter((t) => {
      const digits = t.replace(/^[^1-9]*/, "").replace(/\\D/g, "");
      return digits.length > 3 && !/^\\d{3}0*$/.test(digits);
    }),
  };
}""".replace("LEAST_TARGET_PX", str(LEAST_TARGET_PX)).replace("LEAST_TEXT_PX", str(LEAST_TEXT_PX))

# Text whose contrast with what is behind it is too low. Behind text of a drawing is the last shape
# that was painted before it and holds its middle, or its own halo.
CONTRAST = """() => {
  const rgb = (s) => [...s.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = rgb(getComputedStyle(at).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((below, c) => over(c, below), [255, 255, 255, 1]);
  };
  const known = new Map(); // by drawing: its shapes that paint something, their boxes and colours
  const shapesOf = (svg) => known.get(svg) ?? known.set(svg,
    [...svg.querySelectorAll("rect")].filter((r) => !r.closest("defs")).map((r) => {
      const { fill, fillOpacity } = getComputedStyle(r);
      return { r, fill, isPainted: Number(fillOpacity) && !/, 0\\)$/.test(fill),
        box: r.getBoundingClientRect() };
    }).filter(({ fill, isPainted }) => isPainted && fill.startsWith("rgb"))).get(svg);
  const painted = (text, svg) => {
    const style = getComputedStyle(text);
    if (style.stroke !== "none" && style.paintOrder.startsWith("stroke")) return rgb(style.stroke);
    const b = text.getBoundingClientRect(), x = (b.left + b.right) / 2, y = (b.top + b.bottom) / 2;
    const below = shapesOf(svg).filter(({ r, box: c }) => r.compareDocumentPosition(text) & 4
      && c.left <= x && x <= c.right && c.top <= y && y <= c.bottom);
    return below.length ? rgb(below.at(-1).fill) : behind(svg.parentElement);
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, words = walker.currentNode.textContent.trim();
    if (!words || ["SCRIPT", "STYLE", "title"].includes(e.tagName) || !e.getClientRects().length)
      continue;
    const text = e.closest("text"), style = getComputedStyle(e);
    let svg = e.closest("svg");
    while (svg && svg.parentElement.closest("svg")) svg = svg.parentElement.closest("svg");
    const back = text ? painted(text, svg) : behind(e);
    const [a, b] = [over(rgb(text ? style.fill : style.color), back), back].map(luminance);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < LEAST_CONTRAST) found.push([words.slice(0, 40), contrast]);
  }
  return found;
}""".replace("LEAST_CONTRAST", str(LEAST_CONTRAST))

FIRST_SCREEN = """() => {
  const figure = document.querySelector("figure.first"), range = document.createRange();
  range.setStart(document.getElementById("main"), 0);
  range.setEndBefore(figure);
  const told = [...document.querySelectorAll(".verdict, h1, h2, .why, .rem p")];
  const sentences = told.filter((e) => e.getBoundingClientRect().top < innerHeight)
    .flatMap((e) => e.innerText.split(/[.;:] /)).map((s) => s.trim().split(/\\s+/).length);
  return {
    words: range.toString().trim().split(/\\s+/).length,
    top: figure.getBoundingClientRect().top + scrollY,
    longest: Math.max(...sentences),
    below: [...document.querySelectorAll(".verdict, .stk, .src .hot, .rem li:first-child")]
      .map((e) => e.getBoundingClientRect().bottom).filter((y) => y > innerHeight),
  };
}"""


def seen_at(visit, width, scheme):
    visit.page.set_viewport_size({"width": width, "height": 900})
    visit.page.emulate_media(color_scheme=scheme, media="screen")
    return visit


# Pages with all kinds of parts: a long name, markup, parts that are missing. The others have the
# parts of these with other numbers and other sources.
SAMPLE = ("long name", "markup", "both", "no lines")


@pytest.mark.parametrize("name", chosen_of([*LAUNCHES, *CASES], lambda name: name in SAMPLE))
def test_it_is_readable_at_each_width_in_both_schemes(window, name):
    visit = window.show(page_of(name), width=1440, waits=False)
    for width in WIDTHS:
        seen_at(visit, width, "light")
        assert visit.overflow() == 0, width
        found = visit.page.evaluate(LAYOUT)
        assert not any(found.values()), (width, found)
        first = visit.page.evaluate(FIRST_SCREEN)
        assert first["words"] <= MOST_WORDS
        assert first["longest"] <= LONGEST_SENTENCE
        assert first["top"] <= 450  # half of the screen
        assert width != 1440 or first["below"] == []
        assert width not in READ_AT or visit.page.evaluate(CONTRAST) == [], width
    for width in reversed(READ_AT):
        assert seen_at(visit, width, "dark").page.evaluate(CONTRAST) == [], width
    assert visit.complaints == []
    assert visit.fetched() == []


def test_details_fit_too(window):
    visit = window.show(page_of("remedies"), width=1440, waits=False)
    visit.open_details()
    for width in WIDTHS:
        seen_at(visit, width, "light")
        assert visit.overflow() == 0, width
        assert not any(visit.page.evaluate(LAYOUT).values()), visit.page.evaluate(LAYOUT)


LONG_LIST = """() => {
  const cell = document.querySelector("td.list:not([data-e=''])");
  cell.textContent = "4.63 (ideal 1.81), 4.92 (ideal 1.77), 4.64 (ideal 1.81), 36 more";
}"""
TALLEST_ROW = """() => Math.max(...[...document.querySelectorAll("table.sort tr")]
  .map((row) => row.getBoundingClientRect().height))"""


def test_a_line_with_many_accesses_leaves_room_for_its_code(window):
    visit = window.show(page_of("transpose"), width=1440, waits=False)
    visit.page.evaluate(LONG_LIST)
    for width in WIDTHS:
        seen_at(visit, width, "light")
        assert visit.overflow() == 0, width
        assert visit.page.evaluate(TALLEST_ROW) < 300, width  # not a character per line of text


def test_it_is_used_with_a_keyboard(window):
    visit = window.show(page_of("transpose"), width=1440, waits=False)
    keyboard = visit.page.keyboard
    focused = "document.activeElement.textContent"
    keyboard.press("Tab")
    assert visit.page.evaluate(focused) == "Skip to report"
    keyboard.press("Tab")
    assert visit.page.evaluate(focused) == "Summary"
    links = visit.page.evaluate("[...document.querySelectorAll('nav a')].map(a => a.hash)")
    assert len(links) == 7
    assert visit.page.evaluate(f"{links}.every(id => document.querySelector(id))")
    visit.page.focus("#code summary")
    keyboard.press("Enter")
    assert visit.page.is_visible(".sass")


def test_a_title_of_the_lines_sorts_them(window):
    visit = window.show(page_of("transpose"), width=1440, waits=False)
    numbers = "[...document.querySelectorAll('#lines .ln')].map(c => +c.dataset.v)"
    before = visit.page.evaluate(numbers)
    costs = executed("transpose").predicted.lines
    assert before[0] == max(costs, key=lambda one: one.time_s if one.line else 0).line
    visit.page.click("#lines th:first-child button")
    assert visit.page.evaluate(numbers) == sorted(before, reverse=True)
    visit.page.click("#lines th:first-child button")
    assert visit.page.evaluate(numbers) == sorted(before)
    assert visit.page.get_attribute("#lines th:first-child", "aria-sort") == "ascending"


def test_it_prints(window):
    visit = window.show(page_of("remedies"), width=PRINTED_PX, waits=False)
    visit.page.emulate_media(media="print", color_scheme="light")
    assert visit.overflow() == 0
    assert visit.count(".top") == 0
    assert visit.count("svg.stack:not(svg svg)") >= 2
    assert visit.count("#units svg") == 2
    assert visit.count(".src .hot") == 1
    assert len(visit.page.pdf(format="A4")) > 10_000


def test_nothing_is_missing_without_scripts(window, tmp_path):
    page = window.show(page_of("remedies"), width=1440, waits=False).page
    told = "document.getElementById('main').innerText.replace(/\\s+/g, ' ')"
    drawn = "document.querySelectorAll('svg').length"
    with_scripts = page.evaluate(told), page.evaluate(drawn)
    file = tmp_path / "page.html"
    file.write_text(page_of("remedies"), encoding="utf-8")
    context = page.context.browser.new_context(
        java_script_enabled=False, viewport={"width": 1440, "height": 900}
    )
    try:
        other = context.new_page()
        other.goto(file.as_uri())
        assert (other.evaluate(told), other.evaluate(drawn)) == with_scripts
    finally:
        context.close()


def test_markup_in_a_source_stays_text(window):
    visit = window.show(page_of("markup"), width=1440, waits=False)
    assert visit.count("b:text-is('bold')") == 0
    assert visit.page.evaluate("document.images.length") == 0
    assert "</script><b>&amp; </style>" in visit.page.inner_text(".src .hot")
    assert visit.complaints == []
    assert visit.fetched() == []
