"""Style of figures: colours that carry meaning, and the layout that all figures share.

| colour        | meaning                                    |
|---------------|--------------------------------------------|
| orange        | cuBLAS, what a rung loses                  |
| blue          | what a rung gains, the rung that is chosen |
| grey          | everything else                            |

No colour says alone what it says: a position, a line or a text repeats it. Filled marks are
measured, open ones predicted. Colours are those of the pages in light; the page's script replaces
them by those of its dark scheme.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.records.profile import Record
from analysis.roofline import LevelName
from reports import text
from reports.ladder import CUBLAS, View

if TYPE_CHECKING:
    import plotly.graph_objects as go

Part = dict[str, object]  # of a figure, as Plotly takes it

# Each colour by its name in templates/kernel.css; no two are equal, so that a script can tell them
COLOURS = {
    "bg": "#ffffff",
    "ink": "#15181e",
    "mu": "#545b69",
    "ln": "#dde1e8",
    "ln2": "#c3c9d4",
    "cost": "#c2410c",
    "gain": "#1858b8",
    "gainbg": "#e9f1fd",
    "s1": "#5b6880",
    "s2": "#a8b2c3",
    "barl": "#cdd8ea",
    "bard": "#2f66b5",
}
BACKGROUND, INK, QUIET, GRID = (COLOURS[name] for name in ("bg", "ink", "mu", "ln"))
LOST, CHOSEN, GREY = (COLOURS[name] for name in ("cost", "gain", "s2"))
CLEAR = "rgba(0,0,0,0)"
FONT = "Inter, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"

# One symbol per memory level
LEVEL_SYMBOLS: dict[LevelName, str] = {
    LevelName.SHARED: "square",
    LevelName.L1: "diamond",
    LevelName.L2: "triangle-up",
    LevelName.DRAM: "circle",
}


def colour_of(record: Record, chosen: str | None) -> str:
    """Colour of the marks of a record: the chosen rung and cuBLAS stand out."""
    if record.variant == CUBLAS:
        return LOST
    return CHOSEN if record.label == chosen else GREY


def plain(label: str) -> str:
    """`label` with tags and entities escaped, because Plotly interprets them in every label."""
    return html.escape(label, quote=False)


def hover(*lines: str) -> str:
    """The text of a hover box, one fact a line."""
    return "<br>".join(plain(line) for line in lines if line)


def broken(sentence: str, most: int = 70) -> Iterator[str]:
    """A sentence split into lines that fit into a hover box."""
    line = ""
    for word in sentence.split():
        if line and len(line) + len(word) >= most:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line


def layout(title: str, *, height: int, **more: object) -> Part:
    """Layout that all figures share: no background, the legend below the plot."""
    return {
        "title": {"text": plain(title), "x": 0, "xref": "paper", "font": {"size": 16}},
        "height": height,
        "font": {"color": QUIET, "size": 13, "family": FONT},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 8, "r": 12, "t": 48, "b": 8},
        "hovermode": "closest",
        "modebar": {"bgcolor": CLEAR, "color": QUIET, "activecolor": INK},
        "hoverlabel": {
            "bgcolor": BACKGROUND,
            "bordercolor": QUIET,
            "align": "left",
            "namelength": -1,
            "font": {"color": INK, "size": 13, "family": FONT},
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
            "font": {"color": QUIET, "size": 13},
        },
        **more,
    }


def axis(title: str, **more: object) -> Part:
    """An axis with a title, a quiet grid and room for its labels."""
    return {
        "title": {"text": title, "standoff": 8},
        "automargin": True,
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"color": QUIET, "size": 12},
        **more,
    }


def rate_axis(**more: object) -> Part:
    """A logarithmic axis of rates in TFLOP/s."""
    return axis("TFLOP/s", type="log", dtick=1, tickformat="~g", **more)


def scatter(
    mode: str,
    x: Sequence[object],
    y: Sequence[object],
    about: str | Sequence[str] | None = None,
    **more: object,
) -> Part:
    """Points or lines; `about` is the text of their hover boxes, None for no hover boxes."""
    told = {"hoverinfo": "skip"} if about is None else {"hoverinfo": "text", "hovertext": about}
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **told, **more}


def ink(width: float = 1.5, **more: object) -> Part:
    """A line in the colour of text."""
    return {"color": INK, "width": width, **more}


def key(name: str, **look: object) -> Part:
    """A legend entry that explains a mark and draws nothing."""
    return scatter("markers", [None], [None], name=name, showlegend=True) | look


def title_of(figure: str, view: View) -> str:
    return f"{figure}, {text.shape(view.shape)} on {view.profile.device.name}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Traces and layout of a figure, as Plotly takes them.

    A page holds them as they are: to import Plotly and to let it validate them would take longer
    than the rest of the page. `why_empty` is the reason why a figure has no traces.
    """

    data: Sequence[Part]
    layout: Mapping[str, Any]
    why_empty: str = ""

    def plotly(self) -> go.Figure:
        """The figure for a notebook, validated by Plotly."""
        import plotly.graph_objects as go

        return go.Figure(list(self.data), {**self.layout, "template": "none"})


def figure(title: str, data: Iterable[Part], *, height: int, **more: object) -> Figure:
    """Traces under a title, in the layout that all figures share."""
    return Figure(data=list(data), layout=layout(title, height=height, **more))


def empty(title: str, reason: str) -> Figure:
    """A figure that says why it has nothing to show; it has no traces."""
    note = {"text": plain(reason), "showarrow": False, "xref": "paper", "yref": "paper"}
    hidden = {"visible": False}
    shown = layout(title, height=160, annotations=[note], xaxis=hidden, yaxis=hidden)
    return Figure(data=[], layout=shown, why_empty=reason)
