"""The command `profile`: it runs the ladder and writes a page and a record."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.errors import ToolkitError
from analysis.l2_state import DEFAULT_L2
from toolkit.cli.errors import fail, fail_on_first, one_line_errors
from toolkit.cli.options import (
    Clock,
    Constants,
    DeviceName,
    FoundInL2,
    Html,
    InputSeed,
    Json,
    Record,
    Verbose,
    complete_variant,
)
from toolkit.cli.output import check_output, check_page_output, write
from toolkit.cli.terminal import err, note

if TYPE_CHECKING:
    from analysis.records.profile import Profile


_SEED = re.compile(r" --seed \d+")  # of a command


class ExecutorChoice(StrEnum):
    auto = "auto"
    gpu = "gpu"
    simulate = "simulate"
    theory = "theory"


def profile(
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            "-s",
            metavar="SHAPE",
            help="'4096' or 'MxNxK'; repeatable.",
            show_default="4096",
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            "-v",
            metavar="VARIANT",
            help="A rung or reference, such as 'tiled' or 'tiled:tile=16'; repeatable.",
            show_default="the whole ladder",
            autocompletion=complete_variant,
        ),
    ] = None,
    device: DeviceName = None,
    constants: Constants = None,
    clock: Clock = None,
    executor: Annotated[
        ExecutorChoice,
        typer.Option(
            help="auto: the GPU if there is one, else the simulator. theory: formulas only."
        ),
    ] = ExecutorChoice.auto,
    html: Html = Path("profile.html"),
    record: Record = Path("profile.json"),
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0.01,
            metavar="SECONDS",
            help="Time limit for the samples of one variant and shape.",
        ),
    ] = 2.0,
    samples: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Maximum number of samples of one variant and shape."
        ),
    ] = 1000,
    precision: Annotated[
        float,
        typer.Option(
            min=1e-6,
            max=1.0,
            metavar="FRACTION",
            help="Stop when the median is known to this fraction.",
        ),
    ] = 0.01,
    l2: FoundInL2 = DEFAULT_L2,
    seed: InputSeed = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Collect hardware counters with Nsight Compute; of traffic, which varies between "
            "launches, the median of several.",
        ),
    ] = False,
    accuracy: Annotated[
        bool,
        typer.Option(
            "--accuracy",
            help="Measure the error of each variant on ten classes of inputs; on the simulator, "
            "for a small product.",
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run from RECORD.journal, or else RECORD; failed variants "
            "are not run again.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 3 if an exact counter differs.")
    ] = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Profile the ladder and write profile.html and profile.json.

    With a GPU, every rung is compiled, checked and timed together with cuBLAS. Without one, its
    machine code for the chosen device is executed on the CPU, and its time is predicted.
    """
    with one_line_errors():
        from reports import render
        from reports.sections.scorecard import exact_disagreements
        from toolkit.cli.profile_tables import shown
        from toolkit.cli.progress import TerminalProgress
        from toolkit.gpu.sampling import Sampling
        from toolkit.profiling.profile import profile as run_profile
        from toolkit.profiling.resume import is_result
        from toolkit.store.journal import journal_of, unfinished
        from toolkit.store.profile_json import dumps
        from toolkit.store.recorded_runs import run_beside

        journal = journal_of(record)
        check_page_output(html, others=[record, journal])
        check_output(record)
        check_output(journal)
        before = unfinished(record) if resume else None
        with one_line_errors("interrupted: nothing was written"), TerminalProgress() as progress:
            result = run_profile(
                shape or ["4096"],
                variant,
                device=device,
                constants=constants,
                clock=clock,
                executor=executor.value,
                sampling=Sampling(precision=precision, time_limit_s=seconds, max_samples=samples),
                l2=l2,
                seed=seed,
                counters=counters,
                accuracy=accuracy,
                progress=progress,
                resume=before,
                journal=journal,
            )
        if result.status == "interrupted" and not any(map(is_result, result.records)):
            fail("interrupted before anything was measured; nothing was written")
        recorded = run_beside(result)
        texts = {html: render(result, recorded=recorded), record: dumps(result)}
        printed = shown(result, recorded, as_json=as_json, is_verbose=verbose)
        _tell_replaced(html, record, result)
        write(texts)
        journal.unlink(missing_ok=True)
        sys.stdout.write(printed)
        _finish_profile(result)
        if strict:
            apart = exact_disagreements(result)
            if apart is None:
                fail(
                    "--strict found nothing to compare: use --executor simulate or gpu, "
                    "and at least one rung"
                )
            fail_on_first("an exact counter disagrees", apart, rest=", in the report")


def _tell_replaced(html: Path, record: Path, result: Profile) -> None:
    """Say that the page there is of another profile, if it is, or if that is not known."""
    from toolkit.store.profile_json import load

    if not html.is_file():
        return
    try:
        before = load(record).command
    except ToolkitError:
        note(f"{html} existed and is replaced", err)
        return
    if _SEED.sub("", before) != _SEED.sub("", result.command):
        note(f"{html} held another profile and is replaced; to repeat that one: {before}", err)


def _finish_profile(result: Profile) -> None:
    """Fail where the run was cut short or a kernel failed."""
    if result.status == "interrupted":
        from toolkit.profiling.resume import is_result

        kept = sum(map(is_result, result.records))
        fail(f"interrupted: results kept: {kept}; repeat with: {result.command}")
    failed = [record.label for record in result.records if record.status == "failed"]
    if failed:
        fail(f"{len(failed)} failed: {', '.join(failed)}; the reasons are above and in the report")
