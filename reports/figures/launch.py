"""Figures of one launch, with the data that its page draws: `FIGURES` has them by name.

Each is a function from a `LaunchReport` to a figure; `Execution.figure(name)` gives it as one of
Plotly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from analysis.errors import shortened
from reports import style, text
from reports.sections import launch_memory as memory
from reports.sections.kernel_source import line_rows
from reports.sections.launch_facts import occupancy_bars
from reports.sections.launch_report import LaunchReport
from reports.sections.time_parts import Part, PartClass, parts
from reports.source_lines import line_text
from reports.svg.busy import Bar
from reports.svg.memory_flow import Edge, MemoryFlow
from reports.svg.roofline import LaunchRoofline, RooflineLevel

# Orange costs time, blue gives it back, grey is everything else. Readable on white and near-black.
COLOURS = {
    PartClass.CAUSE: "#d9622b",
    PartClass.ROOF: "#5f7391",
    PartClass.AVOIDABLE: "#93a0b5",
    PartClass.REST: "#b9c1ce",
    PartClass.UNEXPLAINED: "#b9c1ce",
    PartClass.MISSING: "#4a86d8",
}
BAR_PX = 34
MOST_LINES = 20
LEAST_NUMBERED = 0.06  # of the time: no number fits into a narrower part


def time(report: LaunchReport) -> style.Figure:
    """One stacked bar: the parts that sum to the time, the largest avoidable one in orange."""
    title = f"Parts of the time of {shortened(report.name)}"
    found = parts(report)
    if not found:
        return style.empty(title, "No time is known.")
    whole_s = sum(part.time_s for part in found)
    return style.figure(
        title,
        [_part(part, whole_s) for part in found],
        height=220,
        barmode="stack",
        legend={"orientation": "h", "y": -0.6, "traceorder": "normal"},
        xaxis=style.axis(f"time, {text.time_unit(whole_s)[1]}"),
        yaxis={"visible": False},
    )


def _part(part: Part, whole_s: float) -> style.Part:
    scale, unit = text.time_unit(whole_s)
    value = text.three_digits(part.time_s / scale)
    return {
        "type": "bar",
        "orientation": "h",
        "x": [part.time_s / scale],
        "y": [0],
        "name": style.plain(part.name),
        "text": value if part.time_s >= LEAST_NUMBERED * whole_s else "",
        "textposition": "inside",
        "textangle": 0,
        "marker": {"color": COLOURS[part.kind]},
        "hoverinfo": "text",
        "hovertext": [style.hover(part.name, f"{value} {unit}")],
    }


def units(report: LaunchReport) -> style.Figure:
    """A bar per unit: the share of the time for which it is busy."""
    title = f"Busy, % of the time of {shortened(report.name)}"
    rows = memory.busy_bars(report)
    if not rows:
        return style.empty(title, "No time was predicted.")
    return _bars(title, rows, [100 * row.share for row in rows], range=[0, 100], label="%")


def occupancy(report: LaunchReport) -> style.Figure:
    """A bar per resource: the blocks per SM that it allows."""
    title = f"Blocks of {shortened(report.name)} per SM that each resource allows"
    rows = occupancy_bars(report)
    if not rows:
        return style.empty(title, "Occupancy is unknown without grid, block and device.")
    return _bars(title, rows, [int(row.value.replace(",", "")) for row in rows], label="blocks")


def _bars(
    title: str,
    rows: Sequence[Bar],
    values: Sequence[float],
    label: str,
    about: Sequence[str] | None = None,
    **axis: object,
) -> style.Figure:
    of_axis = style.axis(label, **({"rangemode": "tozero"} | axis))
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": title,
        "x": values,
        "y": list(range(len(rows))),
        "marker": {"color": [COLOURS[PartClass(row.class_)] for row in rows]},
        "hoverinfo": "text",
        "hovertext": about or [style.hover(row.name, row.value) for row in rows],
        "text": [row.value for row in rows],
        "textposition": "auto",
        "showlegend": False,
    }
    return style.figure(
        title, [bars], height=100 + BAR_PX * len(rows), xaxis=of_axis, yaxis=_names(rows)
    )


def _names(rows: Sequence[Bar]) -> style.Part:
    return style.axis(
        "",
        tickmode="array",
        tickvals=list(range(len(rows))),
        ticktext=[style.plain(row.name) for row in rows],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        ticks="",
    )


def roofline(report: LaunchReport) -> style.Figure:
    """Log-log: a roof and a point per memory that moves bytes, all points at the launch's rate."""
    title = f"Roofline of {shortened(report.name)}"
    shown = memory.launch_roofline(report)
    if shown is None:
        return style.empty(title, "No time was predicted, or no bytes move at L2 or DRAM.")
    return style.figure(
        title,
        list(_roofs(shown)),
        height=420,
        xaxis=style.axis(shown.x_label, type="log"),
        yaxis=style.axis(shown.y_label, type="log"),
    )


def _roofs(shown: LaunchRoofline) -> Iterator[style.Part]:
    peak = shown.peak / shown.scale
    ridges = [shown.peak / level.bytes_per_s * shown.per_bytes for level in shown.levels]
    least = min(*map(shown.x, shown.levels), *ridges) / 4
    most = max(*map(shown.x, shown.levels), *ridges) * 4
    for level, ridge in zip(shown.levels, ridges, strict=True):
        colour = _colour(level)
        yield style.scatter(
            "lines",
            [least, ridge, most],
            [peak * least / ridge, peak, peak],
            f"{level.name}: {level.bandwidth}; {shown.peak_label}",
            name=level.name,
            line={"color": colour, "width": 1.5},
            showlegend=False,
        )
        yield style.scatter(
            "markers+text",
            [shown.x(level)],
            [shown.rate / shown.scale],
            style.hover(level.name, level.bandwidth, shown.rate_label),
            name=level.name,
            text=[level.name],
            textposition="top center",
            marker={"color": colour, "size": 11},
        )


def _colour(level: RooflineLevel) -> str:
    return COLOURS[PartClass.CAUSE if level.is_hot else PartClass.ROOF]


def flow(report: LaunchReport) -> style.Figure:
    """A bar per memory and direction: the bytes that the launch moves."""
    title = f"Bytes that {shortened(report.name)} moves"
    shown = memory.launch_flow(report)
    if shown is None:
        return style.empty(title, "The launch accesses no memory, or was not executed on the CPU.")
    rows, moved = [], []
    for name, edges in _edges(shown).items():
        for edge in filter(None, edges):
            kind = PartClass.CAUSE if edge.is_hot else PartClass.ROOF
            rows.append(Bar(name=f"{name}, {edge.action}", share=1, value=edge.size, class_=kind))
            moved.append(edge.moved_bytes)
    return _bars(title, rows, moved, label="bytes", tickformat="~s")


def _edges(shown: MemoryFlow) -> Mapping[str, tuple[Edge | None, ...]]:
    return {
        "shared memory": (shown.shared_load, shown.shared_store),
        "L1": (shown.l1_load, shown.l1_store),
        "L2": (shown.l2_read, shown.l2_write),
        "DRAM": (shown.dram_read, shown.dram_write),
    }


def lines(report: LaunchReport) -> style.Figure:
    """A bar per source line: its predicted cost or, without a time, its warp instructions."""
    title = f"Source lines of {shortened(report.name)}"
    found = list(line_rows(report, MOST_LINES))
    if not found:
        return style.empty(title, "No source line is known, or the launch was not counted.")
    has_costs = bool(report.predicted and report.predicted.lines)
    scale, unit = text.time_unit(report.predicted.time_s) if report.predicted else (1.0, "")
    values = [(row.cost_s or 0.0) / scale if has_costs else row.executed for row in found]
    rows = [
        Bar(
            name=f"line {row.number}",
            share=1,
            value=text.three_digits(value) if has_costs else f"{row.executed:,}",
            class_=PartClass.CAUSE if row.is_hot else PartClass.ROOF,
        )
        for row, value in zip(found, values, strict=True)
    ]
    about = [
        style.hover(
            f"line {row.number}: {shortened(line_text(report.source, row.number))}", one.value
        )
        for row, one in zip(found, rows, strict=True)
    ]
    label = unit if has_costs else "warp instructions"
    return _bars(title, rows, values, label=label, about=about)


FIGURES: Mapping[str, Callable[[LaunchReport], style.Figure]] = MappingProxyType(
    {
        "time": time,
        "units": units,
        "roofline": roofline,
        "memory": flow,
        "lines": lines,
        "occupancy": occupancy,
    }
)
