"""Answers and tables that `profile` and `report` print for every shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from analysis.comparison.agreement import unexplained
from analysis.records.profile import Profile, Record
from analysis.roofline import LevelName
from reports import text
from reports.ladder import View, shapes
from reports.sections import hierarchy, rungs
from reports.sections.breakdown import breakdown
from reports.sections.compact_table import compact_table, replaces_times
from reports.sections.headline import answer, standing
from reports.sections.prediction import told_steps
from reports.sections.scorecard import scorecard
from toolkit.cli.terminal import out, rich_table, say
from toolkit.store.profile_json import dumps


def print_profile(profile: Profile, recorded: Profile | None) -> None:
    """Print the answer in words, and the ladder, for every shape."""
    for sentence in standing(profile):
        say(sentence, "yellow")
    for shape in shapes(profile):
        view = View(profile, shape, recorded)
        compared = view if any(map(view.earlier, view.records)) else View(profile, shape)
        said = answer(compared)
        say(f"{text.shape(shape)} on {profile.device.name}")
        out.print(f"[bold]{escape(said.lead)}[/]")
        if said.trust:
            out.print(escape(said.trust))
        out.print(_bullets(said.points))
        out.print(rich_table(compact_table(compared, out.width)))
        if replaces_times(compared):
            for line in _own_rates(view.records):
                say(line)
        for line in _riddles(view.records):
            say(line, "yellow")
        _print_breakdown(view)
        _print_steps(view)
        _print_levels(view)
        _print_scorecard(view)


def _bullets(points: Sequence[str]) -> Table:
    """Sentences below each other, their further lines under the first word."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=3, justify="right")
    grid.add_column()
    for point in points:
        grid.add_row("-", escape(point))
    return grid


def _print_steps(view: View) -> None:
    """Print the reasons why each rung beats the one before, if a time was predicted."""
    steps = told_steps(view)
    if steps and view.timings:
        rows = rungs.table(steps, grade=view.grade_of_times)
        out.print("why each rung beats the one before, or does not")  # the table may be narrower
        out.print(rich_table(rows))


def _print_breakdown(view: View) -> None:
    """Print the parts of the times of a few variants; the report shows them for many."""
    rows = breakdown(view)
    if rows is None:
        return
    table = rich_table(rows)
    if table.__rich_measure__(out, out.options).minimum <= out.width:
        out.print("where the time goes")  # the table may be narrower
        out.print(table)


def _print_levels(view: View) -> None:
    """The intensity of every variant at each memory level, where traffic below L1 is known."""
    found = [
        one
        for one in hierarchy.launches(view)
        if any(one.pair(LevelName.L2)) or any(one.pair(LevelName.DRAM))
    ]
    if found:
        about = f"FLOP per byte at each level, {text.shape(view.shape)} ({hierarchy.grades(found)})"
        say(about)  # a title would be as narrow as its table
        out.print(rich_table(hierarchy.table(found)))


def _print_scorecard(view: View) -> None:
    """Print the scorecard of a shape if hardware counted something or an exact counter is off.

    The answer already says whether simulation and closed forms agree.
    """
    found = scorecard(view)
    if found and (found.is_measured or found.bad):
        out.print(escape(found.verdict))
        out.print(rich_table(found.overview.brief, title=f"scorecard, {text.shape(view.shape)}"))


def _own_rates(records: Sequence[Record]) -> Iterator[str]:
    """Rates measured on this machine, beside the recorded numbers of the table."""
    for record in records:
        measured = record.trusted
        if measured:
            rate = text.flop_per_s(measured.flop_per_s)
            yield f"{record.label} on this machine: {rate} (measured)"


def _riddles(records: Sequence[Record]) -> Iterator[str]:
    """Differences between closed form and machine code whose reason is not known."""
    for record in records:
        for one in unexplained(record):
            yield (
                f"{record.label}: {one.quantity} of {one.subject}: "
                f"{one.closed_form:,} by the closed form, {one.simulated:,} simulated: "
                f"{one.reason or ''}"
            )


def shown(result: Profile, recorded: Profile | None, as_json: bool) -> str:
    """Complete text for standard output, made before anything is written."""
    if as_json:
        return dumps(result)
    with out.capture() as capture:
        print_profile(result, recorded)
    return capture.get()
