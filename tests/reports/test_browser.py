"""The page in a browser: offline, without a complaint, every figure drawn, and its controls."""

import itertools

import pytest

from analysis.comparison.runs import compare
from reports import render
from reports.pages.comparison import page
from reports.pages.tuning import page as tuning_page
from tests.reports.browsing import VISIBLE, WIDTHS
from tests.reports.profiles_by_hand import SHAPE, SMALL, change, foreseen, only, profile
from tests.reports.tuned_by_hand import TUNING
from tests.sampling import chosen_of

pytestmark = pytest.mark.browser

FIGURES = 5  # of a measured run at two shapes: nothing was predicted, counted or traced
INK = {"light": "rgb(27, 31, 36)", "dark": "rgb(230, 232, 235)"}
INK_OF_FIRST = "getComputedStyle(document.querySelector('.xtick text')).fill"
AT_ONE_WIDTH = chosen_of(map(pytest.param, [(400,), *WIDTHS]), lambda widths: widths == (400,))


# Other tests look at the page at 400 px further: it comes last. A dark one at 1600 px is drawn in
# test_browser_choices.py.
@pytest.mark.parametrize(
    ("width", "scheme"),
    chosen_of(
        [(width, scheme) for scheme in ("dark", "light") for width in reversed((400, 1000, 1600))],
        lambda case: case == (400, "light"),
    ),
)
def test_every_figure_is_drawn_offline(window, of_two_shapes, width, scheme):
    visit = window.show(of_two_shapes, width=width, scheme=scheme, is_kept=True, is_resized=False)
    assert visit.count(".plot") == FIGURES
    assert visit.page.evaluate(INK_OF_FIRST) == INK[scheme]
    assert visit.complaints == []
    assert visit.fetched() == []
    assert visit.overflow() == 0  # tables scroll in their boxes


def test_the_first_times_are_whole_on_a_telephone(window, of_two_shapes):
    visit = window.show(of_two_shapes, width=400, is_kept=True)
    beyond = visit.page.evaluate(
        "[...document.querySelectorAll('[data-shape=\"0\"] #ladder-0 ~ .scroll td.time')]"
        ".map(cell => cell.getBoundingClientRect().right - "
        "cell.closest('.scroll').getBoundingClientRect().right)"
    )
    assert len(beyond) == 9
    assert max(beyond) <= 0


def test_figures_follow_the_window(window, of_two_shapes):
    visit = window.show(of_two_shapes, width=400, is_kept=True)
    visit.assert_it_fits((400, 1000))  # where the next tests look at it
    assert (
        visit.page.evaluate(
            f"Math.max(...{VISIBLE}.map(p => p.querySelector('.main-svg').clientWidth))"
        )
        > 700
    )


def test_the_selector_shows_the_other_shape(window, of_two_shapes):
    visit = window.show(of_two_shapes, is_kept=True)
    visit.page.select_option("#shape", label="2048 × 2048 × 2048")
    visit.wait()
    assert visit.count("[data-shape='0']") == 0
    assert visit.count("[data-shape='1'] .plot") == FIGURES
    widths = visit.page.evaluate(
        "[...document.querySelectorAll('[data-shape=\"1\"] .plot')]"
        ".map(p => [p.clientWidth, p.querySelector('.main-svg').clientWidth])"
    )
    assert all(drawn == box for box, drawn in widths)
    visit.page.select_option("#shape", label="4096 × 4096 × 4096")
    assert visit.count("[data-shape='0'] .plot") == FIGURES
    assert visit.count("[data-shape='1']") == 0
    assert visit.complaints == []


def test_menus_change_the_figure(window, of_two_shapes):
    visit = window.show(of_two_shapes, is_kept=True)
    accesses = visit.page.locator("section[aria-labelledby=counters-0] figure")
    accesses.locator("select").select_option(label="instructions")
    visit.page.get_by_text("thread-level instructions per element of C").first.wait_for()
    performance = visit.page.locator("section[aria-labelledby=answer-0] figure")
    performance.locator("select").select_option(label="logarithmic")
    visit.until(
        "document.querySelector('[aria-labelledby=answer-0] .plot').layout.xaxis.type === 'log'"
    )
    for figure in (accesses, performance):
        figure.locator("select").select_option(index=0)
    visit.until(
        "document.querySelector('[aria-labelledby=answer-0] .plot').layout.xaxis.type !== 'log'"
    )
    assert visit.complaints == []


def test_all_variants_go_and_come_back_at_once(window, of_two_shapes):
    visit = window.show(of_two_shapes, is_kept=True)
    figure = visit.page.locator("section[aria-labelledby=sizes-0] figure")
    plot = "document.querySelector('section[aria-labelledby=sizes-0] .plot')"
    shown = f"{plot}.data.filter(t => t.meta?.needs && t.visible !== false).map(t => t.name)"
    assert len(visit.page.evaluate(shown)) == 7  # six rungs and cuBLAS
    figure.get_by_role("button", name="none", exact=True).press("Enter")
    visit.until(f"{shown}.length === 0")
    figure.locator("button.toggle", has_text="tiled").press("Enter")
    visit.until(f"{shown}.join() === 'tiled'")
    figure.get_by_role("button", name="all", exact=True).press("Enter")
    visit.until(f"{shown}.length === 7")


def test_figures_take_the_ink_of_another_scheme(window, of_two_shapes):
    visit = window.show(of_two_shapes)
    visit.page.emulate_media(color_scheme="dark")
    visit.until(f"{INK_OF_FIRST} === '{INK['dark']}'")
    assert visit.complaints == []


# The words that a reader sees above the first figure, with the names of the sections.
ABOVE = """(() => {
  const figure = [...document.querySelectorAll("figure")].find((one) => one.offsetParent);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), words = [];
  while (texts.nextNode() && !figure.contains(texts.currentNode)) {
    const { parentElement, textContent } = texts.currentNode;
    const isHidden = !parentElement.offsetParent || parentElement.closest("script, option, .skip");
    if (!isHidden) words.push(...textContent.split(/\\s+/).filter(Boolean));
  }
  return { words, top: figure.getBoundingClientRect().top };
})()"""
MOST_WORDS, SCREEN_PX = 80, 900


@pytest.mark.parametrize(
    "kind",
    chosen_of(
        ["theory", "two shapes", "recorded", "predicted"],
        lambda kind: kind in {"recorded", "predicted"},
    ),
)
def test_the_ladder_stands_before_the_prose(
    window,
    in_theory,
    of_prediction,
    beside_a_record,
    kind,
):
    html = {
        "theory": lambda: render(in_theory),
        "two shapes": lambda: render(foreseen(profile(SHAPE, SMALL, is_measured=True))),
        "recorded": lambda: beside_a_record,
        "predicted": lambda: of_prediction,
    }[kind]()
    visit = window.show(html, width=400, waits=False, is_kept=True)  # lines are shortest there
    above = visit.page.evaluate(ABOVE)
    assert 20 < len(above["words"]) <= MOST_WORDS, " ".join(above["words"])
    assert ("held-out" in above["words"]) == (kind != "theory")
    assert above["top"] < 0.7 * SCREEN_PX


def test_no_section_and_no_figure_is_empty(window, of_prediction):
    visit = window.show(of_prediction, width=400, is_kept=True)
    assert visit.count("figure") > 0
    assert visit.page.evaluate(f"{VISIBLE}.map(p => p.data.length)").count(0) == 0
    bare = (
        "[...document.querySelectorAll('section')].filter(s => s.offsetParent && "
        "!s.querySelector('figure, table, p, li, pre, dl')).map(s => s.textContent.trim())"
    )
    assert visit.page.evaluate(bare) == []
    # without a GPU there are no samples, and nothing leads to them
    assert visit.count("#samples-0") == visit.count("nav a[data-section=samples]") == 0
    assert visit.count("nav a[data-section=gap]") == 1
    rows = visit.page.locator("section[aria-labelledby=answer-0] .plot .ytick text")
    assert "one-block" not in rows.all_text_contents()


def test_the_menu_shows_the_steps_of_another_variant(window, of_prediction):
    visit = window.show(of_prediction, width=400)
    section = visit.page.locator("section[aria-labelledby=gap-0]")
    shown = (
        "document.querySelector('section[aria-labelledby=gap-0] .plot')"
        ".data.find(trace => trace.visible).name"
    )
    assert visit.page.evaluate(shown) == "vectorized"
    section.locator(".controls select").first.select_option(label="coarsened-1d")
    visit.until(f"{shown} === 'coarsened-1d'")
    visit.page.emulate_media(color_scheme="dark")  # drawn anew, and still what was chosen
    ink = "getComputedStyle(document.querySelector('.waterfalllayer .bartext')).fill"
    visit.until(f"{ink} === 'rgb(230, 232, 235)'")
    visit.until(f"{shown} === 'coarsened-1d'")
    assert visit.complaints == []


@pytest.mark.parametrize("is_measured", [True, False])
def test_the_ladders_table_is_whole_at_1400_px(
    window,
    on_gpu,
    beside_a_record,
    is_measured,
):
    html = render(foreseen(on_gpu)) if is_measured else beside_a_record
    visit = window.show(html, width=1400, waits=False, is_kept=True)
    beyond = visit.page.evaluate(
        "[...document.querySelectorAll('#ladder-0 ~ .scroll td.check')]"
        ".map(cell => cell.getBoundingClientRect().right - "
        "cell.closest('.scroll').getBoundingClientRect().right)"
    )
    assert len(beyond) > 5
    assert max(beyond) <= 0


@pytest.mark.exhaustive  # test_memory_levels_fit_their_window_beside_a_recorded_run: a page as full
@pytest.mark.parametrize(
    ("is_timed", "widths"), [(True, (1400, 400)), *itertools.product((False, True), WIDTHS)]
)
def test_predicted_times_fit_their_window_with_everything_open(
    window,
    of_prediction,
    beside_a_record,
    is_timed,
    widths,
):
    html = beside_a_record if is_timed else of_prediction
    visit = window.show(html, width=widths[0], is_resized=False)
    section = "section[aria-labelledby=gap-0]"
    assert visit.count(f"{section} .plot") == 1
    assert visit.count(f"{section} table") == 2  # accuracy, where the time goes
    counters = "section[aria-labelledby=counters-0]"
    closed = visit.count(f"{counters} table")
    visit.open_details()
    assert visit.count(f"{section} table") == 3  # and what bounds and steps rest on
    assert visit.count(f"{counters} table") > closed
    labels = (
        f"[...document.querySelectorAll('{section} .waterfalllayer .bartext')].map(label => "
        "label.getBoundingClientRect().right - "
        "label.closest('.plot').getBoundingClientRect().right)"
    )

    def assert_labels_are_whole():
        beyond = visit.page.evaluate(labels)
        assert len(beyond) == (7 if is_timed else 4)
        assert max(beyond) <= 0

    visit.assert_it_fits(widths, assert_labels_are_whole)


def test_buttons_hide_a_level_and_a_variant(window, of_counters):
    visit = window.show(of_counters, width=400, is_kept=True)
    plot = "document.querySelector('section[aria-labelledby=roofline-0] .plot')"
    shown = f"{plot}.data.filter(t => t.meta?.needs && t.visible !== false).length"
    roof = f"{plot}.data.find(t => t.name.startsWith('shared/L1 ')).visible"

    def button(name):
        figure = visit.page.locator("section[aria-labelledby=roofline-0] figure")
        return figure.get_by_role("button", name=name, exact=True)

    # six rungs at four levels, two of which have no shared memory
    of_texts = 't.meta?.needs?.[0] === "source texts\' ceilings"'
    lines = f"{plot}.data.filter(t => {of_texts} && t.visible !== false)"
    count_of_lines = visit.page.evaluate(f"{lines}.length")
    assert count_of_lines == 4  # one thread per element, tiled, and two coarsened
    assert visit.page.evaluate(shown) == 22 + count_of_lines
    for name, left in (("source texts' ceilings", 22), ("shared memory", 18), ("tiled", 15)):
        button(name).click()
        visit.until(f"{shown} === {left}")
        assert button(name).get_attribute("aria-pressed") == "false"
    button("L1").press("Enter")
    visit.until(f"{shown} === 10")
    assert visit.page.evaluate(roof) is not False  # roofs stay
    for name in ("shared memory", "tiled", "source texts' ceilings", "L1"):
        button(name).press("Enter")
    visit.until(f"{lines}.length === {count_of_lines}")
    assert visit.page.evaluate(shown) == 22 + count_of_lines
    assert visit.complaints == []


at_one_width = pytest.mark.parametrize("widths", AT_ONE_WIDTH)


@at_one_width
def test_a_scorecard_fits_its_window_with_everything_open(window, of_counters, widths):
    visit = window.show(of_counters, width=widths[0], is_resized=False)
    section = "section[aria-labelledby=counters-0]"
    # the overview, and tiled: one is off there
    assert visit.count(f"{section} table") == 1 + 1
    assert visit.page.locator(f"{section} td.bad:visible").first.text_content()[0] in "✗≠"
    visit.open_details()
    assert visit.count(f"{section} table") == 1 + 6
    visit.assert_it_fits(widths)


@at_one_width
def test_memory_levels_fit_their_window_beside_a_recorded_run(
    window,
    in_simulation,
    in_counters,
    widths,
):
    simulated, recorded = (
        only(made, "tiled", "vectorized") for made in (in_simulation, in_counters)
    )
    html = render(simulated, recorded=recorded)
    visit = window.show(html, width=widths[0], scheme="dark", is_resized=False)
    section = "section[aria-labelledby=roofline-0]"
    assert visit.count(f"{section} table") == 0
    visit.page.locator(f"{section} summary").nth(1).click()
    assert visit.count(f"{section} table") == 1
    visit.assert_it_fits(widths)


@at_one_width
def test_a_comparison_fits_its_window(window, in_counters, in_simulation, widths):
    html = page(compare(in_simulation, in_counters))
    visit = window.show(html, width=widths[0], scheme="dark", is_resized=False)
    visit.open_details()
    visit.assert_it_fits(widths)


def test_a_tuning_run_fits_its_window(window):
    visit = window.show(tuning_page(TUNING), width=400)
    visit.assert_it_fits((400,))


def test_markup_runs_nothing(window):
    evil = (
        "</script><img src=x onerror=\"document.title='owned'\"><a href='javascript:alert(1)'>a</a>"
    )
    few = only(profile(is_measured=True), "tiled", "vectorized", "cublas")
    made = change(few, "tiled", label=evil, title=evil, idea=evil)
    visit = window.show(render(made))
    assert visit.page.title() == "SGEMM ladder on NVIDIA GeForce RTX 3090"
    assert visit.page.locator("img, .plot a[*|href^='javascript']").count() == 0
    assert visit.complaints == []
