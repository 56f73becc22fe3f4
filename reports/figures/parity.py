"""Predicted against counted: every counter of every variant as one point beside the diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.comparison.scorecard import predicted_and_reference
from analysis.records.counters import ALL_COUNTERS, CounterClass
from analysis.records.profile import Grade, Score, Verdict
from reports import style, text
from reports.ladder import View

TITLE = "Parity"
READING = (
    "Each point is one counter of one variant: predicted upwards, the number that it is held "
    "against to the right, so that on the line both are equal. What they are stands at the axes. "
    "An open symbol is apart: farther than its class allows, and for a reason that is not known. "
    "The menu also shows the ratio, where small errors can be seen. Counts of 0 have no place "
    "on these axes."
)

# Okabe and Ito's blue, orange and green; each class has a symbol too
_LOOKS: dict[CounterClass, style.Look] = {
    CounterClass.EXACT: style.Look(colour="#0072b2", symbol="circle"),
    CounterClass.NOISY: style.Look(colour="#e69f00", symbol="diamond"),
    CounterClass.MODELLED: style.Look(colour="#009e73", symbol="square"),
}
_MEANINGS = {
    CounterClass.EXACT: "exact: equal to the last digit",
    CounterClass.NOISY: "noisy: the hardware adds arbitration",
    CounterClass.MODELLED: "modelled: graded by error",
}


@dataclass(frozen=True, kw_only=True)
class _Point:
    label: str
    score: Score
    predicted: int
    reference: int


def figure(view: View) -> go.Figure:
    """Log-log, one trace per class of counter; a button changes to the ratio of both numbers.

    The reference is the hardware's count if there is one, else the closed form.
    """
    title = style.title_of(TITLE, view)
    # what is apart is drawn last: on top
    points = sorted(_points(view.scores), key=_is_unexplained)
    if not points:
        return style.empty(title, "No counter is known by two grades at this shape.")
    traces = [
        (look, own)
        for name, look in _LOOKS.items()
        if (own := [(name, point) for point in points if point.score.grade == name])
    ]
    ends = [min(_both(points)), max(_both(points))]
    of_counts = [ends, *([p.predicted for _, p in own] for _, own in traces)]
    of_ratios = [[1, 1], *([p.predicted / p.reference for _, p in own] for _, own in traces)]
    predicted, reference = _names(points)
    counts, ratios = f"{predicted}, count", f"{predicted} over {reference}"
    return style.figure(
        title,
        [style.diagonal(ends), *(_trace(look, own) for look, own in traces), *_keys(points)],
        height=560,
        xaxis=style.axis(f"{reference}, count", type="log", dtick=1, tickformat="~s"),
        yaxis=style.axis(counts, type="log", dtick=1, tickformat="~s"),
        updatemenus=style.buttons(
            ("counts", {"y": of_counts}, _axis(counts, "log", dtick=1, tickformat="~s")),
            ("ratio", {"y": of_ratios}, _axis(ratios, "linear", dtick=None, tickformat="")),
        ),
    )


def _points(found: dict[str, tuple[Score, ...]]) -> Iterator[_Point]:
    """What two grades have; where hardware counted some counters, only those that it counted."""
    is_measured = any(one.measured is not None for own in found.values() for one in own)
    for label, own in found.items():
        for one in own:
            pair = predicted_and_reference(one)
            if pair and all(pair) and (one.measured is not None or not is_measured):
                yield _Point(label=label, score=one, predicted=pair[0], reference=pair[1])


def _both(points: list[_Point]) -> list[int]:
    return [count for point in points for count in (point.predicted, point.reference)]


def _names(points: list[_Point]) -> tuple[str, str]:
    """What the two axes are."""
    if all(point.score.measured is None for point in points):
        return Grade.SIMULATED, "closed form (theory)"
    grades = dict.fromkeys(
        Grade.SIMULATED if point.score.simulated is not None else "closed form" for point in points
    )
    return " or ".join(grades), "counted by hardware"


def _axis(title: str, kind: str, *, dtick: int | None, tickformat: str) -> style.Part:
    return {
        "yaxis.title.text": title,
        "yaxis.type": kind,
        "yaxis.dtick": dtick,
        "yaxis.tickformat": tickformat,
        "yaxis.autorange": True,
    }


def _trace(look: style.Look, own: list[tuple[CounterClass, _Point]]) -> style.Part:
    return style.scatter(
        "markers",
        [point.reference for _, point in own],
        [point.predicted for _, point in own],
        [_about(point) for _, point in own],
        name=_MEANINGS[own[0][0]],
        marker=style.marker(
            look.colour,
            [look.symbol + ("-open" if _is_unexplained(point) else "") for _, point in own],
            10,
            opacity=0.85,
        ),
    )


def _keys(points: list[_Point]) -> Iterator[style.Part]:
    if any(map(_is_unexplained, points)):
        yield style.key("open: apart, not explained", "circle-open")


def _is_unexplained(point: _Point) -> bool:
    return point.score.is_apart


def _about(point: _Point) -> str:
    score = point.score
    return style.hover(
        f"{point.label}: {ALL_COUNTERS[score.counter].meaning}",
        score.counter,
        *(f"{grade}: {count:,}" for grade, count in score.by_grade.items()),
        f"ratio: {text.ratio(score.ratio)} ({text.change((score.ratio or 1) - 1)})",
        f"{score.grade}: {_word(score)}",
        *style.broken(score.reason or ""),
    )


def _word(score: Score) -> str:
    is_explained = score.verdict == Verdict.APART and score.is_explained
    return "apart, explained" if is_explained else score.verdict
