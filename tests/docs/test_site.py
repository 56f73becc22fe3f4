"""The site: made without a warning, whole, and readable without a network."""

import re
import sys
from html.parser import HTMLParser

import pytest

from docs.snippets.pages import ROOT
from tests.processes import said

pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")
# To make the site takes longer than all other tests of pages.
of_the_site = pytest.mark.exhaustive

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
REFERENCE = "\n".join(p.read_text("utf-8") for p in (ROOT / "docs/reference").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = ("-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "doctrees")
    said([sys.executable, *command, ROOT / "docs", folder / "html"], cwd=ROOT)
    return folder / "html"


class Resources(HTMLParser):
    """Resources that a browser requests to show a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == LOADED.get(tag) and value]


def resources(site):
    for page in site.rglob("*.html"):
        yield from ((page, found) for found in Resources(page).found)
    for sheet in site.rglob("*.css"):
        named = re.findall(r"url\(['\"]?([^)'\"]+)", sheet.read_text(encoding="utf-8"))
        yield from ((sheet, found) for found in named)


@of_the_site
def test_every_page_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        made = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert made.exists() or page.name == "README.md", page


@of_the_site
def test_every_page_asks_for_files_that_are_beside_it(site):
    asked = list(resources(site))
    assert len({page for page, _ in asked}) > 20
    for page, found in asked:
        path = found.partition("?")[0].partition("#")[0]
        if path and not path.startswith("data:"):
            assert (page.parent / path).exists(), f"{page.relative_to(site)} asks for {found}"


def modules(*folders):
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if path.name != "__init__.py"
    ]


@pytest.mark.parametrize("module", modules("analysis", "reports/figures"))
def test_reference_has_every_module_that_notebooks_import(module):
    assert f"automodule:: {module}\n" in REFERENCE


@of_the_site
def test_docstrings_are_in_the_reference(site):
    page = (site / "reference/traffic.html").read_text(encoding="utf-8")
    assert 'id="analysis.access.Tiling"' in page
    assert "<td><p>global load A</p></td>" in page  # of the table in its docstring


@of_the_site
def test_notebook_is_a_page_with_its_figures(site):
    page = (site / "notebook.html").read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot(") == 4  # ladder, hierarchy, strides, roofline of a launch
    assert "7,489.6 GFLOP/s" in page  # its code printed so
