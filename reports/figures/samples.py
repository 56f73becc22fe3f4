"""Every sample of every measured variant: how noisy the times are."""

from __future__ import annotations

from collections.abc import Iterator

import plotly.graph_objects as go

from analysis.records.profile import Grade, Measured, Profile, Record
from reports import ladder, style, text
from reports.ladder import View

TITLE = "Samples"
READING = (
    "Each dot is one timed launch, each box the middle half of them. Relative to its own median, "
    "a variant's noise can be compared with any other's; the menu shows the times themselves."
)

ROOM = 0.1  # of the span, on either side
_RELATIVE = "time relative to the median"
_TIME = "time of one launch, s"


def figure(view: View) -> go.Figure:
    """A box with all samples per measured variant, of the earlier run if the profile has none."""
    title = f"{TITLE}, {text.shape(view.shape)}"
    runs = list(_runs(view))
    if not any(measured.clock == "CUDA events" for _, measured, _ in runs):
        return style.empty(title, "Nothing was timed on a GPU at this shape.")
    records = tuple(record for record, _, _ in runs)
    notes = tuple("" if grade == Grade.MEASURED else "(recorded)" for _, _, grade in runs)
    relative = [[round(s / m.median_s - 1, 6) for s in m.samples_s] for _, m, _ in runs]
    times = [list(m.samples_s) for _, m, _ in runs]
    return style.figure(
        title,
        [
            _box(view.profile, row, run, x)
            for row, (run, x) in enumerate(zip(runs, relative, strict=True))
        ],
        height=130 + style.ROW_PX * len(runs),
        showlegend=False,
        xaxis=style.axis(_RELATIVE, tickformat="+.1%", range=_span(runs, relative)),
        yaxis=style.rows_axis(records, notes=notes),
        updatemenus=style.buttons(
            ("relative", {"x": relative}, _scale(_RELATIVE, "linear", "+.1%")),
            ("time", {"x": times}, _scale(_TIME, "log", "~s")),
        ),
    )


def _span(
    runs: list[tuple[Record, Measured, str]], relative: list[list[float]]
) -> list[float] | None:
    """The range of what GPUs took: a host's noise would hide it, and zooming out shows that."""
    of_gpu = [
        one
        for (_, measured, _), own in zip(runs, relative, strict=True)
        for one in own
        if measured.clock == "CUDA events"
    ]
    if not of_gpu:
        return None
    room = ROOM * (max(of_gpu) - min(of_gpu)) or ROOM
    return [min(of_gpu) - room, max(of_gpu) + room]


def _scale(title: str, kind: str, ticks: str) -> style.Part:
    return {"xaxis.title.text": title, "xaxis.tickformat": ticks, **style.scale(kind)}


def _runs(view: View) -> Iterator[tuple[Record, Measured, str]]:
    """(record, measurement, grade) of all that has samples."""
    for record in view.records:
        measured = record.trusted
        earlier = view.earlier(record)
        if measured and measured.samples_s:
            yield record, measured, Grade.MEASURED
        elif earlier and earlier.samples_s and view.recorded:
            yield record, earlier, ladder.recorded_label(view.recorded)


def _box(
    profile: Profile, row: int, run: tuple[Record, Measured, str], x: list[float]
) -> style.Part:
    record, measured, grade = run
    look = style.looks(profile)[record.label]
    return {
        "type": "box",
        "orientation": "h",
        "x": x,
        "y0": row,
        "name": style.plain(f"{record.label} ({grade}), median {text.seconds(measured.median_s)}"),
        "boxpoints": "all",
        "jitter": 0.6,
        "pointpos": 0,
        "width": 0.7,
        "line": {"color": look.colour, "width": 1.5},
        "fillcolor": style.CLEAR,
        "marker": {"color": look.colour, "symbol": look.symbol, "size": 5, "opacity": 0.6},
        "hoveron": "points",
        "hoverinfo": "text+name",
        "hovertext": [  # short: there may be thousands
            f"{number}: {text.seconds(sample)}"
            for number, sample in enumerate(measured.samples_s, start=1)
        ],
    }
