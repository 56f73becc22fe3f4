"""Round by round: every sample beside the state of the GPU while it was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analysis.records.profile import Measured, Moment, Record
from reports import ladder, style, text
from reports.ladder import View

TITLE = "Samples round by round"
READING = "Where the clock falls while times rise, the GPU was throttled."

# Field of a GPU's state, name, unit, how it is written
State = tuple[str, str, str, Callable[[float | None], str]]
STATES: tuple[State, ...] = (
    ("sm_clock_hz", "SM clock", "Hz", text.hertz),
    ("temperature_c", "temperature", "°C", text.celsius),
    ("power_w", "power", "W", text.watts),
)

ROOM = 0.1  # of the span, on either side
CUT = 0.005  # of all samples, at either end: one that took twice the time would hide the others
SAMPLES_PX, STATE_PX = 300, 120


def figure(view: View, chosen: str | None = None) -> style.Figure:
    """Samples over rounds, and a panel for each state that is known of them.

    Each round times every variant once. Those of the label `chosen` stand out.

    They are those of the earlier run if the profile measured nothing on a GPU at this shape.
    """
    run = next((one for one in (view, view.of_recorded) if one and _sampled(one)), None)
    title = f"{TITLE}, {text.shape(view.shape)}"
    if run is None:
        return style.empty(title, "Nothing was measured on a GPU here.")
    if run is not view:
        title += f", {view.recorded_label}"
    moments = ladder.moments(run)
    states = [one for one in STATES if any(getattr(m.state, one[0]) for m in moments)]
    height = SAMPLES_PX + STATE_PX * len(states)
    return style.figure(
        title,
        [
            *(_samples(*one, chosen) for one in _sampled(run)),
            *(_state(place, moments, one) for place, one in enumerate(states, start=2)),
        ],
        height=height + 60,
        showlegend=False,
        **_axes(run, states, height),
    )


def _sampled(run: View) -> list[tuple[Record, Measured]]:
    """Records timed in rounds on the GPU; a CPU reference is sampled by itself."""
    return [
        (record, measured)
        for record in run.records
        if (measured := record.trusted) and measured.clock == "CUDA events"
    ]


def _relative(measured: Measured) -> list[float]:
    return [round(sample / measured.median_s - 1, 5) for sample in measured.samples_s]


def _samples(record: Record, measured: Measured, chosen: str | None) -> style.Part:
    colour = style.colour_of(record, chosen)
    return style.scatter(
        "lines+markers",
        list(range(1, len(measured.samples_s) + 1)),
        _relative(measured),
        name=style.plain(record.label),
        meta={"label": record.label},
        line={"color": colour, "width": 0.75},
        marker={"color": colour, "size": 5},
        hoverinfo="all",
        hovertemplate="round %{x}: %{y:+.2%} of its median",
    )


def _state(place: int, moments: Sequence[Moment], of: State) -> style.Part:
    field, name, *_ = of
    known = [one for one in moments if getattr(one.state, field) is not None]
    return style.scatter(
        "lines+markers",
        [one.rounds for one in known],
        [getattr(one.state, field) for one in known],
        [_about(one) for one in known],
        yaxis=f"y{place}",
        name=name,
        showlegend=False,
        line=style.ink(),
        marker={"color": style.INK, "size": 5},
    )


def _about(one: Moment) -> str:
    state = one.state
    return style.hover(
        f"{text.seconds(one.time_s)} after the first round began",
        *(f"{name}: {show(getattr(state, field))}" for field, name, _, show in STATES),
        f"throttled by {text.listing(state.throttle_reasons)}" if state.throttle_reasons else "",
    )


def _axes(run: View, states: Sequence[State], height: float) -> style.Part:
    """The samples' axis on top, then one per state; all of them over the same rounds."""
    samples, *below = _domains(len(states), height)
    lowest = f"y{len(states) + 1}" if states else "y"
    axes: style.Part = {
        "xaxis": style.axis("round", rangemode="tozero", tickformat=",", anchor=lowest),
        "yaxis": style.axis("of the median", domain=samples, tickformat="+.1%", range=_span(run)),
    }
    for place, ((_, name, unit, _), domain) in enumerate(zip(states, below, strict=True), start=2):
        axes[f"yaxis{place}"] = style.axis(
            f"{name},<br>{unit}", domain=domain, tickformat=".3~s", nticks=4
        )
    return axes


def _domains(states: int, height: float) -> Iterator[list[float]]:
    """The part of the plot's height that each panel takes, from the top."""
    yield [states * STATE_PX / height, 1.0]
    for below in reversed(range(states)):
        yield [below * STATE_PX / height, (below + 0.75) * STATE_PX / height]


def _span(run: View) -> list[float]:
    """Range of the axis that contains nearly all samples; zooming out shows the others."""
    values = sorted(value for _, measured in _sampled(run) for value in _relative(measured))
    cut = int(CUT * len(values))
    low, high = values[cut], values[-1 - cut]
    room = ROOM * (high - low) or ROOM
    return [low - room, high + room]
