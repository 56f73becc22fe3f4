"""The command `report`: it renders a saved profile, or a saved launch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from analysis.errors import InputError
from toolkit.cli.errors import damage_of, one_line_errors
from toolkit.cli.options import Json
from toolkit.cli.output import check_output, write
from toolkit.cli.terminal import say


def report(
    saved: Annotated[
        Path,
        typer.Argument(
            metavar="RECORD.json",
            help="A profile.json, or what `simulate` or `run --json` printed; also compressed by "
            "xz.",
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Where the report goes.",
            show_default="profile.html; of a launch in NAME.json, NAME.html",
        ),
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="A measured profile.json to show beside it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Render a saved profile, or a saved launch, into a page."""
    with one_line_errors():
        from toolkit.store.profile_json import holds_launch

        if holds_launch(saved):
            if recorded:
                raise InputError(f"--recorded is for profiles: {saved} is the record of a launch")
            _launch(saved, html or saved.with_suffix(".html"), as_json=as_json)
            return
        html = html or Path("profile.html")
        from reports import render
        from toolkit.cli.profile_tables import shown
        from toolkit.store.profile_json import load
        from toolkit.store.recorded_runs import run_beside

        files = [saved, *filter(None, [recorded])]
        check_output(html, others=files)
        result = load(saved)
        beside = load(recorded) if recorded else run_beside(result)
        with damage_of(*files):
            text = render(result, recorded=beside)
            printed = shown(result, beside, as_json)
        write({html: text})
        sys.stdout.write(printed)


def _launch(saved: Path, html: Path, *, as_json: bool) -> None:
    """Write the page of a launch, and print what it says first, or the record."""
    from reports.pages.kernel import page
    from reports.sections.launch_report import report_of
    from toolkit.store.profile_json import load_launch_document, read_text

    check_output(html, others=[saved])
    report = report_of(load_launch_document(saved))
    with damage_of(saved):
        text = page(report)
    write({html: text})
    if as_json:
        sys.stdout.write(read_text(saved))
        return
    answer = report.answer
    for sentence in (answer.time_sentence, answer.cause_sentence, answer.line_sentence):
        say(sentence)
