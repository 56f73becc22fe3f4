"""The command `run`: it measures a launch on the GPU, and explains the time."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.errors import ToolkitError, UnavailableError
from toolkit.cli.errors import one_line_errors
from toolkit.cli.options import Json, RunOptions, takes_launch
from toolkit.cli.output import print_json, write
from toolkit.cli.simulate import check_apply, check_page

if TYPE_CHECKING:
    from concurrent.futures import Future

    from analysis.devices import Device
    from toolkit.cli.launch_options import SimulatedCall
    from toolkit.gpu.sampling import Sampling
    from toolkit.machine_code.kernel_source import Source


@takes_launch
def run(
    launch: RunOptions,
    save: Annotated[
        list[str] | None,
        typer.Option(
            "--save", metavar="K=FILE", help="Keep a buffer: 1=x.npy is the second argument's."
        ),
    ] = None,
    predict: Annotated[
        bool, typer.Option("--predict/--no-predict", help="Say what the time is spent on, too.")
    ] = True,
    lines: Annotated[bool, typer.Option("--lines/--no-lines", help="Show source lines.")] = True,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Most source lines to show.")] = 6,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the launch, its counters and bounds too.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Where a page of the launch goes.", show_default="none"),
    ] = None,
    as_json: Json = False,
    remedies: Annotated[
        bool,
        typer.Option("--remedies/--no-remedies", help="Try edits, and measure what they save."),
    ] = True,
    apply: Annotated[
        int | None,
        typer.Option(
            "--apply",
            min=1,
            metavar="N",
            help="Write the source with remedy N to NAME.remedyN.cu, if all blocks agree.",
        ),
    ] = None,
    rounding: Annotated[
        bool, typer.Option("--rounding", help="With --apply: results may differ by rounding.")
    ] = False,
) -> None:
    """Measure a kernel on the GPU that is here, and say what its time is spent on.

    The machine code is the one that simulate executes. Launches are timed one by one, with L2
    flushed before each. The same launch is then simulated, which gives counters, source lines, the
    predicted time and remedies.

    Arguments are those of simulate. Without a GPU, simulate predicts the time.
    """
    check_apply(apply, rounding=rounding, remedies=remedies, predict=predict)
    with one_line_errors("interrupted: nothing was written"):
        device = _gpu()
        from toolkit.cli.launch_source import compiled_beside

        with compiled_beside(launch, device) as compiled:
            from toolkit.cli import launch_tables
            from toolkit.cli.launch_options import SimulatedCall, parse_call
            from toolkit.cli.remedies import apply_remedy, check_applies
            from toolkit.gpu.sampling import Sampling

            call = parse_call(launch, save or [], here=device)
            if html:
                check_page(html, call)
            if apply:
                check_applies(call, apply)
            sampling = Sampling(
                precision=launch.precision,
                time_limit_s=launch.seconds,
                max_samples=launch.samples,
            )
            found = SimulatedCall(call=call, execution=call.measure(compiled, sampling))
            if predict:
                found = _explained(found, compiled)
            if predict and remedies:
                found = _with_remedies(found, sampling)
        pages = {html: launch_tables.page(found)} if html else {}
        write({**found.files(), **pages})
        if as_json:
            print_json(launch_tables.document(found))
        else:
            launch_tables.print_simulated(found, top=top if lines else None, verbose=verbose)
        if apply:
            apply_remedy(found, apply, rounding=rounding, is_quiet=as_json)


def _gpu() -> Device:
    """The GPU that is here. Raises UnavailableError, which names `simulate`, without one."""
    from toolkit.gpu.context import gpu_here

    try:
        return gpu_here().device
    except UnavailableError as error:
        raise UnavailableError(
            f"no GPU to measure on: {error} (`python -m toolkit simulate` predicts the time "
            "without a GPU)"
        ) from None


def _explained(found: SimulatedCall, compiled: Future[Source]) -> SimulatedCall:
    """A measured launch with counters and a predicted time, or the reason why it has none."""
    from toolkit.cli.progress import SimulationProgress
    from toolkit.execution.block_counts import unchecked_blocks

    call, measured = found.call, found.execution
    try:
        with SimulationProgress(call.source.name, call.needed_bytes(copies=False)) as progress:
            call = replace(call, saves={})  # what is kept is of the GPU
            simulated = call.run(compiled, progress.advance, progress.announce)
    except ToolkitError as error:
        why = f"not predicted: {error}"
        notes = (*measured.notes, why)
        return replace(found, execution=replace(measured, prediction_basis=why, notes=notes))
    execution = simulated.execution
    left = prod(call.grid) - (execution.executed_blocks or 0)
    of_simulation = set(unchecked_blocks(left))  # the GPU executed all blocks
    execution = replace(
        execution,
        outputs=measured.outputs,
        samples_s=measured.samples_s,
        notes=tuple(one for one in execution.notes if one not in of_simulation),
    )
    return replace(found, execution=execution)


def _with_remedies(found: SimulatedCall, sampling: Sampling) -> SimulatedCall:
    """The launch with its remedies, and the measured time of each that was made."""
    from toolkit.cli.remedies import with_remedies
    from toolkit.gpu.measured_remedies import measured

    with_them = with_remedies(found)
    return replace(with_them, remedies=measured(with_them.remedies, sampling))
