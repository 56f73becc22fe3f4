"""The rate of every variant over the size of a square product, predicted and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.records.profile import Grade, Profile, Record
from reports import ladder, style, text
from reports.figures import roofs

TITLE = "Rate over size"
READING = (
    "Square products only: N to the right, FLOP/s upwards. Filled symbols on solid lines are "
    "measured or recorded, open ones on dashed lines predicted. Small products leave SMs idle; "
    "where a curve is flat, the kernel has reached its own limit. A button hides "
    "a variant."
)


@dataclass(frozen=True, kw_only=True)
class _SizePoint:
    n: int
    flop_per_s: float
    grade: str


def figure(profile: Profile, *, recorded: Profile | None = None) -> go.Figure:
    """A curve per variant and grade over all square shapes of the profile and of `recorded`."""
    title = f"{TITLE} on {profile.device.name}"
    looks = style.looks(profile)
    curves = [
        (label, kind, points)
        for label in looks
        for kind, points in (
            (Grade.PREDICTED, list(_predicted(profile, label))),
            (Grade.MEASURED, list(_measured(profile, recorded, label))),
        )
        if points
    ]
    if not curves:
        return style.empty(title, "No square product has a rate, predicted or measured.")
    sizes = sorted({point.n for _, _, points in curves for point in points})
    if len(sizes) == 1:
        return style.empty(title, "Only one square size has a rate: profile further ones.")
    return style.figure(
        title,
        [
            *(_curve(*one, looks[one[0]]) for one in curves),
            *_keys(curves, looks),
        ],
        height=560,
        meta={"toggles": [[style.plain(label) for label in _labels(curves)]]},
        xaxis=style.axis(
            "N of an N × N × N product",
            type="log",
            tickvals=sizes,
            ticktext=[f"{n:,}" for n in sizes],
        ),
        yaxis=style.rate_axis(type="log", dtick="D2"),
    )


def _square(records: Sequence[Record], label: str) -> list[Record]:
    found = [
        one for one in records if one.label == label and one.shape.m == one.shape.n == one.shape.k
    ]
    return sorted(found, key=lambda one: one.shape.n)


def _predicted(profile: Profile, label: str) -> Iterator[_SizePoint]:
    for record in _square(profile.records, label):
        foreseen = record.trusted_prediction
        if foreseen:
            yield _SizePoint(
                n=record.shape.n, flop_per_s=foreseen.flop_per_s, grade=Grade.PREDICTED
            )


def _measured(profile: Profile, recorded: Profile | None, label: str) -> Iterator[_SizePoint]:
    """The profile's own points, and those of an earlier run at other shapes or without own ones."""
    found: dict[int, _SizePoint] = {}
    runs: list[tuple[Profile, str]] = [(profile, Grade.MEASURED)]
    if recorded:
        runs.append((recorded, ladder.recorded_label(recorded)))
    for run, grade in runs:
        for record in _square(run.records, label):
            taken = record.trusted
            if taken and taken.clock == "CUDA events":
                point = _SizePoint(n=record.shape.n, flop_per_s=taken.flop_per_s, grade=grade)
                found.setdefault(record.shape.n, point)
    yield from (found[n] for n in sorted(found))


def _curve(label: str, kind: str, points: list[_SizePoint], look: style.Look) -> style.Part:
    is_predicted = kind == Grade.PREDICTED
    return style.scatter(
        "lines+markers",
        [point.n for point in points],
        [point.flop_per_s for point in points],
        [
            style.hover(f"{label}, N = {p.n:,}", f"{text.flop_per_s(p.flop_per_s)} ({p.grade})")
            for p in points
        ],
        name=style.plain(label),
        showlegend=False,
        meta={"needs": [style.plain(label)]},
        line={"color": look.colour, "width": 2, "dash": "dash" if is_predicted else "solid"},
        marker={
            "color": look.colour,
            "size": 9,
            "symbol": look.symbol + ("-open" if is_predicted else ""),
        },
    )


_Curves = Sequence[tuple[str, str, list[_SizePoint]]]


def _labels(curves: _Curves) -> list[str]:
    return list(dict.fromkeys(label for label, _, _ in curves))


def _keys(curves: _Curves, looks: Mapping[str, style.Look]) -> Iterator[style.Part]:
    """Legend entries: variants, and the meaning of the two kinds of line."""
    for label in _labels(curves):
        look = looks[label]
        marker = {"color": look.colour, "size": 9, "symbol": look.symbol}
        yield style.key(style.plain(label), look.symbol, marker=marker)
    kinds = {kind for _, kind, _ in curves}
    for kind, dash in ((Grade.MEASURED, "solid"), (Grade.PREDICTED, "dash")):
        if kind in kinds:
            yield roofs.line_key(kind, dash)
