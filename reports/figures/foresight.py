"""How well predictions order a space: the predicted time of each configuration over the swept."""

from __future__ import annotations

import plotly.graph_objects as go

from analysis.tuning import TunedShape
from reports import style, text

TITLE = "Predicted and measured"
READING = (
    "Each mark is one configuration that was measured: what the sweep measured to the right, what "
    "was predicted before upwards, on the line where both are equal. A star was not beaten in the "
    "final. What matters for tuning is the order: the further left, the lower it should be."
)


def figure(shape: TunedShape) -> go.Figure:
    """Predicted over swept times, log-log, with the line on which they are equal."""
    title = f"{TITLE}, {text.shape(shape.shape)}"
    both = [one for one in shape.candidates if one.swept and one.predicted]
    if not both:
        return style.empty(title, "No configuration was both predicted and measured.")
    pairs = [
        (one.swept.median_s, one.predicted.time_s) for one in both if one.swept and one.predicted
    ]
    ends = [min(map(min, pairs)) / 1.2, max(map(max, pairs)) * 1.2]
    return go.Figure(
        data=[
            {
                "type": "scatter",
                "mode": "lines",
                "x": ends,
                "y": ends,
                "name": "equal",
                "line": {"color": style.INK, "width": 1.5},
                "hoverinfo": "skip",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "configurations",
                "x": [measured for measured, _ in pairs],
                "y": [predicted for _, predicted in pairs],
                "marker": {
                    "color": ["#d55e00" if one.is_tied else "#0072b2" for one in both],
                    "symbol": ["star" if one.is_tied else "circle" for one in both],
                    "size": 11,
                },
                "hoverinfo": "text",
                "hovertext": [
                    style.hover(
                        one.label,
                        f"{text.seconds(predicted)} (predicted)",
                        f"{text.seconds(measured)} (measured, sweep)",
                        text.change(predicted / measured - 1),
                    )
                    for one, (measured, predicted) in zip(both, pairs, strict=True)
                ],
            },
        ],
        layout=style.layout(
            title,
            height=480,
            xaxis=_axis("measured by the sweep"),
            yaxis=_axis("predicted"),
        ),
    )


def _axis(grade: str) -> dict[str, object]:
    return style.axis(f"time, {grade}, s", type="log", dtick="D2", tickformat="~s")
