"""How well predictions order a space: the predicted time of each configuration over the swept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.tuning import TunedShape
from reports import style, text

TITLE = "Predicted and measured"
READING = (
    "Each mark is one configuration that was measured: what the sweep measured to the right, what "
    "was predicted before upwards, on the line where both are equal. A star was not beaten in the "
    "final. What matters for tuning is the order: the further left, the lower it should be."
)

# Okabe and Ito's colours, and a symbol each
_LOOKS = {
    "slower, or wrong": style.Look(colour="#0072b2", symbol="circle"),
    "tied for the best": style.Look(colour="#d55e00", symbol="star"),
}


def figure(shape: TunedShape) -> go.Figure:
    """Predicted over swept times, log-log, with the line on which they are equal."""
    title = f"{TITLE}, {text.shape(shape.shape)}"
    points = list(_points(shape))
    if not points:
        return style.empty(title, "No configuration was both predicted and measured.")
    times = [time_s for point in points for time_s in (point.measured_s, point.predicted_s)]
    return go.Figure(
        data=[
            style.diagonal([min(times) / 1.2, max(times) * 1.2]),
            *(_marks(kind, [p for p in points if p.kind == kind]) for kind in _LOOKS),
        ],
        layout=style.layout(
            title,
            height=480,
            xaxis=_axis("measured by the sweep"),
            yaxis=_axis("predicted"),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Point:
    """One configuration."""

    label: str
    kind: str
    measured_s: float
    predicted_s: float


def _points(shape: TunedShape) -> Iterator[_Point]:
    for one in shape.candidates:
        if one.swept and one.predicted:
            yield _Point(
                label=one.label,
                kind="tied for the best" if one.is_tied else "slower, or wrong",
                measured_s=one.swept.median_s,
                predicted_s=one.predicted.time_s,
            )


def _marks(kind: str, points: Sequence[_Point]) -> style.Part:
    look = _LOOKS[kind]
    return style.scatter(
        "markers",
        [point.measured_s for point in points],
        [point.predicted_s for point in points],
        [
            style.hover(
                point.label,
                f"{text.predicted_seconds(point.predicted_s)} (predicted)",
                f"{text.seconds(point.measured_s)} (measured, sweep)",
                text.change(point.predicted_s / point.measured_s - 1),
            )
            for point in points
        ],
        name=kind,
        marker={"color": look.colour, "symbol": look.symbol, "size": 11},
    )


def _axis(grade: str) -> style.Part:
    return style.axis(f"time, {grade}, s", type="log", dtick="D2", tickformat="~s")
