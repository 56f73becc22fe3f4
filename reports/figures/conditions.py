"""The GPU's state over the run: clock, temperature and power, as NVML told them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.problem import Gemm
from analysis.records.profile import GpuState, Profile
from reports import ladder, style, text
from reports.ladder import View

TITLE = "Clock, temperature and power over the run"
READING = (
    "The state of the GPU before, while and after the samples of each shape were taken, in the "
    "order of the run; earlier versions asked before and after alone. A clock that falls while the "
    "temperature or the power rises says that times are those of a throttled GPU; the "
    "prediction's clock stands in the table of the samples."
)

AROUND = 0.05  # of the values: a constant clock shall not fill its panel with noise
MANY = 60  # moments: beyond, large symbols would hide the line
FIRST, LAST = 0.1, 0.8  # of a shape's room on the axis: where its samples begin and end


@dataclass(frozen=True, kw_only=True)
class _Moment:
    """A state and its place on the axis, where shape n has the room from n to n + 1."""

    name: str
    x: float
    state: GpuState


# Field of a state, name, unit, how it is written; colour and symbol of a panel of its own
State = tuple[str, str, str, Callable[[float | None], str], str, str]
STATES: tuple[State, ...] = (
    ("sm_clock_hz", "SM clock", "Hz", text.hertz, "#0072b2", "circle"),
    ("temperature_c", "temperature", "°C", text.celsius, "#d55e00", "square"),
    ("power_w", "power", "W", text.watts, "#009e73", "diamond"),
)


def figure(profile: Profile, *, recorded: Profile | None = None) -> go.Figure:
    """Three panels over one axis of moments; of `recorded` if the profile measured nothing."""
    run = next((one for one in (profile, recorded) if one and any(_shapes(one))), None)
    if run is None:
        return style.empty(TITLE, "No state of a GPU was read: nothing was measured on one.")
    shapes = list(_shapes(run))
    title = TITLE if run is profile else f"{TITLE}, {ladder.recorded_label(run)}"
    states = [one.state for _, moments in shapes for one in moments]
    panels = [one for one in STATES if any(getattr(state, one[0]) for state in states)]
    return style.figure(
        title,
        (_panel(shapes, place, panel) for place, panel in enumerate(panels)),
        height=170 + 130 * len(panels),
        showlegend=False,
        **_axes(panels, shapes),
    )


_Shape = tuple[Gemm, list[_Moment]]


def _shapes(run: Profile) -> Iterator[_Shape]:
    """The moments of each shape: all its variants are timed together, in turns."""
    number = 0
    for shape in ladder.shapes(run):
        # a GPU that tells nothing, or some moment of it, has nothing to draw
        moments = [one for one in _moments(View(run, shape), number) if one.state != GpuState()]
        if moments:
            yield shape, moments
            number += 1


def _moments(view: View, start: float) -> Iterator[_Moment]:
    name = text.shape(view.shape)
    measured = filter(None, (r.measured for r in view.records))
    around = next((m for m in measured if m.before and m.after), None)
    if around and around.before:
        yield _Moment(name=f"before {name}", x=start, state=around.before)
    during = ladder.moments(view)
    for one in during:
        share = one.time_s / (during[-1].time_s or 1.0)
        yield _Moment(
            name=f"{name}, {text.seconds(one.time_s)} into its samples, {one.rounds} rounds done",
            x=start + FIRST + (LAST - FIRST) * share,
            state=one.state,
        )
    if around and around.after:
        yield _Moment(name=f"after {name}", x=start + FIRST + LAST, state=around.after)


def _panel(shapes: Sequence[_Shape], place: int, of: State) -> style.Part:
    field, name, unit, _, colour, symbol = of
    number = str(place + 1) if place else ""
    # nothing is known of the time between two shapes: no line leads over it
    points = [one for _, moments in shapes for one in (*moments, None)][:-1]
    return style.scatter(
        "lines+markers",
        [one.x if one else None for one in points],
        [getattr(one.state, field) if one else None for one in points],
        [_about(one) if one else "" for one in points],
        yaxis=f"y{number}",
        name=f"{name}, {unit}",
        line={"color": colour, "width": 2},
        marker={"symbol": symbol, "size": 8 if len(points) < MANY else 5},
    )


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


def _axes(panels: Sequence[State], shapes: Sequence[_Shape]) -> style.Part:
    height = 1 / len(panels)
    axes: style.Part = {
        "xaxis": style.axis(
            "shapes, in the order of the run",
            tickmode="array",
            tickvals=[number + LAST / 2 for number in range(len(shapes))],
            ticktext=[text.shape(shape).replace(" × ", " ×<br>") for shape, _ in shapes],
            tickangle=0,
            showgrid=False,
            anchor=f"y{len(panels)}" if len(panels) > 1 else "y",
        )
    }
    states = [one.state for _, moments in shapes for one in moments]
    for place, (field, name, unit, *_) in enumerate(panels):
        top = 1 - place * height
        values = [value for state in states if (value := getattr(state, field)) is not None]
        axes[f"yaxis{place + 1 if place else ''}"] = style.axis(
            f"{name}, {unit}",
            domain=[top - 0.8 * height, top],
            tickformat=".3~s",
            range=[min(values) * (1 - AROUND), max(values) * (1 + AROUND)],
            nticks=4,
        )
    return axes
