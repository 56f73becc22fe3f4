"""Results of a tuning run, in sentences and a table, and as a page of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from markupsafe import Markup

from analysis.records.profile import Grade
from analysis.records.tuning import Candidate, TunedShape, Tuning, cost
from reports import text
from reports.sections.table import Cell, Table, Title, plain_table
from reports.svg.bar import Segment, bar
from reports.templating import template


def page(tuning: Tuning) -> str:
    """The run as one HTML page that needs no network."""
    return template("tuning.html.j2").render(
        title=f"{tuning.variant} tuned on {tuning.device.name}",
        tuning=tuning,
        created=text.moment(tuning.created),
        chapters=[
            {
                "shape": text.shape(shape.shape),
                "lead": lead(tuning, shape),
                "points": list(points(shape)),
                "table": candidates_table(shape),
                "figure": figure(shape),
                "has_intervals": any(
                    one.measured and one.measured.relative_to_cublas for one in shape.candidates
                ),
            }
            for shape in tuning.shapes
        ],
    )


MOST_BARS, BAR_PX = 12, 18


@dataclass(frozen=True, kw_only=True)
class TimeBars:
    """Times of configurations, the fastest first: (time, configuration, bar)."""

    title: str
    rows: tuple[tuple[str, str, Markup], ...]


def figure(shape: TunedShape) -> TimeBars | None:
    """Times of the fastest configurations: measured ones if there are any, else predicted ones.

    None if fewer than two configurations have such a time.
    """
    for grade, time_of in _TIMES.items():
        timed = [(t, one) for one in shape.candidates if (t := time_of(one)) is not None]
        if len(timed) >= 2:
            timed.sort(key=lambda pair: pair[0])
            shown = timed[:MOST_BARS]
            first = (
                "" if len(shown) == len(timed) else f"the {len(shown)} fastest of {len(timed)}, "
            )
            rows = [
                (
                    text.predicted_seconds(time_s),
                    settings(one),
                    _bar(time_s / shown[-1][0], settings(one), is_first=place == 0),
                )
                for place, (time_s, one) in enumerate(shown)
            ]
            return TimeBars(title=f"Time of a configuration: {first}{grade}", rows=tuple(rows))
    return None


def _bar(share: float, label: str, *, is_first: bool) -> Markup:
    only = Segment(share=share, value="", name="", class_="s1" if is_first else "s2")
    return bar([only], label, height=BAR_PX)


def _final_s(one: Candidate) -> float | None:
    return one.measured.median_s if one.measured else None


def _swept_s(one: Candidate) -> float | None:
    return one.swept.median_s if one.swept else None


def _predicted_s(one: Candidate) -> float | None:
    return one.predicted.time_s if one.predicted else None


_TIMES: dict[str, Callable[[Candidate], float | None]] = {
    "measured in the final round": _final_s,
    "measured in the sweep": _swept_s,
    "predicted": _predicted_s,
}


# In words.


def lead(tuning: Tuning, shape: TunedShape) -> str:
    """Sentence on the winner, or without measurements on the configuration that should win."""
    where = f"at {text.shape(shape.shape)} on {tuning.device.name}"
    if not shape.winners:
        best = next((one for one in shape.candidates if one.status == "ok"), None)
        if best is None:
            return f"{tuning.variant} {where}: no configuration works"
        should = text.predicted_seconds(best.expected_s[1])
        grade = Grade.PREDICTED if best.predicted else "by closed forms"
        return f"{tuning.variant} {where}: {settings(best)} should be fastest, {should} ({grade})"
    best, *others = shape.winners
    tied = [settings(one) for one in others]
    beside = f"; tied with it: {text.listing(tied)}" if tied else "; no other is tied with it"
    return f"{tuning.variant} {where}: {settings(best)} takes {_measured(best).text}{beside}"


def points(shape: TunedShape) -> Iterator[str]:
    """Other facts: the space, the configurations of each stage, cuBLAS, and the checks."""
    yield shape.method
    removed = sum(one.configurations for one in shape.exclusions)
    stages = Counter(one.status for one in shape.candidates)
    numbers = {
        "violate a constraint": removed,
        "left out": stages["left out"],
        "failed": stages["failed"],
    }
    told = [f"{text.count(number)} {what}" for what, number in numbers.items() if number]
    yield ", ".join([f"{text.count(shape.combinations)} combinations of values", *told])
    swept = [one for one in shape.candidates if one.swept]
    if swept:
        known = sum(one.swept.from_cache for one in swept if one.swept)
        yield (
            f"{text.many(len(swept), 'configuration')} measured, {known} of them in an earlier run "
            "(from the cache)"
        )
    yield from _of_order(swept)
    if shape.winners:
        yield from _of_winners(shape)
    if shape.cublas:
        yield f"cuBLAS in the same rounds: {text.seconds(shape.cublas.median_s)} (measured)"
    yield from shape.notes
    yield from _lacking(shape)


def _lacking(shape: TunedShape) -> Iterator[str]:
    """Notes on results that could not be obtained of configurations, each note once."""
    notes = Counter(note for one in shape.candidates for note in one.notes)
    for note, times in notes.items():
        yield f"{times} of {len(shape.candidates)} {note}"


def _of_order(swept: Sequence[Candidate]) -> Iterator[str]:
    """Agreement of predicted times with the order of the configurations that the sweep measured."""
    times = [
        (one.predicted.time_s, one.swept.median_s) for one in swept if one.predicted and one.swept
    ]
    pairs = list(combinations(times, 2))
    agreed = sum((one[0] < other[0]) == (one[1] < other[1]) for one, other in pairs)
    if pairs:
        yield (
            f"predictions put {agreed} of {len(pairs)} pairs of measured configurations in the "
            "measured order"
        )


def _of_winners(shape: TunedShape) -> Iterator[str]:
    best = shape.winners[0]
    foreseen = [one.label for one in shape.candidates if one.predicted]
    if best.label in foreseen:
        place = foreseen.index(best.label) + 1
        yield f"the fastest was number {place} of {len(foreseen)} by predicted time"
    default = next((one for one in shape.candidates if ":" not in one.label), None)
    if default and default.measured and best.measured and not default.is_tied:
        slower = cost(default.measured)[0] / cost(best.measured)[0]
        yield f"the defaults ({settings(default)}) take {text.ratio(slower)} as long (measured)"
    elif default and default.is_tied:
        yield f"the defaults ({settings(default)}) are among the best"
    beside = text.listing([text.shape(one) for one in shape.also_checked])
    yield f"checked against float64: right at this shape and, for ragged edges, at {beside}"


def settings(candidate: Candidate) -> str:
    """'bk=8,tm=4', as a command takes it."""
    return ",".join(f"{name}={value}" for name, value in candidate.parameters.items())


# As a table.

_TITLES: tuple[Title, ...] = (
    ("time", Grade.PREDICTED, True),
    ("limiter", Grade.PREDICTED, False),
    ("sweep", Grade.MEASURED, True),
    ("final", Grade.MEASURED, True),
    "outcome",
)


def candidates_table(shape: TunedShape) -> Table:
    """One row per configuration: winners first, then in the order of their expected times.

    Each parameter has a column; those of times that none of them has are left out.
    """
    return _table(shape.candidates, shape.winners)


def outcomes_table(shape: TunedShape, most: int) -> Table:
    """The first rows of the same, without configurations that were left out."""
    return _table(
        [one for one in shape.candidates if one.status != "left out"], shape.winners, most
    )


def _table(
    candidates: Sequence[Candidate], winners: Sequence[Candidate], most: int | None = None
) -> Table:
    order = {one.label: place for place, one in enumerate(winners)}
    rows = sorted(candidates, key=lambda one: order.get(one.label, len(order)))
    names = rows[0].parameters if rows else {}
    titles: list[Title] = [*((name, "", True) for name in names), *_TITLES]
    cells = [_row(one) for one in rows]
    kept = [n for n in range(len(titles)) if any(row[n].text != text.ABSENT for row in cells)]
    return plain_table([titles[n] for n in kept], [[row[n] for n in kept] for row in cells[:most]])


def _row(candidate: Candidate) -> tuple[Cell, ...]:
    predicted, swept = candidate.predicted, candidate.swept
    return (
        *(Cell(str(value)) for value in candidate.parameters.values()),
        Cell(text.predicted_seconds(predicted.time_s if predicted else None)),
        Cell(predicted.limiter if predicted else text.ABSENT),
        Cell(text.seconds(swept.median_s if swept else None)),
        _measured(candidate),
        Cell(_outcome(candidate), is_bad=candidate.status == "failed"),
    )


def _measured(candidate: Candidate) -> Cell:
    measured = candidate.measured
    if measured is None:
        return Cell(text.ABSENT)
    ratio = measured.relative_to_cublas
    if ratio is None:
        return Cell(text.seconds(measured.median_s))
    return Cell(
        f"{text.seconds(measured.median_s)}, {text.ratio(ratio.median)} of cuBLAS",
        details=(text.interval(ratio.interval, text.ratio),) if ratio.interval else (),
    )


def _outcome(candidate: Candidate) -> str:
    if candidate.is_tied:
        return "best, or tied"
    if candidate.status != "ok":
        return f"{candidate.status}: {candidate.reason}"
    if candidate.measured:
        return "slower"
    if candidate.swept:
        return "slower (sweep)"
    return "not measured"
