"""What one warp's access asks of the memory system, against the least that it could ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10

import plotly.graph_objects as go

from analysis.access import Pattern
from analysis.records.profile import Profile, Record
from reports import style, text
from reports.ladder import View

TITLE = "Access patterns of a warp"
READING = (
    "Above: 32-byte sectors per global request. Below: wavefronts per shared-memory "
    "instruction. The open symbol is the fewest that could carry the data, the filled one what "
    "the addresses ask for (theory), the line between them waste: uncoalesced loads, bank "
    "conflicts."
)

_SYMBOLS = {
    ("load", "A"): "circle",
    ("load", "B"): "square",
    ("load", "C"): "triangle-up",
    ("store", "A"): "star",
    ("store", "B"): "pentagon",
    ("store", "C"): "diamond",
}
_Panel = tuple[str, tuple[Record, ...]]  # a memory space, and the rungs that access it
_UNITS = {
    "global": "sectors per global request",
    "shared": "wavefronts per shared access",
}
GAP_ROWS = 2.6  # rows of room between the panels, for the axis of the upper one
_LANE = 0.2  # of a row, between the accesses of one rung
_TICKS = (1, 2, 4, 8, 16, 32, 64, 128)


def figure(view: View) -> go.Figure:
    """One row per rung and one symbol per operand: ideal and actual, global above shared."""
    title = f"{TITLE}, {text.shape(view.shape)}"
    panels = [(space, rows) for space in ("global", "shared") if (rows := _rows(view.rungs, space))]
    if not panels:
        return style.empty(title, "No rung has access patterns at this shape.")
    lanes = [
        trace
        for number, (space, rows) in enumerate(panels)
        for trace in _panel(view.profile, space, rows, number)
    ]
    row_count = sum(len(rows) for _, rows in panels)
    return style.figure(
        title,
        [*lanes, *_keys(panels)],
        height=190 + 60 * len(panels) + 52 * row_count,
        **_axes(panels),
    )


def _rows(records: tuple[Record, ...], space: str) -> tuple[Record, ...]:
    return tuple(record for record in records if _patterns(record, space))


def _patterns(record: Record, space: str) -> tuple[Pattern, ...]:
    patterns = record.theory.patterns if record.theory else ()
    return tuple(pattern for pattern in patterns if pattern.space == space)


def _domains(panels: Sequence[_Panel]) -> list[tuple[float, float]]:
    """The vertical part of the figure that each panel takes, by its rows, from the top."""
    total = sum(len(rows) for _, rows in panels)
    gap = GAP_ROWS / (GAP_ROWS + total) if len(panels) > 1 else 0
    top, domains = 1.0, []
    for _, rows in panels:
        height = (1 - gap) * len(rows) / total
        domains.append((max(0.0, top - height), top))
        top -= height + gap
    return domains


def _axes(panels: Sequence[_Panel]) -> style.Part:
    axes: style.Part = {}
    for number, ((space, rows), domain) in enumerate(zip(panels, _domains(panels), strict=True)):
        name = str(number + 1) if number else ""
        axes[f"xaxis{name}"] = style.axis(
            _UNITS[space],
            type="log",
            range=[log10(0.8), log10(1.3 * max(2, _most(space, rows)))],
            tickvals=list(_TICKS),
            ticktext=list(map(str, _TICKS)),
            anchor=f"y{name}",
        )
        axes[f"yaxis{name}"] = style.rows_axis(rows, domain=list(domain), anchor=f"x{name}")
    return axes


def _most(space: str, rows: tuple[Record, ...]) -> int:
    return max(_actual(one) or 1 for record in rows for one in _patterns(record, space))


def _panel(
    profile: Profile, space: str, rows: tuple[Record, ...], number: int
) -> Iterator[style.Part]:
    looks, name = style.looks(profile), str(number + 1) if number else ""
    for row, record in enumerate(rows):
        patterns = _patterns(record, space)
        for place, pattern in enumerate(patterns):
            lane = row + _LANE * (place - (len(patterns) - 1) / 2)
            trace = _lane(record, pattern, lane, looks[record.label].colour)
            yield trace | {"xaxis": f"x{name}", "yaxis": f"y{name}"}


def _lane(record: Record, pattern: Pattern, lane: float, colour: str) -> style.Part:
    symbol = _SYMBOLS[pattern.operation, pattern.operand]
    about = _about(record, pattern)
    return style.scatter(
        "lines+markers",
        [_ideal(pattern), _actual(pattern)],
        [lane, lane],
        [about, about],
        name=style.plain(f"{record.label} {_access(pattern)}"),
        showlegend=False,
        line={"color": colour, "width": 2},
        marker=style.marker(
            colour,
            [f"{symbol}-open", symbol],
            [13, 7],
            opacity=1,  # Plotly makes markers of several sizes translucent
            line={"color": colour, "width": 1.5},
        ),
    )


def _actual(pattern: Pattern) -> int | None:
    return pattern.sectors if pattern.space == "global" else pattern.wavefronts


def _ideal(pattern: Pattern) -> int | None:
    return pattern.ideal_sectors if pattern.space == "global" else pattern.ideal_wavefronts


def _access(pattern: Pattern) -> str:
    return f"{pattern.operation} {pattern.operand}"


def _about(record: Record, pattern: Pattern) -> str:
    unit = "sectors" if pattern.space == "global" else "wavefronts"
    actual, ideal = _actual(pattern), _ideal(pattern)
    return style.hover(
        f"{record.label}: {pattern.space} {_access(pattern)} (theory)",
        f"{text.count(actual)} {unit}, ideal {text.count(ideal)}",
        f"{text.ratio(actual / ideal)} the ideal" if actual and ideal else "",
        f"{pattern.instruction_bytes} B per lane",
        f"{text.count(pattern.cycles)} cycles of the load/store unit each",
        f"{text.count(pattern.requests)} requests of the launch",
    )


def _keys(panels: Sequence[_Panel]) -> Iterator[style.Part]:
    used = {
        (pattern.operation, pattern.operand)
        for space, rows in panels
        for record in rows
        for pattern in _patterns(record, space)
    }
    for access, symbol in _SYMBOLS.items():
        if access in used:
            yield style.key(" ".join(access), symbol)
    yield style.key("ideal", "circle-open")
