"""A notebook as a page of the site: its text, its code, and its figures alive, with no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
FIGURE = "application/vnd.plotly.v1+json"
LOAD = '<script src="_static/plotly.min.js"></script>\n'
DRAW = """<div id="figure-{number}"></div>
<script>Plotly.newPlot("figure-{number}", {figure}, {{responsive: true}})</script>"""


def markdown(notebook: dict[str, Any]) -> str:
    """The cells and their outputs, in Markdown with figures in HTML."""
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    figures = iter(range(1, len(parts)))
    drawn = [part if isinstance(part, str) else _figure(part, next(figures)) for part in parts]
    return "\n\n".join(drawn) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str | dict[str, Any]]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield _fenced("python", source)
    for output in cell["outputs"]:
        data = output.get("data", {})
        if FIGURE in data:
            yield data[FIGURE]
        else:
            yield _fenced("text", "".join(output.get("text") or data["text/plain"]))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _figure(figure: dict[str, Any], number: int) -> str:
    # "</" would end the script
    drawn = json.dumps({key: figure[key] for key in ("data", "layout")}).replace("</", "<\\/")
    html = (LOAD if number == 1 else "") + DRAW.format(number=number, figure=drawn)
    return f"```{{raw}} html\n{html}\n```"
