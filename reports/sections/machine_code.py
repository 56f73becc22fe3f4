"""What the simulator found: closed forms against machine code, and the counters of each line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.comparison.agreement import Comparison, comparisons
from analysis.records.counters import COUNTERS
from analysis.records.metrics import THREAD_INSTRUCTIONS
from analysis.records.profile import Grade, LineCounters, Record
from reports import text
from reports.ladder import View
from reports.sections.headline import agreement
from reports.sections.table import LABEL, Cell, Column, Table, plain_table, table_of


@dataclass(frozen=True, kw_only=True)
class MachineCode:
    """The section of one shape: a verdict, its table, every number, and the lines of each rung.

    `bases` state how the counts of which rungs were obtained. `is_riddled` is True if some quantity
    differs for no known reason.
    """

    verdict: str
    overview: Table
    bases: tuple[str, ...]
    everything: Table
    is_riddled: bool
    lines: tuple[tuple[str, Table], ...]


def machine_code(view: View) -> MachineCode | None:
    """The section for one shape, None if nothing was simulated."""
    compared = {record.label: comparisons(record) for record in view.rungs if record.simulated}
    if not compared:
        return None
    records = [r for r in view.rungs if r.simulated]
    return MachineCode(
        verdict=f"{agreement(compared.values())}.",
        overview=_overview(records, compared),
        bases=tuple(_bases(records)),
        everything=_everything(compared),
        is_riddled=any(not one.is_explained for found in compared.values() for one in found),
        lines=tuple(
            (record.label, lines_table(record.simulated.lines))
            for record in records
            if record.simulated and record.simulated.lines
        ),
    )


# Closed form against machine code.


def _overview(records: list[Record], compared: dict[str, tuple[Comparison, ...]]) -> Table:
    """One row per rung, one column per subject: equal, or by how much which quantity differs."""
    subjects = dict.fromkeys(one.subject for found in compared.values() for one in found)

    def column(subject: str) -> Column:
        def cell(record: Record) -> Cell:
            return _agreement([one for one in compared[record.label] if one.subject == subject])

        return Column(title=subject, grade=Grade.SIMULATED, cell=cell, is_number=False)

    return table_of([LABEL, *map(column, subjects)], records)


def _bases(records: list[Record]) -> Iterator[str]:
    """How counts were obtained, rungs of one basis together."""
    labels: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.simulated:
            labels[record.simulated.basis].append(record.label)
    for basis, same in labels.items():
        yield f"{text.listing(same)}: {basis}."


def _agreement(found: list[Comparison]) -> Cell:
    if not found:
        return Cell(text.ABSENT)
    differing = [one for one in found if not one.is_equal]
    if not differing:
        return Cell("equal")
    word = "explained" if all(one.is_explained for one in differing) else "not explained"
    return Cell(word, details=tuple(f"{one.quantity} {_ratio(one)}" for one in differing))


def _ratio(one: Comparison) -> str:
    """By how much the simulation differs."""
    return text.ratio_or_difference(one.ratio, of=one.simulated, to=one.closed_form)


def _everything(compared: dict[str, tuple[Comparison, ...]]) -> Table:
    """Every quantity of every rung by both grades, with the reason where they differ."""
    titles = (
        "variant",
        "of",
        "quantity",
        ("closed form", Grade.THEORY, True),
        ("machine code", Grade.SIMULATED, True),
        ("ratio", "", True),
        "why",
    )
    return plain_table(
        titles,
        (
            (
                label,
                one.subject,
                one.quantity,
                f"{one.closed_form:,}",
                f"{one.simulated:,}",
                "=" if one.is_equal else _ratio(one),
                one.reason or text.ABSENT,
            )
            for label, found in compared.items()
            for one in found
        ),
    )


# Counters per source line.


def lines_table(lines: tuple[LineCounters, ...]) -> Table:
    """One row per source line; counters that are 0 everywhere are left out.

    So are lanes whose guard is off: they are counted beside those whose guard is on.
    """
    counted = {name for line in lines for name in line.counters} - {THREAD_INSTRUCTIONS}
    names = [name for name in COUNTERS if name in counted]
    files = {line.file for line in lines}
    return plain_table(
        [
            ("line", "", True),
            "code",
            *((_title(name), Grade.SIMULATED, True) for name in names),
        ],
        (
            (
                str(line.line) if len(files) == 1 else f"{line.file}:{line.line}",
                line.text or text.ABSENT,
                *(_count_of(line, name) for name in names),
            )
            for line in lines
        ),
    )


def _title(name: str) -> str:
    """What a counter counts, in the words that fit above a column."""
    return re.sub(r"( of threads)? whose predicate is true$", "", COUNTERS[name].meaning)


def _count_of(line: LineCounters, name: str) -> str:
    count = line.counters.get(name, 0)
    return text.count(count) if count else ""
