"""Differences between two profiles or launches: sentences, tables, and a page of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.comparison.causes import CauseChange, LineCostChange
from analysis.comparison.counts import CountChange, Outcome
from analysis.comparison.lines import LineChange
from analysis.comparison.runs import (
    ComparedRun,
    Key,
    Pair,
    RunComparison,
    Source,
)
from analysis.comparison.statistics import NEGLIGIBLE_CHANGE, TimeVerdict
from analysis.comparison.times import PredictionChange, TimeChange
from analysis.records.counters import ALL_COUNTERS
from analysis.records.launch import LaunchRecord
from analysis.records.profile import Grade
from reports import text
from reports.sections.change_bars import ChangeBars, change_bars
from reports.sections.changes import (
    TimeShift,
    cause_sentence,
    headline,
    is_changed,
    shift,
    time_sentence,
)
from reports.sections.table import Cell, Table, Title, plain_table
from reports.templating import template


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


def page(comparison: RunComparison) -> str:
    """The comparison as one HTML page that needs no network."""
    return template("comparison.html.j2").render(
        title=title(comparison),
        head=headline(comparison),
        sentences=list(_of_launch_or_profile(comparison, with_factor=False)),
        counted=_of_counts(comparison),
        figure=figure(comparison),
        sections=list(shape_sections(comparison)),
        details=(LINES, WITHIN),
        timed=TIMES,
        negligible=text.percent(NEGLIGIBLE_CHANGE),
        remarks=remarks(comparison),
        runs=runs_table(comparison),
        kind=_kind(comparison),
    )


def figure(comparison: RunComparison) -> ChangeBars | None:
    """Bars of two launches, None for profiles and without times."""
    before, after = comparison.before, comparison.after
    if not (isinstance(before, LaunchRecord) and isinstance(after, LaunchRecord)):
        return None
    (pair,) = comparison.pairs
    if shift(pair) is None:
        return None
    return change_bars(before, after, pair.causes[0].effect if pair.causes else None)


@dataclass(frozen=True, kw_only=True)
class Brief:
    """Comparison for a terminal: the two sides, the results, tables, and notes."""

    before: str
    after: str
    is_worse: bool | None  #: of the first sentence
    sentences: Sequence[str]
    tables: Sequence[tuple[str, Table]]
    notes: Sequence[str]
    settings: Sequence[str] = ()


def brief(comparison: RunComparison, most: int) -> Brief:
    """The comparison of two profiles or launches, with `most` rows of each record in a table.

    The counts of two launches are all there: they are of a single record.
    """
    return Brief(
        before=described(comparison.before),
        after=described(comparison.after),
        is_worse=headline(comparison).is_worse,
        settings=[
            f"{one.name}: {one.before or text.ABSENT} → {one.after or text.ABSENT}"
            for one in comparison.environment
            if one.name not in ("device", "executor", "commit")
        ],
        sentences=sentences(comparison),
        tables=[
            (
                f"{title}, {section.shape}" if section.shape else title,
                rows.brief,
            )
            for section in shape_sections(comparison, most=most)
            for title, rows in section.tables.items()
            if title != WITHIN
        ],
        notes=(*doubts(comparison), *remarks(comparison)),
    )


def _kind(comparison: RunComparison) -> str:
    return "launches" if isinstance(comparison.before, LaunchRecord) else "profiles"


# In words.


def title(comparison: RunComparison) -> str:
    """Title with the devices or kernels that were compared."""
    sides = comparison.before, comparison.after
    names = (one.kernel if isinstance(one, LaunchRecord) else one.device for one in sides)
    of = "of" if _kind(comparison) == "launches" else "on"
    return f"Two {_kind(comparison)} {of} {text.listing(list(dict.fromkeys(names)))}"


def sentences(comparison: RunComparison) -> tuple[str, ...]:
    """Results: sentences on times, on causes, and on counts."""
    return (*_of_launch_or_profile(comparison), _of_counts(comparison))


def _of_launch_or_profile(comparison: RunComparison, *, with_factor: bool = True) -> Iterator[str]:
    """Sentences on times; `with_factor` has the change of a single launch, too."""
    if isinstance(comparison.before, LaunchRecord):
        (pair,) = comparison.pairs
        time = time_sentence(pair, with_factor=with_factor)
        yield from filter(None, [time, cause_sentence(pair)])
        return
    is_predicted = any(pair.predicted for pair in comparison.pairs)
    if not is_predicted or any(pair.time for pair in comparison.pairs):
        yield _of_times(comparison)
    if is_predicted:
        yield _of_predicted_times(comparison)


def _of_predicted_times(comparison: RunComparison) -> str:
    compared = [replace(pair, time=None) for pair in comparison.pairs if pair.predicted]
    shifts = [(pair, found) for pair in compared if (found := shift(pair))]
    parts = []
    for is_worse, words in ((True, "slower"), (False, "faster")):
        own = [pair for pair, found in shifts if found.is_worse is is_worse]
        if own:
            parts.append(f"{len(own)} {words} ({_names(own, comparison, factors=True)})")
    others = [pair for pair, found in shifts if found.is_worse is None and is_changed(pair)]
    if others:
        parts.append(f"{len(others)} limited otherwise ({_names(others, comparison)})")
    return f"Predicted times: {len(compared)} compared: {', '.join(parts) or 'no change'}."


def _of_counts(comparison: RunComparison) -> str:
    compared = sum(pair.compared for pair in comparison.pairs)
    if not compared:
        return "Counts: none could be compared."
    records = sum(pair.compared > 0 for pair in comparison.pairs)
    parts = [f"{text.count(compared)} compared in {text.many(records, 'record')}"]
    changed = [pair for pair in comparison.pairs if pair.changed]
    if changed:
        total = sum(len(pair.changed) for pair in changed)
        parts.append(f"{text.count(total)} changed, in {_names(changed, comparison)}")
    else:
        parts.append("none changed")
    within = sum(len(pair.counts) - len(pair.changed) for pair in comparison.pairs)
    if within:
        parts.append(f"{text.count(within)} {text.differ(within)} within the tolerance")
    lost: list[Pair | Key] = [
        *(pair for pair in comparison.pairs if pair.lost),
        *(key for key in comparison.only_before if key.has_counts),
    ]
    if lost:
        parts.append(f"lost: {_names(lost, comparison)}")
    return f"Counts: {'; '.join(parts)}."


def _of_times(comparison: RunComparison) -> str:
    timed = [pair for pair in comparison.pairs if pair.time]
    if not timed:
        return "Times: none could be compared."
    parts = []
    for verdict in TimeVerdict:
        own = [pair for pair in timed if pair.time and pair.time.verdict == verdict]
        if own:
            who = f" ({_names(own, comparison, factors=True)})" if verdict in _NAMED else ""
            parts.append(f"{len(own)} {verdict}{who}")
    return f"Times: {len(timed)} compared: {', '.join(parts)}."


_NAMED = (TimeVerdict.SLOWER, TimeVerdict.FASTER)


def _names(pairs: Iterable[Pair | Key], comparison: RunComparison, *, factors: bool = False) -> str:
    """Variants, with their shapes where there are several, and factors of their times if asked."""
    several = len({pair.shape for pair in comparison.pairs}) > 1
    names = []
    for pair in pairs:
        found = shift(pair) if factors and isinstance(pair, Pair) else None
        times = f" {text.ratio(found.factor)}" if found else ""
        names.append(f"{name(pair, with_shape=several)}{times}")
    return text.listing(names)


def name(of: Pair | Key, *, with_shape: bool = True) -> str:
    return f"{of.label} at {text.shape(of.shape)}" if with_shape and of.shape else of.label


def remarks(comparison: RunComparison) -> tuple[str, ...]:
    """Remarks: lost results, comparisons not made and why, and records of one side only."""
    return (
        *comparison.notes,
        *comparison.estimated,
        *_grouped(((p, f"lost: {lost}") for p in comparison.pairs for lost in p.lost), comparison),
        *_grouped(((p, note) for p in comparison.pairs for note in p.notes), comparison),
        *_only(comparison.only_before, "first"),
        *_only(comparison.only_after, "second"),
    )


def doubts(comparison: RunComparison) -> tuple[str, ...]:
    """Reasons why verdicts on times are ambiguous: the page shows them beside the verdicts."""
    told = ((pair, pair.time.reason) for pair in comparison.pairs if pair.time)
    return tuple(_grouped(((pair, f"ambiguous: {why}") for pair, why in told if why), comparison))


def _grouped(told: Iterable[tuple[Pair, str]], comparison: RunComparison) -> Iterator[str]:
    """Remarks on records, those of one wording together."""
    by_wording: dict[str, list[Pair]] = defaultdict(list)
    for pair, remark in told:
        by_wording[remark].append(pair)
    for remark, pairs in by_wording.items():
        everyone = len(pairs) == len(comparison.pairs) > 1
        yield f"{'all records' if everyone else _names(pairs, comparison)}: {remark}"


def _only(keys: tuple[Key, ...], which: str) -> Iterator[str]:
    if keys:
        yield f"only in the {which} profile: {text.listing([name(key) for key in keys])}"


# As tables.


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
    for time_s in (one.before_s, one.after_s):
        yield (
            "no such line" if time_s is None else text.predicted_seconds(time_s) if time_s else "0"
        )
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


def runs_table(comparison: RunComparison) -> Table:
    """Table of the two profiles or launches, with the differences of their environments."""
    sides = comparison.before, comparison.after
    rows = zip(*map(_facts, sides), strict=True)
    return plain_table(
        (f"of the {'run' if isinstance(sides[0], ComparedRun) else 'launch'}", "first", "second"),
        [
            *((name, ours, theirs) for (name, ours), (_, theirs) in rows),
            *(
                (one.name, one.before or text.ABSENT, one.after or text.ABSENT)
                for one in comparison.environment
                if one.name != "device"
            ),
        ],
    )


def _facts(one: Source) -> tuple[tuple[str, str], ...]:
    if isinstance(one, LaunchRecord):
        return (("launch", described(one)), ("device", one.device or text.ABSENT))
    return ("created", text.moment(one.created)), ("device", one.device), ("command", one.command)


def described(one: Source) -> str:
    """A side in a line: a kernel and its grid, or a device, when and from which sources."""
    if isinstance(one, LaunchRecord):
        grid, block = ("×".join(map(str, extent)) for extent in (one.grid, one.block))
        architecture = one.resources.architecture
        return f"{one.kernel} of {one.source} for {architecture}, grid {grid} of {block} threads"
    commit = f", commit {one.commit}" if one.commit else ""
    return f"{one.device}, {one.executor}, {text.moment(one.created)}{commit}"
