"""The GPU's state over a run: clock, temperature and power, as its management library told them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.result import GpuState, Profile
from reports import ladder, style, text

TITLE = "Clock, temperature and power over the run"
READING = (
    "The state of the GPU before and after the samples of each shape, in the order in which they "
    "were taken. A clock that falls while the temperature or the power rises says that times are "
    "those of a throttled GPU; the prediction's clock stands in the table of the samples."
)

AROUND = 0.05  # of the values: a constant clock shall not fill its panel with noise


@dataclass(frozen=True, kw_only=True)
class _Moment:
    name: str
    state: GpuState


_PANELS = (
    ("sm_clock_hz", "SM clock, Hz", "#0072b2", "circle"),
    ("temperature_c", "temperature, °C", "#d55e00", "square"),
    ("power_w", "power, W", "#009e73", "diamond"),
)


def figure(profile: Profile, *, recorded: Profile | None = None) -> go.Figure:
    """Three panels over one axis of moments; of `recorded` where the profile measured nothing."""
    run = next((one for one in (profile, recorded) if one and any(_moments(one))), None)
    if run is None:
        return style.empty(TITLE, "No state of a GPU was read: nothing was measured on one.")
    moments = list(_moments(run))
    title = TITLE if run is profile else f"{TITLE}, {ladder.recorded_label(run)}"
    panels = [one for one in _PANELS if any(getattr(m.state, one[0]) for m in moments)]
    return go.Figure(
        data=[_panel(moments, place, *panel) for place, panel in enumerate(panels)],
        layout=style.layout(title, height=140 + 130 * len(panels), showlegend=False)
        | _axes(panels, moments),
    )


def _moments(run: Profile) -> Iterator[_Moment]:
    """Before and after each shape: all variants of one are timed together, in turns."""
    for shape in ladder.shapes(run):
        measured = filter(None, (r.measured for r in ladder.records_at(run, shape)))
        around = next((m for m in measured if m.before and m.after), None)
        if around and around.before and around.after:
            yield _Moment(name=f"before {text.shape(shape)}", state=around.before)
            yield _Moment(name=f"after {text.shape(shape)}", state=around.after)


def _panel(
    moments: Sequence[_Moment], place: int, field: str, title: str, colour: str, symbol: str
) -> dict[str, object]:
    number = str(place + 1) if place else ""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(moments))),
        "y": [getattr(moment.state, field) for moment in moments],
        "yaxis": f"y{number}",
        "name": title,
        "line": {"color": colour, "width": 2},
        "marker": {"symbol": symbol, "size": 8},
        "hoverinfo": "text",
        "hovertext": [_about(moment) for moment in moments],
    }


def _about(moment: _Moment) -> str:
    state = moment.state
    return style.hover(
        moment.name,
        f"SM clock {text.hertz(state.sm_clock_hz)}",
        f"memory clock {text.hertz(state.memory_clock_hz)}",
        text.celsius(state.temperature_c),
        text.watts(state.power_w),
        f"throttled by {text.listing(state.throttle_reasons)}" if state.throttle_reasons else "",
    )


def _axes(
    panels: Sequence[tuple[str, str, str, str]], moments: Sequence[_Moment]
) -> dict[str, object]:
    height = 1 / len(panels)
    axes: dict[str, object] = {
        "xaxis": style.axis(
            "shapes, before and after",
            tickmode="array",
            tickvals=[place + 0.5 for place in range(0, len(moments), 2)],
            ticktext=[moment.name.removeprefix("before ") for moment in moments[::2]],
            showgrid=False,
            anchor=f"y{len(panels)}" if len(panels) > 1 else "y",
        )
    }
    for place, (field, title, _, _) in enumerate(panels):
        top = 1 - place * height
        values = [value for m in moments if (value := getattr(m.state, field)) is not None]
        axes[f"yaxis{place + 1 if place else ''}"] = style.axis(
            title,
            domain=[top - 0.8 * height, top],
            tickformat=".3~s",
            range=[min(values) * (1 - AROUND), max(values) * (1 + AROUND)],
            nticks=4,
        )
    return axes
