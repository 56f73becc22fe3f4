"""The space of a tuning run: the time of every configuration, over the values of one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import plotly.graph_objects as go

from analysis.tuning import Candidate, TunedShape
from reports import style, text

TITLE = "The space"
READING = (
    "Each column is one value of the parameter that the menu names, each mark one configuration: "
    "open where its time is predicted, filled where the sweep measured it, a star where no other "
    "was faster in the final. Marks of a column stand side by side in the order of their expected "
    "times. A parameter matters where its columns are apart."
)
SPREAD = 0.7  # of a column's width, over which its marks stand side by side

Time = Callable[[Candidate], float | None]


def predicted_s(candidate: Candidate) -> float | None:
    return candidate.predicted.time_s if candidate.predicted else None


def swept_s(candidate: Candidate) -> float | None:
    return candidate.swept.median_s if candidate.swept else None


def won_s(candidate: Candidate) -> float | None:
    return candidate.measured.median_s if candidate.is_tied and candidate.measured else None


# by grade: the time, and how it looks (Okabe and Ito's colours, a symbol each)
KINDS: dict[str, tuple[Time, style.Look]] = {
    "predicted": (predicted_s, style.Look(colour="#0072b2", symbol="circle-open")),
    "measured, sweep": (swept_s, style.Look(colour="#e69f00", symbol="circle")),
    "measured, tied for the best": (won_s, style.Look(colour="#d55e00", symbol="star")),
}


def figure(shape: TunedShape) -> go.Figure:
    """Times over the values of a parameter, one of which a menu chooses."""
    title = f"{TITLE}, {text.shape(shape.shape)}"
    timed = [one for one in shape.candidates if any(time(one) for time, _ in KINDS.values())]
    names = _varied(timed)
    if not names:
        return style.empty(title, "No two configurations were predicted or measured.")
    shown = {kind: [one for one in timed if time(one)] for kind, (time, _) in KINDS.items()}
    places = {name: _places(timed, name) for name in names}
    traces = [kind for kind, found in shown.items() if found]
    return go.Figure(
        data=[_trace(kind, shown[kind], places[names[0]]) for kind in traces],
        layout=style.layout(
            title,
            height=480,
            xaxis=_axis(timed, names[0]),
            yaxis=style.axis("time of one launch, s", type="log", dtick="D2", tickformat="~s"),
            updatemenus=style.menu(
                0,
                [
                    (
                        name,
                        {"x": [[places[name][one.label] for one in shown[k]] for k in traces]},
                        {"xaxis": _axis(timed, name)},
                    )
                    for name in names
                ],
            ),
        ),
    )


def _varied(timed: Sequence[Candidate]) -> list[str]:
    """The parameters of which there is more than one value."""
    names = timed[0].parameters if timed else {}
    return [name for name in names if len({one.parameters[name] for one in timed}) > 1]


def _values(timed: Sequence[Candidate], name: str) -> list[int]:
    return sorted({one.parameters[name] for one in timed})


def _places(timed: Sequence[Candidate], name: str) -> dict[str, float]:
    """Where each configuration stands: in its value's column, spread over it."""
    found: dict[str, float] = {}
    for column, value in enumerate(_values(timed, name)):
        same = [one.label for one in timed if one.parameters[name] == value]
        for place, label in enumerate(same):
            found[label] = column + SPREAD * ((place + 0.5) / len(same) - 0.5)
    return found


def _axis(timed: Sequence[Candidate], name: str) -> style.Part:
    values = _values(timed, name)
    return style.axis(
        style.plain(name),
        tickmode="array",
        tickvals=list(range(len(values))),
        ticktext=[str(value) for value in values],
        range=[-0.5, len(values) - 0.5],
        showgrid=False,
    )


def _trace(kind: str, found: Sequence[Candidate], places: dict[str, float]) -> style.Part:
    time, look = KINDS[kind]
    return style.scatter(
        "markers",
        [places[one.label] for one in found],
        [time(one) for one in found],
        [style.hover(one.label, *_times(one)) for one in found],
        name=kind,
        marker={
            "color": look.colour,
            "symbol": look.symbol,
            "size": 13 if look.symbol == "star" else 9,
            "line": {"color": look.colour, "width": 1.5},
        },
    )


def _times(candidate: Candidate) -> Iterator[str]:
    for kind, (time, _) in KINDS.items():
        if (found := time(candidate)) is not None:
            shown = text.predicted_seconds if kind == "predicted" else text.seconds
            yield f"{shown(found)} ({kind})"
