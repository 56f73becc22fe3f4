"""What `compare` prints: what changed from one profile to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.markup import escape

from analysis.comparison import ProfileComparison
from reports import text
from reports.comparison import described, doubts, remarks, sentences, shape_sections
from toolkit.console import out, rich_table

MOST_CHANGES = 10  # of one record: a screen has room for so many; JSON and HTML have them all


def print_comparison(comparison: ProfileComparison) -> None:
    """The two profiles, what came out, the tables of what differs, and the remarks."""
    out.print(f"[dim]first:[/]  {escape(described(comparison.before))}", soft_wrap=True)
    out.print(f"[dim]second:[/] {escape(described(comparison.after))}", soft_wrap=True)
    for setting in comparison.environment:
        if setting.name not in ("device", "executor", "commit"):
            was, is_now = (value or text.ABSENT for value in (setting.before, setting.after))
            out.print(escape(f"  {setting.name}: {was} → {is_now}"), soft_wrap=True)
    for sentence in sentences(comparison):
        out.print(f"[bold]{escape(sentence)}[/]", soft_wrap=True)
    for section in shape_sections(comparison, most=MOST_CHANGES, is_compact=True):
        for title, rows in (
            ("counts", section.changed),
            ("source lines", section.lines),
            ("times", section.times),
            ("predicted times", section.predictions),
        ):
            if rows.rows:
                out.print(rich_table(rows, title=f"{title}, {section.shape}"))
    for remark in (*doubts(comparison), *remarks(comparison)):
        out.print(f"[yellow]note:[/] {escape(remark)}", soft_wrap=True)


def document(comparison: ProfileComparison) -> dict[str, Any]:
    """What `--json` prints."""
    return asdict(comparison)


def regressions(comparison: ProfileComparison, kind: str) -> Iterator[str]:
    """What `--fail-on` of that kind is to fail on, a phrase each."""
    for pair in comparison.pairs:
        where = f"{pair.label} at {pair.shape}"
        for lost in pair.lost:
            yield f"{where}: {lost}"
        if kind == "counts":
            for one in pair.changed:
                yield f"{where}: {one.name} ({one.grade}) {one.before:,} → {one.after:,}"
        elif pair.time and pair.time.verdict == "slower":
            times = (pair.time.before_s, pair.time.after_s)
            yield f"{where}: slower, {' → '.join(map(text.seconds, times))}"
