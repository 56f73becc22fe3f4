"""The command `report`: it renders a saved profile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.errors import damage_of, one_line_errors
from toolkit.cli.options import Html, Json, Verbose
from toolkit.cli.output import check_output, write


def report(
    saved: Annotated[
        Path,
        typer.Argument(metavar="RECORD.json", help="A profile.json, or one that xz compressed."),
    ],
    html: Html = Path("profile.html"),
    recorded: Annotated[
        Path | None, typer.Option(help="A measured profile.json to show beside it.")
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Render a saved profile into a report."""
    with one_line_errors():
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
            printed = shown(result, beside, as_json=as_json, is_verbose=verbose)
        write({html: text})
        sys.stdout.write(printed)
