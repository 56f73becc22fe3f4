"""The screenshots of docs/gallery.md, anew: python benchmarks/gallery.py PROFILE.html FOLDER.

Needs Playwright and the system's Chromium, as the tests of the report do. The page is one of
`python -m toolkit profile --device h200 --shape 4096`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1000, 1000
ALL_DRAWN = (
    "[...document.querySelectorAll('.plot')].filter(p => p.offsetParent)"
    ".every(p => p.dataset.drawn !== undefined)"
)
MARGIN = 4  # px
# Nothing in front of the picture, and the source without its own scroll bar
STYLE = ".bar { position: static !important; } .source > .scroll { max-height: none; }"
LINE = "section[aria-labelledby=source-0] .source > .scroll > table > tbody > tr:not(.sass) >> nth="
# What each picture shows: from the top of one element to the bottom of another
PICTURES = {
    "report": ("#ladder-0 ~ h3 >> nth=0", "section[aria-labelledby=ladder-0] .plot >> nth=1"),
    "source": (f"{LINE}57", f"{LINE}90"),
    "access": ("#access-0", "section[aria-labelledby=access-0] .plot:visible >> nth=0"),
}
CONFLICT = "line 83: load from shared memory, 16 B per lane"


def main(page: Path, folder: Path) -> None:
    """Draw the page in a browser and keep its pictures."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        shown.goto(page.resolve().as_uri())
        _prepare(shown)
        for name, (first, last) in PICTURES.items():
            top = shown.locator(first).bounding_box()["y"] - MARGIN
            end = shown.locator(last).bounding_box()
            height = end["y"] + end["height"] + MARGIN - top
            clip = {"x": 0, "y": top, "width": WIDTH, "height": height}
            shown.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip)
        browser.close()


def _prepare(shown: Any) -> None:
    """All figures drawn, a line opened, a request with conflicts chosen."""
    while not shown.evaluate(ALL_DRAWN):
        shown.wait_for_timeout(100)
    shown.add_style_tag(content=STYLE)
    section = shown.locator("section[aria-labelledby=access-0] .of-variant:visible")
    section.locator(".controls select").select_option(label=CONFLICT)
    shown.locator("button.line", has_text="65").click()
    shown.mouse.move(0, 0)
    shown.wait_for_timeout(1500)
    shown.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
