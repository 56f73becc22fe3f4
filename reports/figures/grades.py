"""Theory, simulation and hardware side by side: accesses, requests, sectors and wavefronts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class _Quantity:
    """One counter of all variants: a score for each record, None where it has none."""

    name: str
    records: Sequence[Record]
    scores: Sequence[Score | None]

    @property
    def meaning(self) -> str:
        return ALL_COUNTERS[self.name].meaning

    @property
    def by_grade(self) -> list[list[int | None]]:
        """The counts of each grade; a logarithmic axis has no zero."""
        return [[getattr(one, field, None) or None for one in self.scores] for field, *_ in _GRADES]

    @property
    def counts(self) -> list[int]:
        return [count for counts in self.by_grade for count in counts if count]

    @property
    def exponents(self) -> list[float]:
        """Range of the axis, with a decade and more for the shortest bar: near counts look near."""
        return [floor(log10(min(self.counts))) - 1, log10(max(self.counts)) + ROOM]

    @property
    def hovers(self) -> list[list[str]]:
        return [
            [
                _about(record, score, field, grade)
                for record, score in zip(self.records, self.scores, strict=True)
            ]
            for field, grade, _, _ in _GRADES
        ]


def figure(view: View) -> go.Figure:
    """Bars of every grade per variant on a log axis; a menu chooses the quantity."""
    title = style.title_of(TITLE, view)
    scores = {label: {one.counter: one for one in own} for label, own in view.scores.items()}
    records = tuple(r for r in view.records if r.label in scores)
    quantities = (
        _Quantity(name=name, records=records, scores=[scores[r.label].get(name) for r in records])
        for name in QUANTITIES
    )
    known = [one for one in quantities if one.counts]
    if not known:
        return style.empty(title, "No counter is known at this shape: profile with simulation.")
    shown = next((one for one in known if one.name == FIRST), known[0])
    return style.figure(
        title,
        _bars(shown),
        height=170 + style.ROW_PX * len(records),
        barmode="group",
        bargap=0.25,
        xaxis=style.axis(
            shown.meaning, type="log", dtick=1, tickformat="~s", range=shown.exponents
        ),
        yaxis=style.rows_axis(records),
        updatemenus=style.menu(
            known.index(shown),
            [
                (
                    QUANTITIES[one.name],
                    {"x": one.by_grade, "hovertext": one.hovers},
                    {"xaxis.title.text": one.meaning, "xaxis.range": one.exponents},
                )
                for one in known
            ],
        ),
    )


def _about(record: Record, score: Score | None, field: str, grade: str) -> str:
    count = getattr(score, field, None)
    if score is None or count is None:
        return ""
    return style.hover(
        f"{record.label} ({grade})",
        f"{count:,} {ALL_COUNTERS[score.counter].meaning}",
        score.counter,
        *style.broken(score.reason or ""),
    )


def _bars(shown: _Quantity) -> Iterator[style.Part]:
    for (_, grade, colour, hatch), x, about in zip(
        _GRADES, shown.by_grade, shown.hovers, strict=True
    ):
        yield style.bars(grade, x, about, colour, pattern=style.hatch(hatch, "#1b1f24"))
