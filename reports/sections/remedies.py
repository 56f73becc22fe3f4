"""Remedies of a launch as a table: what to change, what it saves, and the time with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.records.remedy import Remedy
from reports import text
from reports.sections.table import Table, Title, plain_table

MICRO = 1e-6  # seconds
MOST_LINES = 4


def remedies_table(remedies: Sequence[Remedy]) -> Table:
    """One row per remedy. Of those that were not made, the most that they save is known.

    The last column has measured times, if there are any. The unit is that of the time without them.
    """
    scale, unit = text.time_unit(max((one.before_s for one in remedies), default=MICRO))

    def shown(time_s: float | None) -> str:
        return text.three_digits(time_s / scale) if time_s is not None else ""

    def saves(one: Remedy) -> str:
        return f"≤ {shown(one.most_s)}" if one.most_s is not None else shown(one.saved_s)

    titles: list[Title] = [
        ("", "", True),
        ("remedies", "", False),
        ("saves", "", True),
        (f"new time, {unit}", "", True),
    ]
    rows = [[str(one.number), title(one), saves(one), shown(one.after_s)] for one in remedies]
    if any(one.measured_s is not None for one in remedies):
        titles.append((f"measured, {unit}", "", True))
        for row, one in zip(rows, remedies, strict=True):
            row.append(shown(one.measured_s))
    return plain_table(titles, rows)


def title(remedy: Remedy) -> str:
    """'lines 12, 19: column ^ row; alternative to remedy 1'."""
    where = f"{place(remedy)}: " if remedy.lines else ""
    words = f"{where}{remedy.title}"
    if remedy.instead_of:
        words += f"; alternative to remedy {_numbers(remedy.instead_of)}"
    if remedy.after:
        words += f"; after remedy {_numbers(remedy.after)}"
    return f"{words}; changes rounding" if remedy.is_rounding else words


def place(remedy: Remedy) -> str:
    """'lines 12, 19'; empty for a change of the launch."""
    if not remedy.lines:
        return ""
    lines = ", ".join(map(str, remedy.lines[:MOST_LINES]))
    more = ", ..." if len(remedy.lines) > MOST_LINES else ""
    return f"{'lines' if len(remedy.lines) > 1 else 'line'} {lines}{more}"


def remedies_notes(remedies: Sequence[Remedy], *, is_applicable: bool = True) -> Iterator[str]:
    """Say what was compared, and how to apply a remedy that edits the source."""
    made = [one for one in remedies if one.after_s is not None]
    for compared in dict.fromkeys(one.compared for one in made):
        numbers = tuple(one.number for one in made if one.compared == compared)
        of_which = "" if len(numbers) == len(made) else f" ({_numbers(numbers)})"
        yield f"{compared}{of_which}"
    for one in made:
        if one.error:
            yield f"remedy {one.number}: {one.error}"
    first = next((one for one in made if one.diff), None)
    if first is not None and is_applicable:
        number, rounding = first.number, " --rounding" if first.is_rounding else ""
        yield f"--apply {number}{rounding} writes the edited source, after comparing all blocks"


def _numbers(numbers: Sequence[int]) -> str:
    return text.listing([str(one) for one in numbers])
