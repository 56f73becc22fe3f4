"""Style of figures: one colour and one symbol per variant, the same in every figure.

Colours are those of Okabe and Ito ("Color Universal Design", 2008), which readers with a colour
vision deficiency tell apart; black is left to axes and references. A symbol goes with every
colour, so that nothing is told by colour alone. Symbols have a second meaning, their fill:

| fill          | number                                                |
|---------------|-------------------------------------------------------|
| filled        | measured                                              |
| filled, dot   | recorded: measured in an earlier run                  |
| open, dot     | predicted or, without a predicted time, attainable    |
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.records.profile import Grade, Profile, Record
from analysis.roofline import LevelName
from reports import text
from reports.ladder import View

Part = dict[str, object]  # of a figure, as Plotly takes it

# Readable on white and on near-black. The page replaces it by the text colour of its scheme.
INK = "#76797c"
GRID = "rgba(128,128,128,0.25)"
CLEAR = "rgba(0,0,0,0)"
SWATCH = "#9a9ea3"  # the same in any scheme, and apart from INK, so that a dot of INK shows on it

# By rung. The yellow is darkened: theirs, #f0e442, is too pale for a thin line on white.
COLOURS = ("#bfae00", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#56b4e9")
SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
    "hexagon",
    "cross",
    "triangle-left",
    "triangle-right",
    "diamond-wide",
    "hexagram",
    "star-square",
    "diamond-tall",
    "star-triangle-up",
    "octagon",
)  # all of them have the four fills
FILLS = {Grade.MEASURED: "", Grade.RECORDED: "-dot", Grade.PREDICTED: "-open-dot"}

DASHES = {Grade.MEASURED: "dot", Grade.RECORDED: "dashdot"}  # of cuBLAS

# By memory level, of the same set: apart from each other in lightness too
LEVEL_COLOURS: dict[LevelName, str] = {
    LevelName.SHARED: "#cc79a7",
    LevelName.L1: "#e69f00",
    LevelName.L2: "#009e73",
    LevelName.DRAM: "#0072b2",
}

GLOBAL_COLOUR, SHARED_COLOUR = "#4a6fa5", "#a9bcd6"

ROW_PX = 46
LONGEST_TICK = 18  # characters: about a third of a telephone's width
LONGEST_WORD = 30  # characters


@dataclass(frozen=True, kw_only=True)
class Look:
    """The colour and the symbol of one labelled variant."""

    colour: str
    symbol: str


def looks(profile: Profile) -> dict[str, Look]:
    """The look of every label of a profile. The colour depends on the variant alone."""
    labels = {record.label: record.rung for record in profile.records}
    found: dict[str, Look] = {}
    for label, rung in labels.items():
        if rung is None:
            found[label] = Look(colour=INK, symbol="x")
            continue
        same = sum(labels[earlier] == rung for earlier in found)
        found[label] = Look(
            colour=COLOURS[(rung - 1) % len(COLOURS)],
            symbol=SYMBOLS[(rung - 1 + 4 * same) % len(SYMBOLS)],
        )
    return found


def plain(label: str) -> str:
    """`label` with tags and entities escaped, because Plotly interprets them in every label."""
    return html.escape(label, quote=False)


def tick(record: Record) -> str:
    """Name of a record on an axis, in several lines if it is long, with a bad status."""
    told = [] if record.status == "ok" else [f"({record.status})"]
    return "<br>".join(map(plain, [*lines(record.label), *told]))


def lines(label: str) -> list[str]:
    """A name split into lines that fit beside an axis."""
    found = [""]
    for piece in re.findall(r"[^-_:,\s]*[-_:,\s]?", label):
        if found[-1] and len(found[-1]) + len(piece) > LONGEST_TICK:
            found.append("")
        found[-1] += piece
    return [
        line[start : start + LONGEST_WORD]
        for line in found
        for start in range(0, len(line) or 1, LONGEST_WORD)
    ]


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
    """Layout that all figures share: no background, neutral ink, the legend below the plot."""
    return {
        "template": "none",
        "title": {"text": plain(title), "x": 0, "xref": "paper", "font": {"size": 16}},
        "height": height,
        "font": {"color": INK, "size": 12, "family": "system-ui, sans-serif"},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 8, "r": 12, "t": 88 if "updatemenus" in more else 48, "b": 8},
        "hovermode": "closest",
        "modebar": {"bgcolor": CLEAR, "color": INK, "activecolor": INK},
        "hoverlabel": {
            "bgcolor": "#ffffff",
            "bordercolor": "#9aa0a6",
            "align": "left",
            "namelength": -1,
            "font": {"color": "#1b1f24", "size": 12},
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "tracegroupgap": 0,
            "font": {"size": 11},
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
        "ticks": "outside",
        "tickcolor": GRID,
        **more,
    }


def rows_axis(records: tuple[Record, ...]) -> Part:
    """A vertical axis with one row per record, the first on top, at 0, 1, 2, ..."""
    return axis(
        "",
        tickmode="array",
        tickvals=list(range(len(records))),
        ticktext=list(map(tick, records)),
        range=[len(records) - 0.5, -0.5],
        showgrid=False,
        ticks="",
    )


def rate_axis(**more: object) -> Part:
    """An axis of FLOP/s with prefixed ticks: 10G, 1T."""
    return axis("performance, FLOP/s", tickformat="~s", **more)


Choice = tuple[str, Part, Part]


def menu(choices: Sequence[Choice], *, active: int = 0) -> list[Part]:
    """A menu above the plot; each choice is a label, a change of traces and one of the layout.

    The colours are fixed: Plotly paints the active choice near-white in any scheme.
    """
    return [
        {
            "type": "dropdown",
            "direction": "down",
            "active": active,
            "x": 0,  # on the right it would lie under Plotly's own bar
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "pad": {"b": 8},
            "bgcolor": "#c4ccd6",
            "bordercolor": "#9aa0a6",
            "font": {"color": "#1b1f24", "size": 11},
            "buttons": [
                {"label": plain(label), "method": "update", "args": [traces, changes]}
                for label, traces, changes in choices
            ],
        }
    ]


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
    """A line in neutral ink."""
    return {"color": INK, "width": width, **more}


def graded(look: Look, fills: Sequence[Grade]) -> Part:
    """The symbols of one variant, a fill each; recorded ones have a dot of ink."""
    dotted = [fill == Grade.RECORDED for fill in fills]
    outline = {
        "color": [INK if one else look.colour for one in dotted],
        # a wide outline would cover the colour of a filled symbol
        "width": [1 if one else 2 for one in dotted],
    }
    symbols = [look.symbol + FILLS[fill] for fill in fills]
    return {"color": look.colour, "symbol": symbols, "size": 12, "line": outline}


def bars(
    name: str,
    x: Sequence[object],
    about: Sequence[str],
    colour: object,
    pattern: Part,
    **more: object,
) -> Part:
    """Horizontal bars, one per row; `pattern` hatches them."""
    return {
        "type": "bar",
        "orientation": "h",
        "x": x,
        "y": list(range(len(x))),
        "name": plain(name),
        "marker": {"color": colour, "line": ink(0.5), "pattern": pattern},
        "hoverinfo": "text",
        "hovertext": about,
        **more,
    }


def hatch(shape: str, colour: str, **more: object) -> Part:
    """Hatching of bars, so that colour is not the only difference between them."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": colour, "size": 6, **more}


def fill(grade: str) -> Grade:
    """Fill of a symbol by the grade of its number: measured, or recorded in an earlier run."""
    return Grade.MEASURED if grade == Grade.MEASURED else Grade.RECORDED


def key(name: str, symbol: str, **more: object) -> Part:
    """A legend entry that explains a symbol and draws nothing."""
    marker = {"symbol": symbol, "size": 10, "color": SWATCH, "line": _outline(symbol)}
    return scatter("markers", [None], [None], name=name, marker=marker) | more


def _outline(symbol: str) -> Part:
    has_dot = symbol.endswith("-dot") and "open" not in symbol
    # Plotly paints the dot of a filled symbol in the colour of its outline
    return {"color": INK if has_dot else SWATCH, "width": 1.5}


def title_of(figure: str, view: View) -> str:
    return f"{figure}, {text.shape(view.shape)} on {view.profile.device.name}"


def figure(title: str, data: Iterable[Part], *, height: int, **more: object) -> go.Figure:
    """Traces under a title, in the layout that all figures share.

    Plotly validates the layout. That of traces takes a fifth of the time of a page: tests do it.
    """
    found = go.Figure(list(data), _validate=False)
    found._validate = True  # what others add to it
    found.layout = layout(title, height=height, **more)
    return found


def empty(title: str, reason: str) -> go.Figure:
    """A figure that says why it has nothing to show; it has no traces."""
    note = {"text": plain(reason), "showarrow": False, "xref": "paper", "yref": "paper"}
    hidden = {"visible": False}
    return figure(title, [], height=160, annotations=[note], xaxis=hidden, yaxis=hidden)
