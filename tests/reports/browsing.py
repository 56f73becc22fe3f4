"""A browser for tests, and a page that it opened from a file."""

import os
import shutil
import time

import pytest

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

# px: a telephone, half of a screen, a screen; a page is opened at one of them, and resized
WIDTHS = ((400, 900, 1600), (900, 400, 1600), (1600, 900, 400))
VISIBLE = "[...document.querySelectorAll('.plot')].filter(p => p.checkVisibility())"


@pytest.fixture(scope="session")
def window(tmp_path_factory):
    """A window of the system's Chromium; a run that must have it sets REQUIRE_BROWSER.

    One for all tests of a process: to open another takes as long as a page.
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
        yield Window(started.new_page(), tmp_path_factory.mktemp("window") / "page.html")
        started.close()


OVERFLOW = (
    "Math.max(...[document.documentElement, ...document.querySelectorAll('nav')]"
    ".map(one => one.scrollWidth - one.clientWidth))"
)


class Window:
    """The window of a browser, and the page that it shows.

    To open a page takes more than a second of CPU time: Plotly draws its figures. So consecutive
    tests that leave a page as it is share it.
    """

    def __init__(self, page, file):
        self._page = page
        self._file = file
        self._visit = None
        self._shown = None  # None: a test may have changed the page

    def show(
        self,
        html,
        *,
        width=1000,
        scheme="light",
        fragment="",
        waits=True,
        is_kept=False,
        is_resized=True,
    ):
        """The page as a reader first sees it, once its figures are drawn if the test `waits`.

        `is_kept`: the test leaves the page as it is, but for its width, to the next one.
        `is_resized`: it may be a page that another test left, in a window of another width.
        """
        wanted, visit = (html, scheme, fragment), self._visit
        if visit is None or self._shown != wanted or not (is_resized or visit.widths == {width}):
            self._file.write_text(html, encoding="utf-8")
            visit = self._visit = Visit(self.blank(), self._file, width, scheme, fragment)
        else:
            visit.page.emulate_media(media="screen")
            visit.page.evaluate("scrollTo(0, 0)")
        if waits:
            visit.wait()
        if visit.widths != {width}:
            visit.resize(width)
        self._shown = wanted if is_kept else None
        return visit

    def blank(self):
        """Playwright's page, with nothing in it."""
        self._shown = None
        self._page.goto("about:blank")  # the end of the page before
        self._page.mouse.move(0, 0)
        self._page.emulate_media(media="screen", color_scheme="light")
        return self._page


class Visit:
    """A page that was opened from a file, with what it complained of and asked for."""

    def __init__(self, page, file, width, scheme, fragment=""):
        self.page = page
        self.widths = {width}  # that it has had, px
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri() + fragment)

    def resize(self, width):
        """Another width of the window, once the figures that are drawn have followed it."""
        self.widths.add(width)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.until(
            f"{VISIBLE}.filter(p => p.dataset.drawn !== undefined)"
            ".every(p => p.querySelector('.main-svg').clientWidth === p.clientWidth)"
        )

    def wait(self):
        """Until every visible figure is drawn."""
        self.until(f"{VISIBLE}.every(p => p.dataset.drawn !== undefined)")

    def until(self, condition, *, limit_s=30):
        """Poll `condition`; Playwright's own poll needs eval, which the page's policy forbids."""
        end = time.monotonic() + limit_s
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not true after {limit_s} s: {condition}"
            self.page.wait_for_timeout(20)

    def count(self, selector):
        return self.page.locator(f"{selector}:visible").count()

    def overflow(self):
        """Pixels by which the page is wider than its window, or its navigation than its room.

        Figures take a new width of the window a moment later.
        """
        ends = time.monotonic() + 3
        while (found := self.page.evaluate(OVERFLOW)) > 0 and time.monotonic() < ends:
            self.page.wait_for_timeout(20)
        return found

    def assert_it_fits(self, widths, also=lambda: None):
        """No overflow at these widths and what is asserted `also`; no complaint, nothing fetched.

        It was opened at the first of them.
        """
        assert self.widths == {widths[0]}
        for width in widths:
            if width not in self.widths:
                self.resize(width)
            assert self.overflow() == 0, f"at {width} px"
            also()
        assert self.complaints == []
        assert self.fetched() == []

    def open_details(self):
        self.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

    def fetched(self):
        """URLs that the page requested from a network."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]
