"""The pictures of docs/, anew: python -m benchmarks.gallery [NAME ...].

All but two are of one profile, which is made first, in a minute: the ladder at 4096 on an H200,
simulated, beside the run that ships with the package. They are screens and sections of its
report, or single figures. The other two are first screens of pages: of README's kernel, with its
remedies, and of a Triton product (`triton`, which needs Triton).
Needs Playwright and the system's Chromium, as the tests of the report do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from analysis.records.profile import Profile
from reports import render, style
from reports.figures import hierarchy
from reports.ladder import View
from toolkit import profile, simulate
from toolkit.store.recorded_runs import recorded_run
from validation import ROOT

FOLDER = ROOT / "docs" / "images"
DEVICE, SHAPE = "h200", "4096"
EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1000, 1000
DRAWN = "document.querySelector('.rows .plot')?.dataset.drawn !== undefined"
# First screens of the page of the ladder: their size, and the rung that is chosen
SCREENS = {
    "report": ({"width": 1280, "height": 860}, ""),
    "rung": ({"width": 1280, "height": 860}, "tiled"),
}
# A section of that page, of a rung
SECTIONS = {"memory": ("#memory", "tiled")}
ON_TENSOR_CORES = "tall-thread-tile", "tf32-parts", "fp16-parts"  # the first one for comparison
# Single figures, from the profile and the run beside it
FIGURES: dict[str, Callable[[Profile, Profile | None], style.Figure]] = {
    "hierarchy": lambda made, recorded: hierarchy.figure(
        View(_only(made, "naive-coalesced", "tiled"), made.records[0].shape, recorded), "tiled"
    ),
    "tensor_roofs": lambda made, recorded: hierarchy.figure(
        View(_only(made, *ON_TENSOR_CORES), made.records[0].shape, recorded), ON_TENSOR_CORES[-1]
    ),
}
# First screens of the page of a launch
PAGES = ("kernel", "triton")
PAGE_SIZE = {"width": 1280, "height": 760}
TRITON_N, TRITON_TILE = 2048, 128  # of the Triton product
PLOTLY = Path(go.__file__).parents[1] / "package_data" / "plotly.min.js"


def main(names: Sequence[str], folder: Path = FOLDER) -> None:
    """Make the profile and take the pictures that are named, all unless some are."""
    known = [*SCREENS, *SECTIONS, *FIGURES, *PAGES]
    if unknown := set(names) - {*known}:
        sys.exit(f"no such picture: {', '.join(unknown)} (known: {', '.join(known)})")
    wanted = names or known
    with browser() as shown:
        if of_profile := [name for name in wanted if name not in PAGES]:
            made = profile(shapes=[SHAPE], device=DEVICE, executor="simulate", seed=1)
            take(shown, made, of_profile, folder)
        if "kernel" in wanted:
            take_page(shown, _page_of_kernel(), folder / "kernel.png")
        if "triton" in wanted:
            take_page(shown, _page_of_triton(), folder / "triton.png")


def take(shown: Any, made: Profile, names: Sequence[str], folder: Path) -> None:
    """The pictures of a profile, in a window, as files of a folder."""
    recorded = recorded_run(made.device.key)
    of_page = {*SCREENS, *SECTIONS}.intersection(names)
    html = render(made, recorded=recorded) if of_page else ""
    for name in of_page & SCREENS.keys():
        size, rung = SCREENS[name]
        shown.set_viewport_size(size)
        _open(shown, html, rung)
        shown.screenshot(path=folder / f"{name}.png")
    for name in of_page & SECTIONS.keys():
        selector, rung = SECTIONS[name]
        shown.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        _open(shown, html, rung)
        shown.locator(selector).screenshot(path=folder / f"{name}.png")
    for name in FIGURES.keys() & set(names):
        shown.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        take_figure(shown, FIGURES[name](made, recorded).plotly(), folder / f"{name}.png")


@contextmanager
def browser() -> Iterator[Any]:
    """A window of the system's Chromium."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        started.close()


def _open(shown: Any, html: str, rung: str = "") -> None:
    """A page, once its chart is drawn, with a rung chosen."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        shown.goto(page.as_uri() + (f"#rung={rung}" if rung else ""))
        while shown.locator(".rows").count() and not shown.evaluate(DRAWN):
            shown.wait_for_timeout(20)
        shown.wait_for_timeout(200)  # the chosen rung is marked


def take_page(shown: Any, html: str, target: Path) -> None:
    """The first screen of the page of a launch."""
    shown.set_viewport_size(PAGE_SIZE)
    _open(shown, html)
    shown.screenshot(path=target)


def _page_of_kernel() -> str:
    """The page that README's command writes."""
    source = (ROOT / "README.md").read_text(encoding="utf-8").split("```cuda\n")[1].split("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "my.cu").write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "toolkit", "simulate", "my.cu", "--html", "my.html"]
        found = {"PYTHONPATH": str(ROOT)}
        subprocess.run([*command, "--seed", "1"], cwd=folder, env=os.environ | found, check=True)
        return Path(folder, "my.html").read_text(encoding="utf-8")


def _page_of_triton() -> str:
    from triton import language

    from validation.timing.tensor.triton_kernels import matmul

    random = np.random.default_rng(1)
    a, b = (random.standard_normal((TRITON_N, TRITON_N)).astype(np.float16) for _ in range(2))
    tile = {"tile_m": TRITON_TILE, "tile_n": TRITON_TILE, "tile_k": 64}
    return simulate(
        matmul,
        grid=((TRITON_N // TRITON_TILE) ** 2,),
        arguments=[a, b, np.zeros((TRITON_N, TRITON_N), np.float32), *(TRITON_N,) * 3],
        defines={**tile, "kind": language.float32, "by_rows": True, "num_warps": 8},
        device=DEVICE,
        outputs=False,
    ).html()


def take_figure(shown: Any, figure: go.Figure, target: Path) -> None:
    """A picture of a figure as it is first seen, with no network."""
    body = figure.to_html(include_plotlyjs=False, config={"displayModeBar": False})
    script = f'<script src="{PLOTLY.as_uri()}"></script>'
    _open(shown, body.replace("<head>", f"<head>{script}"))
    shown.wait_for_selector(".plotly-graph-div .main-svg")
    shown.locator(".plotly-graph-div").screenshot(path=target)


def _only(made: Profile, *labels: str) -> Profile:
    return replace(made, records=tuple(one for one in made.records if one.label in labels))


if __name__ == "__main__":
    main(sys.argv[1:])
