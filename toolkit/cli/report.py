"""The command `report`: it writes the page of a saved profile, or of saved launches."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.errors import InputError
from toolkit.cli.errors import damage_of, one_line_errors
from toolkit.cli.options import Json, Verbose
from toolkit.cli.output import check_page_output, print_json, write
from toolkit.cli.terminal import say

if TYPE_CHECKING:
    from reports.sections.launch_report import LaunchReport


def report(
    saved: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD.json...",
            help="A profile.json, or the output of `simulate --json` or `run --json`; may be "
            "compressed by xz. Several launches make one page.",
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="File to write the page to.",
            show_default="profile.html; of a launch NAME.html; of several launches.html",
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A measured profile.json to compare it with."),
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Write the HTML page of a saved profile, or of saved launches."""
    with one_line_errors():
        from toolkit.store.profile_json import holds_launch

        first, *others = saved
        if others or holds_launch(first):
            if recorded:
                raise InputError(
                    f"--recorded is for profiles, and {first} is the record of a launch: leave it "
                    "out"
                )
            if verbose:
                raise InputError(
                    f"--verbose is for profiles, and {first} is the record of a launch: leave it "
                    "out"
                )
            if others:
                _launches(saved, html or Path("launches.html"), as_json=as_json)
            else:
                _launch(first, html or _unpacked(first).with_suffix(".html"), as_json=as_json)
            return
        html = html or Path("profile.html")
        from reports import render
        from toolkit.cli.profile_tables import shown
        from toolkit.store.profile_json import load
        from toolkit.store.recorded_runs import run_beside

        files = [first, *filter(None, [recorded])]
        check_page_output(html, others=files)
        result = load(first)
        beside = load(recorded) if recorded else run_beside(result)
        with damage_of(*files):
            text = render(result, recorded=beside)
            printed = shown(result, beside, as_json=as_json, is_verbose=verbose)
        write({html: text})
        sys.stdout.write(printed)


def _launch(saved: Path, html: Path, *, as_json: bool) -> None:
    """Write the page of a launch, and print what it says first, or the record."""
    from reports.pages.kernel import page
    from reports.sections.launch_report import report_of
    from toolkit.store.profile_json import load_launch_document, read_text

    check_page_output(html, others=[saved])
    report = report_of(load_launch_document(saved))
    with damage_of(saved):
        text = page(report)
    write({html: text})
    if as_json:
        sys.stdout.write(read_text(saved))
        return
    for line in report.verdict.splitlines():
        say(line)


def _launches(saved: list[Path], html: Path, *, as_json: bool) -> None:
    """Write one page of several launches, and print a line for each, or their records."""
    from reports.pages.launches import page
    from reports.sections.launch_report import report_of
    from toolkit.store.profile_json import holds_launch, load_launch_document, read_text

    for path in saved:
        if not holds_launch(path):
            read_text(path)  # which says why it cannot be read
            raise InputError(f"{path} is not the record of a launch: give one profile, or launches")
    check_page_output(html, others=saved)
    reports = [report_of(load_launch_document(path)) for path in saved]
    with damage_of(*saved):
        text = page(_told_apart(saved, reports))
    write({html: text})
    if as_json:
        print_json([json.loads(read_text(path)) for path in saved])
        return
    for path, report in zip(saved, reports, strict=True):
        say(f" {report.answer.time_sentence}", lead=f"{path}:")


def _told_apart(saved: Sequence[Path], reports: Sequence[LaunchReport]) -> list[LaunchReport]:
    """The reports; those whose kernels have one name have the names of their files instead."""
    times = Counter(one.name for one in reports)
    names = [_unpacked(path).stem for path in saved]
    if len(set(names)) < len(names):  # of several folders
        names = [str(path) for path in saved]
    return [
        one if times[one.name] == 1 else replace(one, name=name)
        for one, name in zip(reports, names, strict=True)
    ]


def _unpacked(path: Path) -> Path:
    """The same path without the ending of a compressed file."""
    return path.with_suffix("") if path.suffix == ".xz" else path
