"""The site of these pages: python -m sphinx docs site. Neither it nor its making uses a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

from docs.docstrings import restructured  # noqa: E402
from docs.notebook_page import PLOTLY, markdown  # noqa: E402
from docs.snippets.notebook import executed  # noqa: E402
from toolkit import __version__  # noqa: E402

project = "gemm-ladder"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
exclude_patterns = ["decisions/README.md"]  # decisions/index.md includes it

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "gemm-ladder"
html_copy_source = False
html_static_path = [str(PLOTLY), "site.css"]
html_css_files = ["site.css"]
html_show_copyright = html_show_sphinx = False

default_role = "code"  # docstrings write `name`
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 88


def setup(app: Any) -> None:
    """Docstrings are written in Markdown, and a page is a notebook."""
    app.connect("autodoc-process-docstring", _restructure)
    app.connect("source-read", _read_source)


def _read_source(app: Any, name: str, source: list[str]) -> None:
    if app.env.doc2path(name).suffix == ".ipynb":
        source[0] = markdown(executed(Path(app.env.doc2path(name))))
    # A page outside of docs/, which mismatches.md includes.
    source[0] = source[0].replace("](../validation/README.md)", "](mismatches.md)")


def _restructure(
    app: Any, what: str, name: str, it: object, options: Any, lines: list[str]
) -> None:
    lines[:] = restructured(lines)
