"""Figure of one warp's request: 32 lanes, the address of each, and lanes served together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.records.profile import FirstRequest, LineAccess, Profile, Record
from analysis.traffic.requests import Piece, pieces
from reports import style, text
from reports.ladder import View
from reports.sections import access

TITLE = "Access patterns, drawn"
READING = (
    "Choose an instruction above the plot. The row on top is the 32 lanes of one warp, as executed "
    "by the simulator; a line leads from each lane to what it touches. Of global memory these are "
    "sectors of 32 bytes, in the order of their addresses: few and full is coalesced. Of shared "
    "memory they are the 32 banks, a row per group of lanes that is served together; the number in "
    "a bank is how many different words of it are wanted, and the largest is the wavefronts that "
    "the group takes: above 1 is a bank conflict. Lanes that want the same word share it."
)

LANES = 32
USED, CROWDED = "#0072b2", "#d55e00"
LANE_ROW = 1.0
WORDS_PX = 120  # below the plot: three lines on a telephone, and the axis
ROW = 0.55  # between groups of shared memory


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A memory instruction to draw: its first request, and its name in the menu."""

    instruction: LineAccess
    request: FirstRequest
    name: str


def figure(view: View, label: str) -> go.Figure:
    """The first request of each memory instruction of one variant, one at a time."""
    title = f"{TITLE}: {label}, {text.shape(view.shape)}"
    record = view.record(label)
    found = _drawn(view.profile, record) if record else []
    if not found:
        return style.empty(title, "No request of this variant was traced: profile with simulation.")
    traces = [list(_traces(one)) for one in found]
    return style.figure(
        title,
        [trace | {"visible": place == 0} for place, own in enumerate(traces) for trace in own],
        height=440,
        margin={"l": 8, "r": 12, "t": 88, "b": WORDS_PX},
        showlegend=False,
        annotations=[_words(found[0])],
        xaxis=_axis(found[0]),
        yaxis=style.axis("", visible=False, range=_range(found)),
        updatemenus=style.menu(
            [
                (
                    one.name,
                    {"visible": [own is traces[place] for own in traces for _ in own]},
                    {
                        "annotations[0].text": _words(one)["text"],
                        "xaxis.title.text": _axis_title(one),
                    },
                )
                for place, one in enumerate(found)
            ],
        ),
    )


def _drawn(profile: Profile, record: Record) -> list[Drawn]:
    instructions = record.simulated.memory if record.simulated else ()
    lines = access.source_lines(profile, record)
    return [
        Drawn(instruction=one, request=one.first, name=access.name(one, one.first, lines))
        for one in instructions
        if one.first
    ]


def _axis(one: Drawn) -> style.Part:
    return style.axis(
        _axis_title(one),
        range=[-0.8, LANES - 0.2],
        tickmode="array",
        tickvals=list(range(0, LANES, 4)),
        showgrid=False,
    )


def _axis_title(one: Drawn) -> str:
    return "lane above, bank below" if _is_shared(one) else "lane above, sector below"


def _is_shared(one: Drawn) -> bool:
    return one.instruction.space == "shared"


def _range(found: Sequence[Drawn]) -> list[float]:
    rows = max(1 + max(piece.group for piece in _pieces(one)) for one in found)
    return [-(rows - 0.5) * ROW, LANE_ROW + 0.25]


def _pieces(one: Drawn) -> tuple[Piece, ...]:
    return pieces(one.request.lanes, one.instruction.bytes_per_lane, one.instruction.space)


def _words(one: Drawn) -> style.Part:
    """Annotation above the picture that says what it shows."""
    sentence = access.sentence(one.instruction, one.request)
    return {
        "text": "<br>".join(map(style.plain, style.broken(sentence, 56))),
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "top",
        "yshift": -46,
        "align": "left",
        "font": {"size": 12},
    }


def _traces(one: Drawn) -> Iterator[style.Part]:
    found = _pieces(one)
    places = _places(one, found)
    yield _wires(found, places)
    yield _lanes(one)
    yield _targets(one, found, places)


Places = dict[Piece, tuple[float, float]]


def _places(one: Drawn, found: Sequence[Piece]) -> Places:
    """Positions of pieces: banks in one row per group, sectors spread over the width."""
    if _is_shared(one):
        return {piece: (piece.number, -ROW * piece.group) for piece in found}
    step = LANES / len(found)
    return {piece: (step * (place + 0.5) - 0.5, 0.0) for place, piece in enumerate(found)}


def _wires(found: Sequence[Piece], places: Places) -> style.Part:
    x: list[float | None] = []
    y: list[float | None] = []
    for piece in found:
        for lane in piece.lanes:
            x += [lane, places[piece][0], None]
            y += [LANE_ROW, places[piece][1], None]
    return style.scatter("lines", x, y, line={"color": "rgba(128,128,128,0.55)", "width": 1})


def _lanes(one: Drawn) -> style.Part:
    lanes = one.request.lanes
    return style.scatter(
        "markers",
        list(range(len(lanes))),
        [LANE_ROW] * len(lanes),
        [
            style.hover(f"lane {lane}", access.where(one.instruction, one.request, lane))
            for lane in range(len(lanes))
        ],
        name="lanes",
        marker={
            "symbol": ["circle-open" if at is None else "circle" for at in lanes],
            "size": 9,
            "color": style.INK,
        },
    )


def _targets(one: Drawn, found: Sequence[Piece], places: Places) -> style.Part:
    """Sectors or banks: crowded ones in another colour, with a number and another symbol."""
    is_shared = _is_shared(one)
    crowded = [is_shared and piece.words > 1 for piece in found]
    return style.scatter(
        "markers+text",
        [places[piece][0] for piece in found],
        [places[piece][1] for piece in found],
        [_about(piece, is_shared) for piece in found],
        name="banks" if is_shared else "sectors",
        text=[str(piece.words) if is_shared else "" for piece in found],
        textfont={"color": "#ffffff", "size": 10},
        marker={
            "symbol": _symbols(crowded) if is_shared else "square",
            "size": _symbol_size(len(found), is_shared),
            "color": [CROWDED if one else USED for one in crowded],
            "opacity": 1 if is_shared else [_fullness(piece) for piece in found],
            "line": style.ink(1),
        },
    )


def _symbols(crowded: Sequence[bool]) -> list[str]:
    """Symbol of each bank: crowded banks differ not by colour alone."""
    return ["square" if one else "circle" for one in crowded]


def _symbol_size(number: int, is_shared: bool) -> int:
    """Size of each of `number` symbols in pixels: small enough that neighbours do not overlap."""
    if is_shared:
        return 16
    return 18 if number > LANES / 2 else 24


def _fullness(piece: Piece) -> float:
    """Paler where less of a sector is wanted; never so pale that it vanishes."""
    return 0.35 + 0.65 * piece.used_bytes / piece.size_bytes


def _about(piece: Piece, is_shared: bool) -> str:
    lanes = text.listing([str(lane) for lane in piece.lanes])
    if is_shared:
        words = f"{piece.words} words" if piece.words > 1 else "1 word"
        return style.hover(f"bank {piece.number}: {words}", *style.broken(f"lanes {lanes}"))
    used = f"{piece.used_bytes} of {piece.size_bytes} B wanted"
    return style.hover(
        f"sector at byte {piece.number * piece.size_bytes:,}", used, *style.broken(f"lanes {lanes}")
    )
