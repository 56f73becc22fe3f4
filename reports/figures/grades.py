"""Theory, simulation and hardware side by side: accesses, requests, sectors and wavefronts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10

import plotly.graph_objects as go

from analysis.records.counters import ALL_COUNTERS
from analysis.records.profile import Record, Score
from reports import style
from reports.ladder import View

TITLE = "Theory, simulation, hardware"
READING = (
    "Choose a quantity above the plot. Three bars per variant: the closed form, what the simulator "
    "counted while executing the machine code, and what the hardware's counters showed. Bars of "
    "one length agree; each tenfold is one step of the axis, and a missing bar is zero or was not "
    "obtained."
)

# By counter, what the menu calls it: short enough for a telephone
QUANTITIES = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "load requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "load sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "store requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "store sectors",
    "smsp__sass_inst_executed_op_shared_ld.sum": "shared loads",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "shared load wavefronts",
    "smsp__sass_inst_executed_op_shared_st.sum": "shared stores",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "shared store wavefronts",
}
ROOM = 0.1  # of a step, behind the longest bar
FIRST = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
# (field of a score, name, colour, hatch): no grade is told by colour alone
_GRADES = (
    ("theory", "theory", "#56b4e9", ""),
    ("simulated", "simulated", "#e69f00", "/"),
    ("measured", "hardware", "#0072b2", "."),
)


def figure(view: View) -> go.Figure:
    """Bars of every grade per variant on a log axis; a menu chooses the quantity."""
    title = style.title_of(TITLE, view)
    found = view.scores
    records = tuple(r for r in view.records if r.label in found)
    known = [name for name in QUANTITIES if any(_values(records, found, name))]
    if not known:
        return style.empty(title, "No counter is known at this shape: profile with simulation.")
    first = known.index(FIRST) if FIRST in known else 0
    return style.figure(
        title,
        _bars(records, found, known[first]),
        height=170 + style.ROW_PX * len(records),
        barmode="group",
        bargap=0.25,
        xaxis=style.axis(
            _meaning(known[first]),
            type="log",
            dtick=1,
            tickformat="~s",
            range=_range(records, found, known[first]),
        ),
        yaxis=style.rows_axis(records),
        updatemenus=style.menu(
            first,
            [
                (
                    QUANTITIES[name],
                    {
                        "x": _of_grades(records, found, name),
                        "hovertext": _hovers(records, found, name),
                    },
                    {
                        "xaxis.title.text": _meaning(name),
                        "xaxis.range": _range(records, found, name),
                    },
                )
                for name in known
            ],
        ),
    )


Scores = Mapping[str, tuple[Score, ...]]


def _meaning(name: str) -> str:
    return ALL_COUNTERS[name].meaning


def _score(found: Scores, record: Record, name: str) -> Score | None:
    return next((one for one in found[record.label] if one.counter == name), None)


def _values(records: Sequence[Record], found: Scores, name: str) -> list[int]:
    scores = filter(None, (_score(found, record, name) for record in records))
    return [getattr(one, field) or 0 for one in scores for field, *_ in _GRADES]


def _range(records: Sequence[Record], found: Scores, name: str) -> list[float]:
    """Exponents of the axis, a step and more for the shortest bar: near counts look near."""
    counts = [value for value in _values(records, found, name) if value]
    return [floor(log10(min(counts))) - 1, log10(max(counts)) + ROOM]


def _of_grades(records: Sequence[Record], found: Scores, name: str) -> list[list[int | None]]:
    scores = [_score(found, record, name) for record in records]
    # a log axis has no zero
    return [[getattr(o, field, None) or None for o in scores] for field, *_ in _GRADES]


def _hovers(records: Sequence[Record], found: Scores, name: str) -> list[list[str]]:
    return [
        [_about(record, _score(found, record, name), field, grade) for record in records]
        for field, grade, _, _ in _GRADES
    ]


def _about(record: Record, score: Score | None, field: str, grade: str) -> str:
    count = getattr(score, field, None)
    if score is None or count is None:
        return ""
    return style.hover(
        f"{record.label} ({grade})",
        f"{count:,} {_meaning(score.counter)}",
        score.counter,
        *style.broken(score.reason or ""),
    )


def _bars(records: Sequence[Record], found: Scores, name: str) -> Iterator[style.Part]:
    values, hovers = _of_grades(records, found, name), _hovers(records, found, name)
    for (_, grade, colour, hatch), x, about in zip(_GRADES, values, hovers, strict=True):
        yield style.bars(grade, x, about, colour, pattern=style.hatch(hatch, "#1b1f24"))
