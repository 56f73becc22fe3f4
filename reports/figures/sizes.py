"""The rate of every variant over the size of a square product, predicted and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.records.profile import Grade, Profile, Record
from reports import ladder, style, text

TITLE = "Rate over size"
READING = "Small products leave SMs idle; where a line is flat, a kernel has reached its own limit."
TERA = 1e12


@dataclass(frozen=True, kw_only=True)
class _SizePoint:
    n: int
    flop_per_s: float
    grade: str


def figure(
    profile: Profile, *, recorded: Profile | None = None, chosen: str | None = None
) -> style.Figure:
    """A line per variant over all square shapes of the profile and of `recorded`.

    Solid lines are measured, dashed ones predicted; a variant that was measured has no dashed one.
    The line of the label `chosen` stands out.
    """
    title = f"{TITLE} on {profile.device.name}"
    records = {record.label: record for record in profile.records}
    curves = [
        (record, kind, points)
        for label, record in records.items()
        for kind, points in [_points(profile, recorded, label)]
        if points
    ]
    if not curves:
        return style.empty(title, "No square product has a rate, predicted or measured.")
    sizes = sorted({point.n for _, _, points in curves for point in points})
    if len(sizes) == 1:
        return style.empty(title, "Only one square size has a rate: profile more sizes (--shape).")
    return style.figure(
        title,
        [_curve(*one, chosen) for one in curves],
        height=480,
        showlegend=False,
        xaxis=style.axis(
            "N of an N × N × N product",
            type="log",
            tickvals=sizes,
            ticktext=[f"{n:,}" for n in sizes],
        ),
        yaxis=style.rate_axis(),
    )


def _square(records: Sequence[Record], label: str) -> list[Record]:
    found = [
        one for one in records if one.label == label and one.shape.m == one.shape.n == one.shape.k
    ]
    return sorted(found, key=lambda one: one.shape.n)


def _points(
    profile: Profile, recorded: Profile | None, label: str
) -> tuple[Grade, list[_SizePoint]]:
    measured = list(_measured(profile, recorded, label))
    if measured:
        return Grade.MEASURED, measured
    return Grade.PREDICTED, list(_predicted(profile, label))


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


def _curve(record: Record, kind: Grade, points: list[_SizePoint], chosen: str | None) -> style.Part:
    colour = style.colour_of(record, chosen)
    is_predicted = kind == Grade.PREDICTED
    return style.scatter(
        "lines+markers",
        [point.n for point in points],
        [point.flop_per_s / TERA for point in points],
        [
            style.hover(
                f"{record.label}, N = {p.n:,}", f"{text.flop_per_s(p.flop_per_s)} ({p.grade})"
            )
            for p in points
        ],
        name=style.plain(record.label),
        meta={"label": record.label},
        line={"color": colour, "width": 2, "dash": "dash" if is_predicted else "solid"},
        marker={"color": colour, "size": 7, "symbol": "circle-open" if is_predicted else "circle"},
    )
