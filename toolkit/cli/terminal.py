"""The terminal: its two streams, and tables on it, through rich."""

from __future__ import annotations

import re
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reports.sections.table import Cell
    from reports.sections.table import Table as Rows

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)

COST, GAIN = "bold dark_orange3", "bold dodger_blue2"  # of a change that costs time, or saves it
TIED = "\u00a0"  # a space at which no line ends
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[nµm]?s\b|[MG]Hz\b)")
STATUS_STYLES = {"right": "green", "skipped": "yellow", "failed": "bold red"}


def say(
    text: str, style: str = "", *, lead: str = "", indent: int | None = None, console: Console = out
) -> None:
    """Print text; the style is that of `lead` if there is one. Nothing in it is markup.

    With an `indent`, a line that is too long for the terminal ends between words and is continued
    behind so many spaces. Without one, and in a file, it stays whole: a command in it can be
    copied, and the line can be searched.
    """
    if indent is not None and console.is_terminal:
        text = _wrapped(lead + text, console.width, indent).removeprefix(lead)
    shown = Text.assemble((lead, style), text) if lead else Text(text, style)
    console.print(shown, soft_wrap=True)


def _wrapped(text: str, width: int, indent: int) -> str:
    wrapped = "\n".join(
        fill(
            _BEFORE_UNIT.sub(TIED, line),
            width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )
    return wrapped.replace(TIED, " ")


def note(text: str, console: Console = out) -> None:
    """Print a note on the result."""
    lead = "note:"
    say(f" {text}", "yellow", lead=lead, indent=len(lead) + 1, console=console)


def plain_table(gap: int = 1, *, is_tight: bool = False, **more: Any) -> Table:
    """A table with a line below its titles alone, and a gap between columns.

    A tight one has no line and no margins.
    """
    style = None if is_tight else box.SIMPLE_HEAD
    return Table(box=style, pad_edge=False, padding=(0, gap, 0, 0), **more)


def print_without_margins(table: Table) -> None:
    """Print a table with no empty line above and below it."""
    table.show_edge = False
    out.print(Padding(table, (0, 1), expand=False))


def rich_table(rows: Rows, *, title: str = "", is_tight: bool = False) -> Table:
    """A table of the report on the terminal; details stand below their cells."""
    table = plain_table(
        is_tight=is_tight, title=escape(title) or None, title_justify="left", title_style=""
    )
    for column, *cells in zip(rows.columns, *rows.rows, strict=True):
        has_details = any(cell.details for cell in cells)
        longest = max((len(cell.text) for cell in cells), default=0)
        table.add_column(
            f"{escape(column.title)}\n[dim]{escape(column.grade)}[/]"
            if any(column.grade for column in rows.columns)
            else escape(column.title),
            justify="right" if column.is_number else "left",
            # where the terminal is too narrow, details take more lines, and numbers stay whole
            min_width=longest if column.is_number else None,
            no_wrap=column.is_whole
            or column.title in ("variant", "rung")
            or (column.is_number and not has_details),
        )
    for row in rows.rows:
        table.add_row(*map(_rich_cell, row))
    return table


def _rich_cell(cell: Cell) -> str:
    kinds = {
        "bold red": cell.is_bad,
        COST: cell.is_worse is True,
        GAIN: cell.is_worse is False,
        "bold": cell.is_head,
    }
    style = next(filter(kinds.get, kinds), STATUS_STYLES.get(cell.text))
    value = f"[{style}]{escape(cell.text)}[/]" if style else escape(cell.text)
    return "\n".join([value, *(f"[dim]{escape(detail)}[/]" for detail in cell.details)])
