"""The command `tune`: it finds the fastest parameters of a rung."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.errors import fail, one_line_errors
from toolkit.cli.options import (
    Constants,
    DeviceName,
    Html,
    InputSeed,
    Json,
    Record,
    complete_variant,
)
from toolkit.cli.output import check_is_no_input, check_output, check_page_output, write
from toolkit.cli.terminal import err, out, rich_table, say

if TYPE_CHECKING:
    from analysis.records.tuning import Tuning

MOST_ROWS = 16  # of a shape: a screen has room for so many; JSON and HTML have them all


def tune(
    variant: Annotated[
        str,
        typer.Argument(
            metavar="RUNG",
            help="A rung; 'coarsened-1d:tm=8' fixes some parameters.",
            autocompletion=complete_variant,
        ),
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            "-s",
            metavar="SHAPE",
            help="'4096' or 'MxNxK', or several: '512,4096'.",
            show_default="4096",
        ),
    ] = None,
    device: DeviceName = None,
    constants: Constants = None,
    predict: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of configurations to predict: the best by closed forms.",
        ),
    ] = 64,
    measure: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Number of configurations to measure: the best by prediction."
        ),
    ] = 16,
    finalists: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Number of the fastest to time together with cuBLAS."
        ),
    ] = 6,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of measured times to reuse.",
            show_default="the user's cache",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0.01,
            metavar="SECONDS",
            help="Time limit for the samples of one finalist.",
        ),
    ] = 2.0,
    seed: InputSeed = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Save the winners in the user's data folder.")
    ] = True,
    html: Html = Path("tuning.html"),
    record: Record = Path("tuning.json"),
    as_json: Json = False,
) -> None:
    """Find the fastest parameters of a rung at each shape.

    All legal configurations are ranked by predicted time. With a GPU, the best are measured, and
    the fastest of these are checked and timed together with cuBLAS. After Ctrl-C, repeat the
    command to continue.
    """
    with one_line_errors("interrupted: only the cache was written"):
        from toolkit.cli.progress import TerminalProgress
        from toolkit.gpu.sampling import Sampling
        from toolkit.tuning.tune import tune as run_tune
        from toolkit.tuning.tuner import Effort

        check_page_output(html, others=[record])
        check_output(record)
        for path in (html, record):
            check_is_no_input(path, list(cache.iterdir()) if cache and cache.is_dir() else ())
        with TerminalProgress() as progress:
            result = run_tune(
                variant,
                [one for text in shape or ["4096"] for one in text.split(",")],
                device=device,
                constants=constants,
                effort=Effort(
                    predictions=predict,
                    measurements=measure,
                    finalists=finalists,
                    cache=cache,
                    sampling=Sampling(time_limit_s=seconds),
                ),
                seed=seed,
                progress=progress,
            )
        _finish_tuning(result, html, record, keep=keep, as_json=as_json)


def _finish_tuning(result: Tuning, html: Path, record: Path, *, keep: bool, as_json: bool) -> None:
    """Write, keep and show the results."""
    from reports.pages.tuning import page
    from toolkit.store.tuned import keep as keep_entries
    from toolkit.tuning.tune import entries_of

    document = json.dumps(asdict(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write({html: page(result), record: document})
    entries = entries_of(result) if keep else []
    if entries:
        say(f"kept {len(entries)} in {keep_entries(entries)}", console=err)
    if as_json:
        sys.stdout.write(document)
    else:
        print_tuning(result)
    if result.missing:
        asked = len(result.shapes) + len(result.missing)
        fail(
            f"{len(result.missing)} of {asked} shapes are missing: {result.missing[0]}; what was "
            f"measured is in the cache, repeat: {result.command}"
        )


def print_tuning(tuning: Tuning) -> None:
    """Print the answer in words, and the configurations, for every shape."""
    from reports.pages.tuning import lead, outcomes_table, points

    for shape in tuning.shapes:
        say(lead(tuning, shape), "bold")
        for point in points(shape):
            say(f"  - {point}")
        out.print()
        table = outcomes_table(shape, MOST_ROWS)
        out.print(rich_table(table))
        more = len(shape.candidates) - len(table.rows)
        if more > 0:
            out.print(f"[dim]and {more} more, in the page and the record[/]")
