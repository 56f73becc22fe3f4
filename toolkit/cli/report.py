"""The command `report`: it renders saved profiles."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.errors import InputError
from toolkit.cli.errors import damage_of, one_line_errors
from toolkit.cli.options import Html, Json
from toolkit.cli.output import check_output, write

if TYPE_CHECKING:
    from analysis.records.profile import Profile


def report(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD.json...",
            help="A profile.json, or one that xz compressed; several stand side by side.",
        ),
    ],
    html: Html = Path("profile.html"),
    recorded: Annotated[
        Path | None, typer.Option(help="A measured profile.json to show beside a single one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Render saved profiles into a report; of several, a reader chooses which one it shows."""
    with one_line_errors():
        from reports import render, render_together
        from toolkit.cli.profile_tables import shown

        check_output(html, others=[*records, *filter(None, [recorded])])
        runs = _with_recorded(records, recorded)
        with damage_of(*records, *filter(None, [recorded])):
            (result, beside), *others = runs
            text = render_together(runs) if others else render(result, recorded=beside)
            printed = "".join(shown(*run, as_json) for run in runs)
        write({html: text})
        sys.stdout.write(printed)


def _with_recorded(
    records: Sequence[Path], recorded: Path | None
) -> list[tuple[Profile, Profile | None]]:
    """The saved profiles, each with the run that is shown beside it, if there is any."""
    from toolkit.store.profile_json import load
    from toolkit.store.recorded_runs import run_beside

    if recorded and len(records) > 1:
        raise InputError(
            f"--recorded {recorded} goes beside one profile, not {len(records)}: "
            "give it as one of them"
        )
    return [
        (result, load(recorded) if recorded else run_beside(result))
        for result in map(load, records)
    ]
