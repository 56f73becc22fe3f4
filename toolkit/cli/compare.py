"""The command `compare`: it says what changed between two profiles, or launches."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.errors import damage_of, fail, fail_on_first, one_line_errors
from toolkit.cli.options import Page
from toolkit.cli.output import check_page_output, to_json, write
from toolkit.cli.terminal import COST, GAIN, note, out, rich_table, say

if TYPE_CHECKING:
    from analysis.comparison.runs import RunComparison

MOST_CHANGES = 10  # of one record: a screen has room for so many; JSON and HTML have them all


def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="A.json",
            help="Earlier profile, or output of `simulate --json` or `run --json`.",
        ),
    ],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="Later one of the same kind.")],
    html: Page = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help="Exit with code 3 if a count changed or is missing ('counts'), if a time got "
            "longer ('time'), or for either ('counts,time').",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON instead of tables.")
    ] = False,
) -> None:
    """Show what changed between two profiles or launches: times, their causes, and exact counts.

    Counts need no GPU, so a CI job without one can detect changes in a kernel's traffic.
    """
    kinds = _kinds(fail_on)
    with one_line_errors():
        from analysis.records.launch import LaunchRecord
        from reports.pages.comparison import page
        from reports.sections.regressions import not_compared, regressions
        from toolkit.store.comparison import compare_files

        if html:
            check_page_output(html, others=[before, after])
        found = compare_files(before, after)
        pages = {}
        with damage_of(before, after):
            if html:
                pages[html] = page(found)
            shown = _compared(found, as_json)
        write(pages)
        print(shown, end="", flush=True)  # before what is said on stderr
        is_of_launches = isinstance(found.before, LaunchRecord)
        way = "simulate or run both launches" if is_of_launches else "profile both sides"
        for kind in kinds:
            if kind == "counts" and found.estimated:
                fail(f"--fail-on counts: {found.estimated[0]}")
            fail_on_first(f"--fail-on {kind}", list(regressions(found, kind)))
            if why := not_compared(found, kind):
                fail(f"--fail-on {kind}: {why}: {way} alike")


def _kinds(text: str | None) -> list[str]:
    """Kinds that --fail-on names. Raises BadParameter for any other word."""
    from reports.sections.regressions import KINDS

    kinds = [kind.strip() for kind in text.split(",")] if text is not None else []
    for kind in kinds:
        if kind not in KINDS:
            raise typer.BadParameter(
                f"{kind!r} is none of {', '.join(KINDS)}: give one or both, with a comma between",
                param_hint="'--fail-on'",
            )
    return kinds


def _compared(found: RunComparison, as_json: bool) -> str:
    """Complete text for standard output, made before anything is written."""
    if as_json:
        return to_json(asdict(found))
    with out.capture() as capture:
        print_comparison(found)
    return capture.get()


def print_comparison(comparison: RunComparison) -> None:
    """Print the verdict, both sides, the tables of differences, and the notes."""
    from reports.pages.comparison import brief

    found = brief(comparison, MOST_CHANGES)
    first, *rest = found.sentences
    say(first, {True: COST, False: GAIN, None: "bold"}[found.is_worse])
    for sentence in rest:
        say(sentence, indent=0)
    say(f"  {found.before}", "dim", lead="first:")
    say(f" {found.after}", "dim", lead="second:")
    for setting in found.settings:
        say(f"  {setting}")
    for title, rows in found.tables:
        out.print(rich_table(rows, title=title))
    for remark in found.notes:
        note(remark)
