"""What `compare` prints: what changed from one profile, or launch, to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.markup import escape

from analysis.comparison import CountChange, ProfileComparison
from analysis.launch_comparison import LaunchComparison, LaunchRecord
from reports import text
from reports.comparison import (
    described,
    doubts,
    launch_sentences,
    launch_tables,
    remarks,
    sentences,
    shape_sections,
)
from toolkit.cli.tables import out, rich_table

MOST_CHANGES = 10  # of one record: a screen has room for so many; JSON and HTML have them all


def print_comparison(comparison: ProfileComparison | LaunchComparison) -> None:
    """What came out of two profiles, or of two launches."""
    if isinstance(comparison, LaunchComparison):
        _print_launches(comparison)
    else:
        _print_profiles(comparison)


def _print_profiles(comparison: ProfileComparison) -> None:
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


def _print_launches(comparison: LaunchComparison) -> None:
    """The two launches, what came out, what differs with its source lines, and the remarks."""
    out.print(f"[dim]first:[/]  {escape(_launch(comparison.before))}", soft_wrap=True)
    out.print(f"[dim]second:[/] {escape(_launch(comparison.after))}", soft_wrap=True)
    for sentence in launch_sentences(comparison):
        out.print(f"[bold]{escape(sentence)}[/]", soft_wrap=True)
    tables = launch_tables(comparison, most=MOST_CHANGES)
    for title, rows in zip(("counts", "source lines"), tables, strict=True):
        if rows.rows:
            out.print(rich_table(rows, title=title))
    for note in comparison.notes:
        out.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def _launch(one: LaunchRecord) -> str:
    grid, block = ("×".join(map(str, extent)) for extent in (one.grid, one.block))
    architecture = one.resources.architecture
    return f"{one.kernel} of {one.source} for {architecture}, grid {grid} of {block} threads"


def document(comparison: ProfileComparison | LaunchComparison) -> dict[str, Any]:
    """What `--json` prints."""
    return asdict(comparison)


def regressions(comparison: ProfileComparison | LaunchComparison, kind: str) -> Iterator[str]:
    """What `--fail-on` of that kind is to fail on, a phrase each."""
    if isinstance(comparison, LaunchComparison):
        if kind == "counts":
            yield from (*comparison.lost, *map(_phrase, comparison.changed))
        return
    if kind == "counts":
        for key in comparison.only_before:
            if key.has_counts:
                yield f"{key.label} at {key.shape}: missing in the second profile"
    for pair in comparison.pairs:
        where = f"{pair.label} at {pair.shape}"
        for lost in pair.lost if kind == "counts" or pair.status_after != "ok" else ():
            yield f"{where}: {lost}"
        if kind == "counts":
            for one in pair.changed:
                yield f"{where}: {_phrase(one)}"
        elif pair.time and pair.time.verdict == "slower":
            times = (pair.time.before_s, pair.time.after_s)
            yield f"{where}: slower, {' → '.join(map(text.seconds, times))}"


def compares(comparison: ProfileComparison | LaunchComparison, kind: str) -> bool:
    """Whether anything of a kind was compared: "counts", "time" or "predicted time"."""
    if isinstance(comparison, LaunchComparison):
        return kind == "counts" or (kind == "predicted time" and comparison.predicted is not None)
    verdicts = {
        "counts": comparison.counts,
        "time": comparison.times,
        "predicted time": comparison.predictions,
    }
    return verdicts[kind] != "not compared"


def _phrase(one: CountChange) -> str:
    return f"{one.name} ({one.grade}) {one.before:,} → {one.after:,}"
