"""Remedies of a launch as a table: what to change, what it saves, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.records.remedy import Remedy
from reports import text
from reports.sections.table import Table, Title, plain_table

MICRO = 1e6
MOST_LINES = 4


def remedies_table(remedies: Sequence[Remedy]) -> Table:
    """One row per remedy. Those that were not made have no times.

    The last column has measured times, if there are any.
    """
    titles: list[Title] = [
        ("", "", True),
        ("remedies", "", False),
        ("saves", "", True),
        ("leaves, µs", "", True),
    ]
    rows = [
        [str(one.number), title(one), _micro(one.saved_s), _micro(one.after_s)] for one in remedies
    ]
    if any(one.measured_s is not None for one in remedies):
        titles.append(("measured, µs", "", True))
        for row, one in zip(rows, remedies, strict=True):
            row.append(_micro(one.measured_s))
    return plain_table(titles, rows)


def title(remedy: Remedy) -> str:
    """'lines 12, 19: column ^ row; instead of 1'."""
    lines = ", ".join(map(str, remedy.lines[:MOST_LINES]))
    more = ", ..." if len(remedy.lines) > MOST_LINES else ""
    where = f"line{'s' * (len(remedy.lines) > 1)} {lines}{more}: " if remedy.lines else ""
    related = [f"; instead of {_numbers(remedy.instead_of)}"] * bool(remedy.instead_of)
    related += [f"; after {_numbers(remedy.after)}"] * bool(remedy.after)
    related += ["; changes rounding"] * remedy.is_rounding
    return f"{where}{remedy.title}{''.join(related)}"


def remedies_notes(remedies: Sequence[Remedy]) -> Iterator[str]:
    """What was compared, and how to apply a remedy."""
    made = [one for one in remedies if one.after_s is not None]
    for compared in dict.fromkeys(one.compared for one in made):
        numbers = tuple(one.number for one in made if one.compared == compared)
        of_which = "" if len(numbers) == len(made) else f" ({_numbers(numbers)})"
        yield f"{compared}{of_which}"
    for one in made:
        if one.error:
            yield f"remedy {one.number}: {one.error}"
    if made:
        rounding = " --rounding" * made[0].is_rounding
        number = made[0].number
        yield f"--apply {number}{rounding} writes the edited source, after comparing all blocks"


def _numbers(numbers: Sequence[int]) -> str:
    return text.listing([str(one) for one in numbers])


def _micro(time_s: float | None) -> str:
    """Microseconds to three digits: '10.1'. The unit is in the title."""
    return f"{MICRO * time_s:#.3g}".rstrip(".") if time_s is not None else ""
