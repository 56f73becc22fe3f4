"""The pictures of docs/, anew: python -m benchmarks.gallery [NAME ...].

All but one are of one profile, which is made first, in a minute: the ladder at 4096 on an H200,
simulated, beside the run that ships with the package. They are parts of its report, or a single
figure. The other one is the first screen of the page of README's kernel, with its remedies.
Needs Playwright and the system's Chromium, as the tests of the report do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

from analysis.records.profile import Profile
from kernels import find
from kernels.variant import Variant
from reports import render
from reports.figures import gap, hierarchy
from reports.ladder import View
from toolkit import find_remedies, profile, simulate
from toolkit.store.recorded_runs import recorded_run
from validation import ROOT

FOLDER = ROOT / "docs" / "images"
DEVICE, SHAPE = "h200", "4096"
EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1000, 1000
AT_REST = (
    "document.getAnimations().length === 0 && "
    "[...document.querySelectorAll('.plot')].filter(p => p.offsetParent)"
    ".every(p => p.dataset.drawn !== undefined)"
)
MARGIN = 4  # px
VARIANT = "vectorized"  # whose source and requests are shown
LINE = 'section[aria-labelledby=source-0] .source:visible tr:not(.sass):has-text("{}") >> nth=0'
# Parts of the report: from the top of one element to the bottom of another
PARTS = {
    "report": ("h1", "section[aria-labelledby=answer-0] .plot"),
    "source": (LINE.format("for (int phase = 0"), LINE.format("the tiles may be overwritten")),
    "access": ("#access-0", "section[aria-labelledby=access-0] .plot:visible >> nth=0"),
}
OPENED = "tile_a[a_col + 3]"  # of this line the machine code is shown
CONFLICT = "&tile_b[k][c_col + j]"  # and of this one the request
# Single figures, from the profile and the run beside it
FIGURES: dict[str, Callable[[Profile, Profile | None], go.Figure]] = {
    "hierarchy": lambda made, recorded: hierarchy.figure(
        View(_only(made, "naive-coalesced", "tiled"), made.records[0].shape, recorded)
    ),
    "gap": lambda made, recorded: gap.figure(
        View(_only(made, VARIANT), made.records[0].shape, recorded)
    ),
}
# First screens of the page of a launch
PAGES = ("kernel",)
PAGE_SIZE = {"width": 1280, "height": 760}
N = 4096  # rows and columns of README's kernel
PLOTLY = Path(go.__file__).parents[1] / "package_data" / "plotly.min.js"


def main(names: Sequence[str], folder: Path = FOLDER) -> None:
    """Make the profile and take the pictures that are named, all unless some are."""
    known = [*PARTS, *FIGURES, *PAGES]
    if unknown := set(names) - {*known}:
        sys.exit(f"no such picture: {', '.join(unknown)} (known: {', '.join(known)})")
    wanted = names or known
    with browser() as shown:
        if of_profile := [name for name in wanted if name not in PAGES]:
            made = profile(shapes=[SHAPE], device=DEVICE, executor="simulate", seed=1)
            take(shown, made, of_profile, folder)
        if "kernel" in wanted:
            take_page(shown, folder / "kernel.png")


def take(shown: Any, made: Profile, names: Sequence[str], folder: Path) -> None:
    """The pictures of a profile, in a window, as files of a folder."""
    recorded = recorded_run(made.device.key)
    if parts := PARTS.keys() & set(names):
        _open(shown, render(made, recorded=recorded))
        _prepare(shown)
        for name in parts:
            take_part(shown, PARTS[name], folder / f"{name}.png")
    for name in FIGURES.keys() & set(names):
        take_figure(shown, FIGURES[name](made, recorded), folder / f"{name}.png")


@contextmanager
def browser() -> Iterator[Any]:
    """A window of the system's Chromium."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        started.close()


def _open(shown: Any, html: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        shown.goto(page.as_uri())


def take_part(shown: Any, ends: tuple[str, str], target: Path) -> None:
    """A picture of the page from the top of one element to the bottom of another."""
    first, last = ends
    top = shown.locator(first).bounding_box()["y"] - MARGIN
    end = shown.locator(last).bounding_box()
    height = end["y"] + end["height"] + MARGIN - top
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height}
    shown.screenshot(path=target, full_page=True, clip=clip)


def take_page(shown: Any, target: Path) -> None:
    """The first screen of the page of README's kernel."""
    source = (ROOT / "README.md").read_text(encoding="utf-8").split("```cuda\n")[1].split("```")[0]
    given = np.random.default_rng(1).random((N, N), dtype=np.float32)
    launch: dict[str, Any] = {
        "grid": (N // 32, N // 32),
        "block": (32, 8),
        "arguments": [np.zeros_like(given), given, np.int32(N)],
        "device": DEVICE,
    }
    html = simulate(source, **launch).html(find_remedies(source, **launch))
    shown.set_viewport_size(PAGE_SIZE)
    _open(shown, html)
    shown.screenshot(path=target)


def take_figure(shown: Any, figure: go.Figure, target: Path) -> None:
    """A picture of a figure as it is first seen, with no network."""
    body = figure.to_html(include_plotlyjs=False, config={"displayModeBar": False})
    script = f'<script src="{PLOTLY.as_uri()}"></script>'
    _open(shown, body.replace("<head>", f"<head>{script}"))
    shown.wait_for_selector(".plotly-graph-div .main-svg")
    shown.locator(".plotly-graph-div").screenshot(path=target)


def _prepare(shown: Any) -> None:
    """All figures drawn, a line opened, a request with conflicts chosen."""
    _wait(shown)
    shown.add_style_tag(
        content=".bar { position: static !important; } .source > .scroll { max-height: none; }"
    )
    for part in ("source", "access"):
        shown.locator(f"#{part}-variant-0").select_option(VARIANT)
    requests = shown.locator("section[aria-labelledby=access-0] .of-variant:visible select")
    requests.select_option(label=f"line {_line(CONFLICT)}: load from shared memory, 16 B per lane")
    shown.locator(LINE.format(OPENED)).locator("button.line").click()
    shown.mouse.move(0, 0)
    _wait(shown)
    shown.evaluate("scrollTo(0, 0)")


def _wait(shown: Any) -> None:
    """Until all figures are drawn, and no control fades any more."""
    while not shown.evaluate(AT_REST):
        shown.wait_for_timeout(20)


def _only(made: Profile, *labels: str) -> Profile:
    return replace(made, records=tuple(one for one in made.records if one.label in labels))


def _line(text: str) -> int:
    """The line of the variant's source that has a text, from 1."""
    variant = find(VARIANT)
    assert isinstance(variant, Variant)
    return next(k for k, line in enumerate(variant.source.splitlines(), start=1) if text in line)


if __name__ == "__main__":
    main(sys.argv[1:])
