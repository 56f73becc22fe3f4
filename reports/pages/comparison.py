"""Differences between two profiles or launches: sentences, tables, and a page of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.comparison.runs import (
    ComparedRun,
    Key,
    Pair,
    RunComparison,
    Source,
)
from analysis.comparison.statistics import NEGLIGIBLE_CHANGE, TimeVerdict
from analysis.records.launch import LaunchRecord
from reports import style, text
from reports.figures.comparison import times
from reports.pages.drawing import Drawing, plotly
from reports.sections.change_bars import ChangeBars, change_bars
from reports.sections.changes import (
    cause_sentence,
    headline,
    is_changed,
    shift,
    time_sentence,
)
from reports.sections.comparison_tables import LINES, TIMES, WITHIN, shape_sections
from reports.sections.table import Table, plain_table
from reports.templating import template


def page(comparison: RunComparison) -> str:
    """The comparison as one HTML page that needs no network."""
    drawn = drawing(comparison)
    return template("comparison.html.j2").render(
        title=title(comparison),
        head=headline(comparison),
        sentences=list(_of_launch_or_profile(comparison, with_factor=False)),
        counted=_of_counts(comparison),
        figure=figure(comparison),
        drawing=drawn,
        plotly_js=plotly() if drawn else "",
        colours=style.COLOURS,
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


def drawing(comparison: RunComparison) -> Drawing | None:
    """Change of each time of two profiles, None for launches and without times."""
    if isinstance(comparison.before, LaunchRecord) or not any(map(shift, comparison.pairs)):
        return None
    return Drawing(
        title="Change of each time",
        reading="Right of 0: more time than before. Left of 0: less.",
        figure=times(comparison),
    )


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
        parts.append(f"{len(others)} with another limiter ({_names(others, comparison)})")
    return f"Predicted times: {len(compared)} compared: {', '.join(parts) or 'no change'}."


def _of_counts(comparison: RunComparison) -> str:
    compared = sum(pair.compared for pair in comparison.pairs)
    if not compared:
        return "Counts: none could be compared."
    records = sum(pair.compared > 0 for pair in comparison.pairs)
    is_launch = isinstance(comparison.before, LaunchRecord)
    where = "" if is_launch else f" in {text.many(records, 'record')}"
    parts = [f"{text.count(compared)} compared{where}"]
    changed = [pair for pair in comparison.pairs if pair.changed]
    if changed:
        total = sum(len(pair.changed) for pair in changed)
        where = "" if is_launch else f", in {_names(changed, comparison)}"
        parts.append(f"{text.count(total)} changed{where}")
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
        parts.append(f"counted before only: {_names(lost, comparison)}")
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
        *_grouped(
            ((p, f"counted before only: {lost}") for p in comparison.pairs for lost in p.lost),
            comparison,
        ),
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
