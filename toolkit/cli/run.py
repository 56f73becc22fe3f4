"""The command `run`: it measures a launch on the GPU, and explains the time."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.errors import InputError, LaunchError, ToolkitError, UnavailableError
from toolkit.cli.errors import one_line_errors
from toolkit.cli.launch_results import ResultOptions
from toolkit.cli.option_groups import takes_options
from toolkit.cli.options import PREDICTION, RunOptions
from toolkit.frontends.script_names import is_script

if TYPE_CHECKING:
    from concurrent.futures import Future

    from analysis.devices import Device
    from toolkit.cli.call import Call, SimulatedCall
    from toolkit.gpu.sampling import Sampling
    from toolkit.launch.launch import Execution
    from toolkit.machine_code.kernel_source import Source


@takes_options
def run(
    launch: RunOptions,
    results: ResultOptions,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict/--no-predict",
            help="Also simulate the launch and show what its time is spent on.",
            rich_help_panel=PREDICTION,
        ),
    ] = True,
) -> None:
    """Measure a kernel on the GPU of this machine, and show what its time is spent on.

    The GPU executes the same machine code as simulate. Launches are timed one at a time, by
    default each after other data were written to L2 (--l2). The launch is then simulated, for its
    counters, source lines, predicted time and remedies.

    Arguments are those of simulate. Without a GPU, use simulate.
    """
    results.check_apply(predict=predict)
    with one_line_errors("interrupted: nothing was written"):
        _refuse_script(launch.source)
        device = _gpu()
        from toolkit.cli.completed_options import completed
        from toolkit.cli.launch_source import compiled_beside

        options = completed(launch, "run", device)

        with compiled_beside(options.launch, device) as compiled:
            from toolkit.cli.call import SimulatedCall
            from toolkit.cli.parsed_call import call_of
            from toolkit.gpu.sampling import Sampling

            call = call_of(options, compiled, results.save or [], here=device)
            results.check(call)
            sampling = Sampling(
                precision=launch.precision,
                time_limit_s=launch.seconds,
                max_samples=launch.samples,
            )
            found = SimulatedCall(call=call, execution=_measured(call, compiled, sampling))
            if predict:
                found = _explained(found, compiled)
            if predict and results.remedies:
                found = _with_remedies(found, sampling)
        results.show(found, compiled.result, left_out=launch.left_out)


def _refuse_script(source: str) -> None:
    """Raise InputError for a kernel of a Python file, which its front end launches."""
    if is_script(source):
        raise InputError(
            f"run measures CUDA C++ and machine code, not {source}: time it with its front end, "
            "such as triton.testing.do_bench or cupyx.profiler.benchmark; "
            f"`python -m toolkit simulate {source} ...` predicts its time"
        )


def _gpu() -> Device:
    """Return this machine's GPU. Raises UnavailableError, which names `simulate`, without one."""
    from toolkit.gpu.context import gpu_here

    try:
        return gpu_here().device
    except UnavailableError as error:
        raise UnavailableError(
            f"no GPU to measure on: {error}; `python -m toolkit simulate` predicts the time "
            "without a GPU"
        ) from None


def _measured(call: Call, compiled: Future[Source], sampling: Sampling) -> Execution:
    """The launch, measured. Raises LaunchError, with a remedy for a fault of the kernel."""
    try:
        return call.measure(compiled, sampling)
    except LaunchError as error:
        if not str(error).endswith("was encountered"):  # as the driver's words for faults end
            raise
        raise LaunchError(
            f"{error}: `python -m toolkit check` names the line, without a GPU"
        ) from None


def _explained(found: SimulatedCall, compiled: Future[Source]) -> SimulatedCall:
    """A measured launch with counters and a predicted time, or the reason why it has none."""
    from toolkit.cli.progress import SimulationProgress
    from toolkit.execution.block_counts import unchecked_blocks
    from toolkit.sass.system_calls import printed_by_few

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
    of_simulation = {  # the GPU executed all blocks
        *unchecked_blocks(left),
        printed_by_few(execution.executed_blocks or 0, prod(call.grid)),
    }
    execution = replace(
        execution,
        outputs=measured.outputs,
        samples_s=measured.samples_s,
        l2=measured.l2,
        printed=measured.printed,
        symbols=measured.symbols,
        notes=tuple(one for one in execution.notes if one not in of_simulation),
    )
    return replace(found, execution=execution)


def _with_remedies(found: SimulatedCall, sampling: Sampling) -> SimulatedCall:
    """The launch with its remedies, and the measured time of each that was made."""
    from toolkit.cli.remedies import with_remedies
    from toolkit.gpu.measured_remedies import measured

    with_them = with_remedies(found)
    return replace(with_them, remedies=measured(with_them.remedies, sampling))
