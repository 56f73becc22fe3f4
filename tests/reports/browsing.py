"""A browser for tests, and a page that it opened from a file."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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

    def __init__(
        self,
        window: Any,
        file: Path,
        *,
        width: int,
        scheme: str,
        fragment: str = "",
        waits: bool = True,
    ) -> None:
        self.page = window
        self.page.goto("about:blank")  # the end of the page before
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri() + fragment)
        if waits:
            self.wait()

    def wait(self) -> None:
        """Until every visible figure is drawn."""
        self.until(f"{VISIBLE}.every(p => p.dataset.drawn !== undefined)")

    def until(self, condition: str, *, limit_s: float = 30) -> None:
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
