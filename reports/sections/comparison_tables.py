"""Tables of the differences between two profiles or launches, by shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.comparison.causes import CauseChange, LineCostChange
from analysis.comparison.counts import CountChange, Outcome
from analysis.comparison.lines import LineChange
from analysis.comparison.runs import Pair, RunComparison
from analysis.comparison.statistics import TimeVerdict
from analysis.comparison.times import PredictionChange, TimeChange
from analysis.records.counters import ALL_COUNTERS
from analysis.records.launch import LaunchRecord
from analysis.records.profile import Grade
from reports import text
from reports.sections.changes import TimeShift, is_changed, shift
from reports.sections.table import Cell, Table, Title, plain_table


def _sides(grade: str) -> list[Title]:
    """Columns of the numbers of both sides."""
    return [("before", grade, True), ("after", grade, True)]


CHANGE: Title = ("change", "", True)
SIGNS = {
    TimeVerdict.SLOWER: "▲",
    TimeVerdict.FASTER: "▼",
    TimeVerdict.SAME: "=",
    TimeVerdict.AMBIGUOUS: "?",
}
# Titles of tables
TIMES, PREDICTED, CAUSES, COUNTS = "times", "predicted times", "causes that moved", "counts"
LINE_COSTS, LINES = "cost of source lines", "counts of source lines"
WITHIN = "within the tolerance"
SMALLEST_SHARE = 5e-4  # below it a difference says more than its share: '+7' than '+0.0012 %'


@dataclass(frozen=True, kw_only=True)
class ShapeSection:
    """Differences at one shape: the tables that have rows, by title."""

    shape: str
    tables: Mapping[str, Table]


def shape_sections(comparison: RunComparison, *, most: int | None = None) -> Iterator[ShapeSection]:
    """The tables of every shape at which something differs, with at most `most` rows per record."""
    for shape in dict.fromkeys(pair.shape for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.shape == shape]
        tables = {
            TIMES: _times_table(pairs),
            # of a single launch, the sentence says it all
            PREDICTED: _predictions_table(pairs if len(comparison.pairs) > 1 else ()),
            CAUSES: _causes_table(pairs, most),
            LINE_COSTS: _line_costs_table(pairs, most),
            COUNTS: _changes_table(pairs, Outcome.CHANGED, most if shape else None),
            LINES: _lines_table(pairs, most),
            WITHIN: _changes_table(pairs, Outcome.WITHIN, most),
        }
        if isinstance(comparison.before, LaunchRecord):  # all rows are of one
            tables = {k: rows.only(lambda c: c.title != "variant") for k, rows in tables.items()}
        if known := {title: rows for title, rows in tables.items() if rows.rows}:
            yield ShapeSection(shape=text.shape(shape) if shape else "", tables=known)


def _changes_table(pairs: Sequence[Pair], verdict: Outcome, most: int | None) -> Table:
    """One row per count that differs."""
    return plain_table(
        ("variant", "count", *_sides(""), CHANGE, "grade"),
        _limited(
            pairs,
            lambda pair: [tuple(_change(one)) for one in pair.counts if one.verdict is verdict],
            most,
        ),
    )


_Row = tuple[Cell | str, ...]


def _limited(
    pairs: Iterable[Pair], rows_of: Callable[[Pair], Sequence[_Row]], most: int | None
) -> Iterator[_Row]:
    """The rows of each record, under its label: at most so many, then how many more."""
    for pair in pairs:
        rows = rows_of(pair)
        for row in rows[:most]:
            yield pair.label, *row
        if most is not None and len(rows) > most:
            yield pair.label, f"… and {len(rows) - most} more", *("" for _ in rows[0][1:])


def _change(one: CountChange) -> Iterator[Cell | str]:
    yield Cell(_heading(one.name), details=(one.name,) if one.name in ALL_COUNTERS else ())
    yield text.digits(one.before)
    yield text.digits(one.after)
    allowed = (f"allowed: {100 * one.tolerance:.3g} %",) if one.tolerance else ()
    yield Cell(_by(one), details=allowed, is_worse=one.is_worse)
    yield one.grade


def _heading(name: str) -> str:
    """Short meaning of a counter for a column; any other name unchanged."""
    return ALL_COUNTERS[name].heading if name in ALL_COUNTERS else name


def _by(one: CountChange) -> str:
    """The difference as a share, or as it is where that has none or would round to nothing."""
    more = one.after - one.before
    if one.ratio is None or abs(one.ratio - 1) < SMALLEST_SHARE:
        return f"{'+' if more > 0 else '−'}{text.digits(abs(more))}"
    return text.change(one.ratio - 1)


def _lines_table(pairs: Sequence[Pair], most: int | None) -> Table:
    """One row per source line and counter of it that changed."""
    return plain_table(
        ("variant", "line", "code", "count", *_sides("")),
        _limited(
            pairs,
            lambda pair: [_line(one.name, line) for one in pair.changed for line in one.lines],
            most,
        ),
    )


def _line(counter: str, one: LineChange) -> _Row:
    return (
        _line_place(one),
        one.text.strip() or text.ABSENT,
        _heading(counter),
        *(
            "no such line" if count is None else text.digits(count)
            for count in (one.before, one.after)
        ),
    )


def _times_table(pairs: Sequence[Pair]) -> Table:
    """One row per record of which both times may be compared."""
    return plain_table(
        ("variant", *_sides(Grade.MEASURED), CHANGE, "verdict"),
        ((pair.label, *_times(pair.time)) for pair in pairs if pair.time),
    )


def _predictions_table(pairs: Sequence[Pair]) -> Table:
    """One row per record whose predicted time or limiter changed."""
    return plain_table(
        ("variant", *_sides(Grade.PREDICTED), CHANGE, "limiter"),
        (
            (pair.label, before, after, Cell(change, is_worse=moved.is_worse), limiters)
            for pair in pairs
            if (one := pair.predicted) and is_changed(pair) and (moved := _predicted_shift(pair))
            for before, after, change, limiters in [_foreseen(one)]
        ),
    )


def _predicted_shift(pair: Pair) -> TimeShift | None:
    return shift(replace(pair, time=None))


def _causes_table(pairs: Sequence[Pair], most: int | None) -> Table:
    """One row per effect whose predicted cost moved."""
    return plain_table(
        ("variant", "cause", *_sides(""), CHANGE),
        _limited(pairs, lambda pair: [(one.effect, *_costs(one)) for one in pair.causes], most),
    )


def _line_costs_table(pairs: Sequence[Pair], most: int | None) -> Table:
    """One row per source line whose predicted cost moved."""
    return plain_table(
        ("variant", "line", "code", *_sides(""), CHANGE),
        _limited(
            pairs,
            lambda pair: [
                (_line_place(one), one.text.strip() or text.ABSENT, *_costs(one))
                for one in pair.line_costs
            ],
            most,
        ),
    )


def _costs(one: CauseChange | LineCostChange) -> Iterator[Cell | str]:
    """Both costs, and their difference."""
    longer_s = max(one.before_s or 0.0, one.after_s or 0.0)
    for time_s in (one.before_s, one.after_s):
        if time_s is None:
            yield "no such line"
        else:
            is_nothing = text.beside(time_s, longer_s) == "0"
            yield "0" if is_nothing else text.predicted_seconds(time_s)
    is_worse = one.difference_s > 0
    moved = text.predicted_seconds(abs(one.difference_s))
    yield Cell(f"{'+' if is_worse else '−'}{moved}", is_worse=is_worse)


def _line_place(one: LineChange | LineCostChange) -> str:
    places = dict.fromkeys(str(at) for at in (one.line_before, one.line_after) if at is not None)
    return f"{one.file}:{' → '.join(places)}"


def _foreseen(one: PredictionChange) -> tuple[str, str, str, str]:
    """Both times, the change, and the limiters in words."""
    before, after = map(text.predicted_seconds, (one.before_s, one.after_s))
    change = text.change(one.change and one.change - 1)
    return before, after, change, " → ".join(dict.fromkeys([one.limiter_before, one.limiter_after]))


def _times(one: TimeChange) -> Iterator[Cell | str]:
    for median_s, bounds, samples in (
        (one.before_s, one.before_interval_s, one.before_samples),
        (one.after_s, one.after_interval_s, one.after_samples),
    ):
        spread = (f"95%: {text.interval(bounds, text.seconds)}",) if bounds else ()
        yield Cell(text.seconds(median_s), details=(*spread, text.many(samples, "sample")))
    bounds = one.change_interval
    within = f" ({text.change(bounds.low - 1)} to {text.change(bounds.high - 1)})" if bounds else ""
    yield f"{text.change(one.change and one.change - 1)}{within}"
    yield Cell(
        f"{SIGNS[one.verdict]} {one.verdict}",
        details=(one.reason,) if one.reason else (),
        is_worse={TimeVerdict.SLOWER: True, TimeVerdict.FASTER: False}.get(one.verdict),
    )
