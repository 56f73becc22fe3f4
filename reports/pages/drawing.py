"""Plotly figures in a page: packed, and drawn by the page's script."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from zlib import compress

from reports import style

PLOTLY = "plotly-cartesian-4.1.1.min.js.zlib"  # decision 64: an official bundle, compressed
TOP_PX = 16  # above a plot below the first screen: its title stands outside of it


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure of a page: its heading, what to conclude from it, and Plotly's JSON."""

    title: str
    reading: str
    figure: style.Figure
    top_px: int | None = TOP_PX

    @cached_property
    def packed(self) -> str:
        """The figure's JSON, compressed; its title stands outside of it."""
        layout = {name: one for name, one in self.figure.layout.items() if name != "title"}
        if self.top_px is not None:
            layout["margin"] = layout["margin"] | {"t": self.top_px}
        return packed(_json({"data": self.figure.data, "layout": layout}))

    @property
    def height_px(self) -> int:
        """The room that it takes, known before it is drawn."""
        return int(self.figure.layout["height"])


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def packed(content: str) -> str:
    """Text that a browser unpacks (deflate, base64): no tag can stand in it."""
    return b64encode(compress(content.encode())).decode("ascii")


@cache
def plotly() -> str:
    """Plotly's JavaScript, as a page holds it."""
    found = files("reports").joinpath("templates", PLOTLY).read_bytes()
    return b64encode(found).decode("ascii")
