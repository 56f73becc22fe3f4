"""The page in a browser: offline, without a complaint, every figure drawn."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.comparison import compare
from analysis.problem import Gemm
from analysis.result import Profile
from reports import render
from reports.comparison import page
from reports.tuning import page as tuning_page

sys.path.append(str(Path(__file__).parent))
from tuned_by_hand import SHAPE, TUNING, UNMEASURED

pytestmark = pytest.mark.browser

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

VISIBLE = "[...document.querySelectorAll('.plot')].filter(p => p.offsetParent)"


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    """A window of the system's Chromium; a run that must have it sets REQUIRE_BROWSER.

    One for all pages, none of which keeps anything: to open another takes as long as a page.
    """
    missing = pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("NO BROWSER TEST WAS RUN: Playwright is not installed")
    path = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if path is None:
        missing(f"NO BROWSER TEST WAS RUN: none of {', '.join(EXECUTABLES)} is installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started.new_page()
        started.close()


class Visit:
    """A page that was opened from a file, with what it complained of and asked for."""

    def __init__(self, window: Any, file: Path, *, width: int, scheme: str) -> None:
        self.page = window
        self.page.goto("about:blank")  # the end of the page before
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.wait()

    def wait(self) -> None:
        """Until every visible figure is drawn."""
        self.until(f"{VISIBLE}.every(p => p.querySelector('.main-svg'))")

    def until(self, condition: str, *, limit_s: float = 10) -> None:
        """Poll `condition`; Playwright's own poll needs eval, which the page's policy forbids."""
        end = time.monotonic() + limit_s
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not true after {limit_s} s: {condition}"
            self.page.wait_for_timeout(20)

    def count(self, selector: str) -> int:
        return self.page.locator(f"{selector}:visible").count()

    def overflow(self) -> int:
        """How far the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


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
    assert visit.count(".plot") == 6
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


def test_the_selector_shows_the_other_shape(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1000, scheme="light")
    visit.page.select_option("#shape", label="2048 × 2048 × 2048")
    visit.wait()
    assert visit.count("[data-shape='0']") == 0
    assert visit.count("[data-shape='1'] .plot") == 6
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


def test_buttons_change_the_figure(window: Any, two_shapes: Path) -> None:
    visit = Visit(window, two_shapes, width=1000, scheme="light")
    visit.page.get_by_text("instructions", exact=True).first.click()
    visit.page.get_by_text("thread-level instructions per element of C").first.wait_for()
    visit.page.get_by_text("logarithmic", exact=True).first.click()
    visit.until(
        "document.querySelector('[aria-labelledby=performance-0] .plot')"
        ".layout.xaxis.type === 'log'"
    )
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_simulation_fits_its_window_with_everything_open(
    window: Any, in_simulation: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_simulation), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="light")
    section = "section[aria-labelledby=machine-code-0]"
    assert visit.count(f"{section} table") == 1  # the overview; numbers and lines are closed
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert visit.count(f"{section} table") == 2 + 6  # every number, and six rungs' lines
    assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_scorecard_fits_its_window_with_everything_open(
    window: Any, in_counters: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_counters), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    section = "section[aria-labelledby=scorecard-0]"
    assert visit.count(f"{section} table") == 1 + 1  # the overview, and tiled: one is off there
    assert visit.page.locator(f"{section} td.bad:visible").first.text_content()[0] in "✗≠"
    visit.page.locator(section).get_by_text("ratio", exact=True).last.click()
    visit.until(f"document.querySelector('{section} .plot').layout.yaxis.type === 'linear'")
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert visit.count(f"{section} table") == 1 + 6
    assert visit.overflow() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_memory_levels_fit_their_window_beside_a_recorded_run(
    window: Any, in_simulation: Profile, in_counters: Profile, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_simulation, recorded=in_counters), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    section = "section[aria-labelledby=hierarchy-0]"
    assert visit.count(f"{section} table") == 0
    visit.page.locator(f"{section} summary").click()
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
    section = "section[aria-labelledby=predicted-0]"
    assert visit.count(f"{section} .plot") == 2
    assert visit.count(f"{section} table") == 1  # the bounds; bases and steps are closed
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert visit.count(f"{section} table") == 3
    assert visit.count("section[aria-labelledby=steps-0] table") == 1
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
    section = visit.page.locator("section[aria-labelledby=predicted-0]")
    shown = (
        "document.querySelectorAll('section[aria-labelledby=predicted-0] .plot')[1]"
        ".data.find(trace => trace.visible).name"
    )
    assert visit.page.evaluate(shown) == "vectorized"
    section.locator(".updatemenu-header").last.click()
    section.locator(".updatemenu-dropdown-button").filter(has_text="coarsened-1d").click()
    visit.until(f"{shown} === 'coarsened-1d'")
    assert visit.complaints == []


def test_the_legend_hides_a_level_and_a_variant(
    window: Any, in_counters: Profile, tmp_path: Path
) -> None:
    file = tmp_path / "profile.html"
    file.write_text(render(in_counters), encoding="utf-8")
    visit = Visit(window, file, width=1000, scheme="light")
    plot = "document.querySelector('section[aria-labelledby=hierarchy-0] .plot')"
    shown = f"{plot}.data.filter(t => t.meta?.needs && t.visible !== false).length"
    roof = f"{plot}.data.find(t => t.name.startsWith('shared/L1 ')).visible"

    def click(name: str) -> None:
        legend = visit.page.locator("section[aria-labelledby=hierarchy-0] .legend .traces")
        legend.filter(has=visit.page.get_by_text(name, exact=True)).locator("rect").click()

    # six rungs at four levels, two of which have no shared memory
    assert visit.page.evaluate(shown) == 22
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
    click("predicted")  # explains a symbol, and hides nothing
    visit.page.wait_for_timeout(600)
    assert visit.page.evaluate(shown) == 22
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


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_tuning_run_is_drawn_offline_and_its_menus_work(
    window: Any, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "tuning.html"
    two = replace(TUNING, shapes=(SHAPE, replace(UNMEASURED, shape=Gemm(m=8, n=8, k=8))))
    file.write_text(tuning_page(two), encoding="utf-8")
    visit = Visit(window, file, width=width, scheme="dark" if width == 900 else "light")
    assert visit.count(".plot") == 2
    assert visit.page.locator(".xtick text:visible").all_text_contents()[:3] == ["4", "8", "16"]
    visit.page.locator(".updatemenu-header").first.click()
    visit.page.locator(".updatemenu-dropdown-button", has_text="tm").click()
    visit.until("document.querySelector('.xtitle').textContent === 'tm'")
    visit.page.select_option("#shape", "1")
    visit.wait()
    assert visit.count(".plot") == 1  # nothing was measured to compare with
    assert visit.overflow() == 0
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []


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
