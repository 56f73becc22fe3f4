"""What `tune` prints: who won, what it rests on, and the best of the table."""

from __future__ import annotations

from rich.markup import escape

from analysis.tuning import Tuning
from reports.tuning import lead, outcomes_table, points
from toolkit.cli.tables import out, rich_table

MOST_ROWS = 16  # of a shape: a screen has room for so many; JSON and HTML have them all


def print_tuning(tuning: Tuning) -> None:
    """For every shape: the answer in words, and the configurations."""
    for shape in tuning.shapes:
        out.print(f"[bold]{escape(lead(tuning, shape))}[/]", soft_wrap=True)
        for point in points(shape):
            out.print(f"  - {escape(point)}", soft_wrap=True)
        out.print()
        table = outcomes_table(shape, MOST_ROWS)
        out.print(rich_table(table))
        more = len(shape.candidates) - len(table.rows)
        if more > 0:
            out.print(f"[dim]and {more} more, in the page and the record[/]")
