"""The page in a browser: offline, without a complaint, every figure drawn."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.comparison import compare
from analysis.result import Profile
from reports import render
from reports.comparison import page
from reports.tuning import page as tuning_page

sys.path.append(str(Path(__file__).parent))
from browsing import VISIBLE, Visit, window
from tuned_by_hand import SHAPE, TUNING, UNMEASURED

__all__ = ["window"]

pytestmark = pytest.mark.browser

FIGURES = 13  # of a measured run at two shapes: nothing was predicted, counted or traced


@pytest.fixture
def two_shapes(build: SimpleNamespace, tmp_path: Path) -> Path:
    file = tmp_path / "profile.html"
    made = build.with_ceilings(build.profile(build.SHAPE, build.SMALL, is_measured=True))
    file.write_text(render(made), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [400, 1000, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_offline(
    window: Any, two_shapes: Path, width: int, scheme: str
) -> None:
    visit = Visit(window, two_shapes, width=width, scheme=scheme)
    assert visit.count(".plot") == FIGURES
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    assert visit.overflow() == 0  # tables scroll in their boxes


def test_the_first_times_are_whole_on_a_telephone(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=400, scheme="light")
    beyond = visit.page.evaluate(
        "[...document.querySelectorAll('[data-shape=\"0\"] #ladder-0 ~ .scroll td.time')]"
        ".map(cell => cell.getBoundingClientRect().right - "
        "cell.closest('.scroll').getBoundingClientRect().right)"
    )
    assert len(beyond) == 9
    assert max(beyond) <= 0


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


@pytest.mark.parametrize("kind", ["theory", "predicted", "recorded", "two shapes"])
def test_the_ladder_stands_before_the_prose(
    window: Any,
    build: SimpleNamespace,
    in_theory: Profile,
    in_prediction: Profile,
    on_gpu: Profile,
    tmp_path: Path,
    kind: str,
) -> None:
    many = build.foreseen(build.profile(build.SHAPE, build.SMALL, is_measured=True))
    made, recorded = {
        "theory": (in_theory, None),
        "predicted": (in_prediction, None),
        "recorded": (in_prediction, on_gpu),
        "two shapes": (many, None),
    }[kind]
    file = tmp_path / "profile.html"
    file.write_text(render(made, recorded=recorded), encoding="utf-8")
    visit = Visit(window, file, width=400, scheme="light", waits=False)  # lines are shortest there
    above = visit.page.evaluate(ABOVE)
    assert 20 < len(above["words"]) <= MOST_WORDS, " ".join(above["words"])
    assert ("held-out" in above["words"]) == (kind != "theory")
    assert above["top"] < 0.7 * SCREEN_PX


def test_no_section_and_no_figure_is_empty(
    window: Any, in_prediction: Profile, tmp_path: Path
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_prediction), encoding="utf-8")
    visit = Visit(window, file, width=1000, scheme="light")
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
    rows = visit.page.locator("section[aria-labelledby=ladder-0] .plot .ytick text")
    assert "one-block" not in rows.all_text_contents()


@pytest.mark.parametrize("is_measured", [False, True])
def test_the_ladders_table_is_whole_at_1400_px(
    window: Any,
    build: SimpleNamespace,
    in_prediction: Profile,
    on_gpu: Profile,
    tmp_path: Path,
    is_measured: bool,
) -> None:
    file = tmp_path / "profile.html"
    html = render(build.foreseen(on_gpu)) if is_measured else render(in_prediction, recorded=on_gpu)
    file.write_text(html, encoding="utf-8")
    visit = Visit(window, file, width=1400, scheme="light", waits=False)
    beyond = visit.page.evaluate(
        "[...document.querySelectorAll('#ladder-0 ~ .scroll td.check')]"
        ".map(cell => cell.getBoundingClientRect().right - "
        "cell.closest('.scroll').getBoundingClientRect().right)"
    )
    assert len(beyond) > 5
    assert max(beyond) <= 0


def test_the_selector_shows_the_other_shape(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1000, scheme="light")
    visit.page.select_option("#shape", label="2048 × 2048 × 2048")
    visit.wait()
    assert visit.count("[data-shape='0']") == 0
    assert visit.count("[data-shape='1'] .plot") == FIGURES
    widths = visit.page.evaluate(
        "[...document.querySelectorAll('[data-shape=\"1\"] .plot')]"
        ".map(p => [p.clientWidth, p.querySelector('.main-svg').clientWidth])"
    )
    assert all(drawn == box for box, drawn in widths)
    assert visit.complaints == []


def test_figures_follow_the_window(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1600, scheme="light")
    visit.page.set_viewport_size({"width": 420, "height": 900})
    visit.until(f"{VISIBLE}.every(p => p.querySelector('.main-svg').clientWidth <= 420)")
    assert visit.overflow() == 0
    assert visit.complaints == []


def test_figures_take_the_ink_of_the_scheme(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1000, scheme="dark")
    ink = "getComputedStyle(document.querySelector('.xtick text')).fill"
    assert visit.page.evaluate(ink) == "rgb(230, 232, 235)"
    visit.page.emulate_media(color_scheme="light")
    visit.until(f"{ink} === 'rgb(27, 31, 36)'")


def test_menus_change_the_figure(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1000, scheme="light")
    accesses = visit.page.locator("section[aria-labelledby=counters-0] figure").nth(1)
    accesses.locator("select").select_option(label="instructions")
    visit.page.get_by_text("thread-level instructions per element of C").first.wait_for()
    performance = visit.page.locator("section[aria-labelledby=ladder-0] figure").nth(0)
    performance.locator("select").select_option(label="logarithmic")
    visit.until(
        "document.querySelector('[aria-labelledby=ladder-0] .plot').layout.xaxis.type === 'log'"
    )
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_simulation_fits_its_window_with_everything_open(
    window: Any, in_simulation: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_simulation), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="light")
    section, lines = (f"section[aria-labelledby={name}-0]" for name in ("counters", "source"))
    closed = visit.count(f"{section} table")
    assert visit.count(f"{lines} table") == 0  # without machine code, each rung's are closed
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert visit.count(f"{section} table") > closed
    assert visit.count(f"{lines} table") == 6
    assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_scorecard_fits_its_window_with_everything_open(
    window: Any, in_counters: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_counters), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    section = "section[aria-labelledby=counters-0]"
    # the overview, and tiled: one is off there; closed forms against machine code
    assert visit.count(f"{section} table") == 1 + 1 + 1
    assert visit.page.locator(f"{section} td.bad:visible").first.text_content()[0] in "✗≠"
    visit.page.locator(f"{section} figure").nth(1).locator("select").select_option(label="ratio")
    visit.until(f"document.querySelectorAll('{section} .plot')[1].layout.yaxis.type === 'linear'")
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    numbers = visit.count(f"{section} .data table")  # of three figures
    assert numbers == 3
    assert visit.count(f"{section} table") == numbers + 1 + 6 + 2
    assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_memory_levels_fit_their_window_beside_a_recorded_run(
    window: Any, in_simulation: Profile, in_counters: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_simulation, recorded=in_counters), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    section = "section[aria-labelledby=roofline-0]"
    assert visit.count(f"{section} table") == 0
    visit.page.locator(f"{section} summary").nth(1).click()
    assert visit.count(f"{section} table") == 1
    assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("is_timed", [False, True])
def test_predicted_times_fit_their_window_with_everything_open(
    window: Any,
    in_prediction: Profile,
    on_gpu: Profile,
    tmp_path: Path,
    width: int,
    is_timed: bool,
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_prediction, recorded=on_gpu if is_timed else None), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    section = "section[aria-labelledby=gap-0]"
    assert visit.count(f"{section} .plot") == 2
    assert visit.count(f"{section} table") == 2  # accuracy, bounds; bases and steps are closed
    visit.page.evaluate(
        "document.querySelectorAll('details:not(.data)').forEach(d => d.open = true)"
    )
    assert visit.count(f"{section} table") == 5
    labels = visit.page.evaluate(
        f"[...document.querySelectorAll('{section} .waterfalllayer .bartext')].map(label => "
        "label.getBoundingClientRect().right - "
        "label.closest('.plot').getBoundingClientRect().right)"
    )
    assert len(labels) == (7 if is_timed else 4)
    assert max(labels) <= 0  # whole
    assert visit.overflow() == 0
    assert visit.complaints == []


def test_the_menu_shows_the_steps_of_another_variant(
    window: Any, in_prediction: Profile, tmp_path: Path
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_prediction), encoding="utf-8")
    visit = Visit(window, file, width=400, scheme="light")
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


def test_the_legend_hides_a_level_and_a_variant(
    window: Any, in_counters: Profile, tmp_path: Path
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_counters), encoding="utf-8")
    visit = Visit(window, file, width=1000, scheme="light")
    plot = "document.querySelector('section[aria-labelledby=roofline-0] .plot')"
    shown = f"{plot}.data.filter(t => t.meta?.needs && t.visible !== false).length"
    roof = f"{plot}.data.find(t => t.name.startsWith('shared/L1 ')).visible"

    def click(name: str) -> None:
        figure = visit.page.locator("section[aria-labelledby=roofline-0] figure").first
        legend = figure.locator(".legend .traces")
        legend.filter(has=visit.page.get_by_text(name, exact=True)).locator("rect").click()

    # six rungs at four levels, two of which have no shared memory
    lines = f"{plot}.data.filter(t => t.meta?.needs?.[0] === 'source texts' && t.visible !== false)"
    count_of_lines = visit.page.evaluate(f"{lines}.length")
    assert count_of_lines == 4  # one thread per element, tiled, and two coarsened
    click("source texts' ceilings")
    visit.until(f"{shown} === 22")
    click("shared memory")
    visit.until(f"{shown} === 18")
    assert visit.page.evaluate(roof) is not False  # it is L1's too
    click("tiled")
    visit.until(f"{shown} === 15")
    click("L1")
    visit.until(f"{roof} === false && {shown} === 10")
    for name in ("L1", "shared memory", "tiled"):
        click(name)
    visit.until(f"{shown} === 22 && {roof} !== false")
    click("source texts' ceilings")
    visit.until(f"{lines}.length === {count_of_lines}")
    click("predicted")  # explains a symbol, and hides nothing
    visit.page.wait_for_timeout(600)
    assert visit.page.evaluate(shown) == 22 + count_of_lines
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_comparison_fits_its_window(
    window: Any, in_counters: Profile, in_simulation: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "comparison.html"
    file.write_text(page(compare(in_simulation, in_counters)), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert visit.overflow() == 0
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []


def test_a_tuning_run_draws_its_figures_at_every_shape(window: Any, tmp_path: Path) -> None:
    predicted = replace(UNMEASURED, shape=replace(SHAPE.shape, m=65))
    file = tmp_path / "tuning.html"
    file.write_text(tuning_page(replace(TUNING, shapes=(predicted, SHAPE))), encoding="utf-8")
    visit = Visit(window, file, width=1000, scheme="light")
    assert visit.count(".plot .main-svg .scatterlayer .point") == 3  # one per configuration
    visit.page.select_option("#shape", label="64 × 64 × 64")
    visit.wait()
    assert visit.count(".chapter") == 1
    assert visit.count(".plot") == 2  # the space, and predicted over measured times
    assert visit.overflow() == 0
    assert visit.complaints == []


def test_markup_runs_nothing(window: Any, build: SimpleNamespace, tmp_path: Path) -> None:
    evil = (
        "</script><img src=x onerror=\"document.title='owned'\"><a href='javascript:alert(1)'>a</a>"
    )
    file = tmp_path / "profile.html"
    made = build.change(build.profile(is_measured=True), "tiled", label=evil, title=evil, idea=evil)
    file.write_text(render(made), encoding="utf-8")
    visit = Visit(window, file, width=1000, scheme="light")
    assert visit.page.title() == "SGEMM ladder on NVIDIA GeForce RTX 3090"
    assert visit.page.locator("img, .plot a[*|href^='javascript']").count() == 0
    assert visit.complaints == []
