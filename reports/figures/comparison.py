"""Times of a comparison: parts of two launches, or the change of each record of two profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from analysis.comparison.runs import Pair, RunComparison
from analysis.errors import shortened
from analysis.records.launch import LaunchRecord
from reports import style, text
from reports.figures.launch import BAR_PX, COLOURS, LEAST_NUMBERED
from reports.sections.change_bars import divided
from reports.sections.changes import TimeShift, shift
from reports.sections.time_parts import Part, PartClass

SIDES = ("before", "after")


def times(comparison: RunComparison) -> style.Figure:
    """Two stacked bars of launches; of profiles a bar per record, in % of its time before."""
    before, after = comparison.before, comparison.after
    if isinstance(before, LaunchRecord) and isinstance(after, LaunchRecord):
        return _of_launches(comparison.pairs[0], before, after)
    return _of_profiles(comparison)


def _of_launches(pair: Pair, before: LaunchRecord, after: LaunchRecord) -> style.Figure:
    title = f"Parts of the time of {shortened(pair.label)}, before and after"
    moved = pair.causes[0].effect if pair.causes else None
    drawn = divided(before, after, moved)
    if drawn is None:
        return style.empty(title, "The time is not known on both sides.")
    longest_s = max(sum(part.time_s for part, _ in one) for one in drawn)
    names = dict.fromkeys((part.name, kind) for one in drawn for part, kind in one)
    return style.figure(
        title,
        [_part(name, kind, drawn, longest_s) for name, kind in names],
        height=280,
        barmode="stack",
        legend={"orientation": "h", "y": -0.4, "traceorder": "normal"},
        xaxis=style.axis(f"time, {text.time_unit(longest_s)[1]}"),
        yaxis=style.axis("", autorange="reversed", showgrid=False, ticks=""),
    )


def _part(
    name: str, kind: PartClass, drawn: Sequence[Sequence[tuple[Part, PartClass]]], longest_s: float
) -> style.Part:
    """One part of both times, 0 on a side without it."""
    scale, unit = text.time_unit(longest_s)
    of = [sum(part.time_s for part, _ in one if part.name == name) for one in drawn]
    values = [text.three_digits(time_s / scale) for time_s in of]
    return {
        "type": "bar",
        "orientation": "h",
        "x": [time_s / scale for time_s in of],
        "y": list(SIDES),
        "name": style.plain(name),
        "text": [
            value if time_s >= LEAST_NUMBERED * longest_s else ""
            for value, time_s in zip(values, of, strict=True)
        ],
        "textposition": "inside",
        "textangle": 0,
        "marker": {"color": COLOURS[kind]},
        "hoverinfo": "text",
        "hovertext": [
            style.hover(f"{name}, {side}", f"{value} {unit}")
            for side, value in zip(SIDES, values, strict=True)
        ],
    }


def _of_profiles(comparison: RunComparison) -> style.Figure:
    title = "Change of each time"
    known = [(pair, found) for pair in comparison.pairs if (found := shift(pair))]
    if not known:
        return style.empty(title, "No time is known on both sides.")
    places = list(range(len(known)))
    several = len({pair.shape for pair, _ in known}) > 1
    names = [_name(pair, with_shape=several) for pair, _ in known]
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": title,
        "x": [100 * (found.after_s / found.before_s - 1) for _, found in known],
        "y": places,
        "marker": {"color": [_colour(found) for _, found in known]},
        "text": [found.words for _, found in known],
        "textposition": "inside",
        "textangle": 0,
        "hoverinfo": "text",
        "hovertext": [
            style.hover(name, *_times(found)) for name, (_, found) in zip(names, known, strict=True)
        ],
        "showlegend": False,
    }
    return style.figure(
        title,
        [bars],
        height=120 + BAR_PX * len(known),
        uniformtext={"minsize": 11, "mode": "hide"},  # of bars that are too short for it
        xaxis=style.axis("change of time, %"),
        yaxis=style.axis(
            "",
            tickmode="array",
            tickvals=places,
            ticktext=list(map(style.plain, names)),
            range=[len(known) - 0.5, -0.5],
            showgrid=False,
            ticks="",
        ),
    )


def _name(pair: Pair, *, with_shape: bool) -> str:
    label = shortened(pair.label)
    return f"{label}, {text.shape(pair.shape)}" if with_shape and pair.shape else label


def _times(found: TimeShift) -> tuple[str, str]:
    grade = "measured" if found.is_measured else "predicted"
    one = text.seconds if found.is_measured else text.predicted_seconds
    return f"{one(found.before_s)} → {one(found.after_s)} {grade}", found.words


def _colour(found: TimeShift) -> str:
    """Orange costs time, blue gives it back, as in all figures."""
    kinds = {True: PartClass.CAUSE, False: PartClass.MISSING, None: PartClass.REST}
    return COLOURS[kinds[found.is_worse]]


FIGURES: Mapping[str, Callable[[RunComparison], style.Figure]] = MappingProxyType({"times": times})
