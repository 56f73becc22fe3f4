"""Rows of cells under titled columns, which the page, the terminal and notebooks draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import compress, groupby
from typing import TYPE_CHECKING

from reports import text

if TYPE_CHECKING:
    from analysis.records.profile import Record


@dataclass(frozen=True)
class Cell:
    """A value, and quieter lines below it; `is_bad` where a reader must not overlook it.

    `is_head` names the rows below it. `is_worse` is True for a change that costs time, False for
    one that gives it back, None for any other value.
    """

    text: str
    _: KW_ONLY
    details: tuple[str, ...] = ()
    is_bad: bool = False
    is_head: bool = False
    is_worse: bool | None = None


NO_CELL = Cell(text.ABSENT)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its title, the grade of its numbers, and how a record fills it.

    `short` is the title on a terminal, where that is another one. Words wrap on a terminal that is
    too narrow, unless `is_whole`.
    """

    title: str
    grade: str
    cell: Callable[[Record], Cell]
    is_number: bool = True
    is_whole: bool = False
    short: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under titled columns; `grades` are runs of (grade, number of columns)."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def starts(self) -> tuple[bool, ...]:
        """For each column, True if it is the first of its grade."""
        grades = [column.grade for column in self.columns]
        return tuple(one != before for one, before in zip(grades, [None, *grades], strict=False))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """For each column, the classes of its cells on a page."""
        return tuple(
            f"{'number' if column.is_number else 'words'} {column.title.replace(' ', '-')}"
            f"{' start' if is_start else ''}"
            for column, is_start in zip(self.columns, self.starts, strict=True)
        )

    def only(self, wanted: Callable[[Column], bool]) -> Table:
        """The same with some of its columns."""
        kept = [*map(wanted, self.columns)]
        return Table(
            columns=tuple(compress(self.columns, kept)),
            rows=tuple(tuple(compress(row, kept)) for row in self.rows),
        )

    @property
    def without_last_column(self) -> Table:
        """The same for a place that is too narrow for all of it."""
        return Table(columns=self.columns[:-1], rows=tuple(row[:-1] for row in self.rows))

    @property
    def brief(self) -> Table:
        """The same with the first detail of bad cells and of changes alone, for a short place."""
        return self.briefly(*(column.title for column in self.columns))

    def briefly(self, *titles: str) -> Table:
        """The same, brief under some titles."""
        short = [column.title in titles for column in self.columns]
        rows = tuple(
            tuple(
                replace(cell, details=cell.details[: _is_told(cell)]) if is_short else cell
                for cell, is_short in zip(row, short, strict=True)
            )
            for row in self.rows
        )
        return replace(self, rows=rows)

    @property
    def grades(self) -> tuple[tuple[str, int], ...]:
        runs = groupby(column.grade for column in self.columns)
        return tuple((grade, len(list(run))) for grade, run in runs)


Title = str | tuple[str, str, bool]


def plain_table(titles: Iterable[Title], rows: Iterable[Iterable[Cell | str]]) -> Table:
    """Rows that are no records, under (title, grade, whether they are numbers).

    A title alone is one of words without a grade.
    """
    told = ((one, "", False) if isinstance(one, str) else one for one in titles)
    columns = (
        Column(title=title, grade=grade, cell=lambda _: NO_CELL, is_number=is_number)
        for title, grade, is_number in told
    )
    cells = ([Cell(one) if isinstance(one, str) else one for one in row] for row in rows)
    return Table(columns=tuple(columns), rows=tuple(map(tuple, cells)))


def head(name: str, columns: int) -> list[Cell | str]:
    """A row that names those below it, in a table of so many columns."""
    return [Cell(name, is_head=True), *[""] * (columns - 1)]


def _is_told(cell: Cell) -> bool:
    return cell.is_bad or cell.is_worse is not None


def says(cell: Cell) -> bool:
    """True if a cell has a value."""
    return cell.text != text.ABSENT


def table_of(columns: Sequence[Column], records: Sequence[Record]) -> Table:
    """One row per record."""
    rows = tuple(tuple(column.cell(record) for column in columns) for record in records)
    return Table(columns=tuple(columns), rows=rows)


def text_cell(value: str, *details: str) -> Cell:
    return Cell(value, details=tuple(detail for detail in details if detail))
