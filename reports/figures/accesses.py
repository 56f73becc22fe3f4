"""Figure of the bytes that each rung moves per element of C, from global and shared memory."""

from __future__ import annotations

import plotly.graph_objects as go

from analysis.access import AccessCounts, Operation, Space
from analysis.records.profile import Record
from reports import style, text
from reports.ladder import View

TITLE = "Accesses per element of C"
READING = (
    "Floats that all threads move, divided by the elements of C (theory). Each tenfold is one "
    "step of the axis; a missing bar is zero. Tiles move loads from global to shared memory, "
    "tiles of a thread move them on into registers. Instructions count a float4 once."
)

_Series = tuple[Space, Operation, str, str]  # with a colour and a hatch
_SERIES: tuple[_Series, ...] = (
    ("global", "load", style.GLOBAL_COLOUR, ""),
    ("global", "store", style.GLOBAL_COLOUR, "/"),
    ("shared", "load", style.SHARED_COLOUR, ""),
    ("shared", "store", style.SHARED_COLOUR, "/"),
)
_ELEMENTS = "floats per element of C"
_INSTRUCTIONS = "thread-level instructions per element of C"


def figure(view: View) -> go.Figure:
    """Four bars per rung on a log axis; a menu changes from floats to instructions."""
    title = f"{TITLE}, {text.shape(view.shape)}"
    records = tuple(record for record in view.rungs if record.theory)
    if not records:
        return style.empty(title, "No rung has a theory at this shape.")
    instructions = [_values(records, series, instructions=True) for series in _SERIES]
    elements = [_values(records, series, instructions=False) for series in _SERIES]
    return style.figure(
        title,
        [_bars(records, *row) for row in zip(_SERIES, elements, strict=True)],
        height=150 + 2 * style.ROW_PX * len(records),
        barmode="group",
        bargap=0.25,
        xaxis=style.axis(_ELEMENTS, type="log", dtick=1, tickformat=","),
        yaxis=style.rows_axis(records),
        updatemenus=style.menu(
            [
                ("floats", {"x": elements}, {"xaxis.title.text": _ELEMENTS}),
                ("instructions", {"x": instructions}, {"xaxis.title.text": _INSTRUCTIONS}),
            ]
        ),
    )


def _values(
    records: tuple[Record, ...],
    series: _Series,
    *,
    instructions: bool,
) -> list[float | None]:
    space, operation, _, _ = series
    counts = [record.theory.accesses for record in records if record.theory]
    per = AccessCounts.instructions_per_c_element if instructions else AccessCounts.per_c_element
    # a log axis has no zero
    return [float(per(count, space, operation)) or None for count in counts]


def _bars(
    records: tuple[Record, ...],
    series: _Series,
    values: list[float | None],
) -> style.Part:
    space, operation, colour, hatch = series
    return style.bars(
        f"{space} {operation}s",
        values,
        [_about(record, space, operation) for record in records],
        colour,
        style.hatch(hatch, "#ffffff"),
    )


def _about(record: Record, space: Space, operation: Operation) -> str:
    if record.theory is None:
        return ""
    counts = record.theory.accesses
    return style.hover(
        f"{record.label}: {space} {operation}s (theory)",
        f"{text.count(counts.per_c_element(space, operation))} {_ELEMENTS}",
        f"{text.count(counts.instructions_per_c_element(space, operation))} {_INSTRUCTIONS}",
        f"{text.count(counts.elements(space, operation))} floats in all",
        f"{text.count(counts.instructions(space, operation))} instructions in all",
    )
