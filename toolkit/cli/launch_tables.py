"""Tables that `simulate` and `run` print: the launch, its counters, and its source lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from math import isfinite, prod
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.padding import Padding

import toolkit
from analysis.records.launch import SCHEMA_VERSION, LaunchRecord
from analysis.records.metrics import THREAD_INSTRUCTIONS, is_arithmetic
from analysis.records.profile import LineCounters
from analysis.records.source_lines import Line, summed_by_line
from analysis.records.summaries import summaries
from analysis.timing.predicted import Predicted
from reports import text
from reports.sections.access import remarks
from reports.sections.launch import counters_table
from reports.sections.launch_facts import errors_alike
from reports.sections.prediction import bounds_table, limits
from reports.source_lines import line_text
from toolkit.cli.argument_syntax import BufferArgument
from toolkit.cli.call import Call, SimulatedCall
from toolkit.cli.launch_answer import print_answer
from toolkit.cli.printed import print_printed
from toolkit.cli.remedies import print_refused, remedies_document
from toolkit.cli.terminal import out, rich_table, say
from toolkit.launch.element_types import type_text
from toolkit.launch.launch import Execution
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source

NEGLIGIBLE = 0.02  # of the time: smaller ones are left out

FROM_WIDTH_OF_NAMES = 116
MOST_VALUES = 64  # of a variable in the document


def print_simulated(simulated: SimulatedCall, *, top: int | None, verbose: bool = False) -> None:
    """The answer on one launch, and everything else about it if `verbose`.

    `top`: number of source lines, None for none.
    """
    print_printed(simulated.execution.printed)
    print_answer(simulated, top=top)
    if verbose:
        out.print()
        _print_details(simulated, top=top)


def print_left_out(kernel: Source) -> None:
    """List the parts of a source with host code that were not compiled, one on each line."""
    left_out = kernel.left_out if isinstance(kernel, Kernel) else ()
    out.print()
    say("left out" if left_out else "nothing was left out", "bold")
    for one in left_out:
        say(f"  {one}")


def _print_details(simulated: SimulatedCall, *, top: int | None) -> None:
    """The launch, its counters, the bounds on its time, and remarks on source lines."""
    execution = simulated.execution
    for line in _headline(simulated):
        say(line)
    print_refused(simulated.remedies)
    if not execution.instructions:
        return
    out.print()
    counters = counters_table(execution.instructions, execution.counters, execution.estimates)
    is_narrow = out.width < FROM_WIDTH_OF_NAMES
    out.print(rich_table(counters.without_last_column if is_narrow else counters))
    if execution.predicted is not None:
        _print_predicted(execution.predicted, simulated)
    if top is not None:
        _print_remarks(summed_by_line(execution.instructions), simulated)


def _headline(simulated: SimulatedCall) -> Iterator[str]:
    call, execution = simulated.call, simulated.execution
    resources = execution.resources
    yield (
        f"{simulated.kernel} of {call.source.name} for {resources.architecture} "
        f"({resources.compiler})"
    )
    blocks, threads = prod(call.grid), prod(call.block)
    yield (
        f"  grid {_times(call.grid)} of {_times(call.block)} threads: "
        f"{text.many(blocks, 'block')}, {text.many(blocks * threads, 'thread')}"
    )
    if call.arguments:
        yield f"  {'; '.join(_arguments(simulated))}"
    if call.rung is not None:
        yield (
            f"  {call.rung.label} at {call.rung.problem}: random A and B, --seed {call.seed} "
            "repeats them"
        )
    if any(isinstance(item, BufferArgument) and item.is_random for item in call.arguments):
        yield f"  random buffers: --seed {call.seed} repeats them"
    if execution.basis:
        yield f"  {execution.basis}{_speed(call, execution)}"
    if execution.traffic_basis:
        yield f"  L2 and DRAM: {execution.traffic_basis}"
    if execution.predicted is None and execution.prediction_basis:
        yield f"  time: {execution.prediction_basis}"
    kinds = (("static", resources.static_shared_bytes), ("dynamic", call.dynamic_shared_bytes))
    shared = [f"{text.size(size)} {kind}" for kind, size in kinds if size]
    local = text.size(resources.local_bytes) if resources.local_bytes else "no"
    yield (
        f"  {text.many(resources.registers_per_thread, 'register')} and {local} local memory per "
        f"thread, {' + '.join(shared) or 'no'} shared memory per block"
    )


def _arguments(simulated: SimulatedCall) -> Iterator[str]:
    """`in: f32[64,64]=random`: each under its parameter's name, or its position."""
    call = simulated.call
    names = [parameter.name for parameter in simulated.declared] or [None] * len(call.arguments)
    for position, (name, item) in enumerate(zip(names, call.arguments, strict=True)):
        shown = call.written[position]
        if isinstance(item, BufferArgument) and item.fill == "random" and "=" not in shown:
            shown += "=random"
        yield f"{name or position}: {shown}"


def _speed(call: Call, execution: Execution) -> str:
    if not execution.simulation_s:
        return ""
    took = text.seconds(execution.simulation_s)
    if execution.executed_blocks != prod(call.grid):
        return f"; this took {took}"  # the counters are of more than was executed
    rate = execution.counters[THREAD_INSTRUCTIONS] / execution.simulation_s
    return f" in {took} ({_in_words(rate)} thread instructions per second)"


# The predicted time.


def _print_predicted(predicted: Predicted, simulated: SimulatedCall) -> None:
    """Print the time and its limiter, and the bound of each resource."""
    device = simulated.call.device
    where = f" on {device.name}" if device else ""
    execution = simulated.execution
    has_rate = is_arithmetic(execution.instructions, execution.counters)
    rate = f", {text.flop_per_s(predicted.flop_per_s)}" if has_rate else ""
    out.print(f"[bold]{text.predicted_seconds(predicted.time_s)}[/] predicted{escape(where)}{rate}")
    fitted = "fitted on such a device" if predicted.is_fitted else "not fitted on such a device"
    for line in (
        f"at {predicted.clock_hz / 1e6:,.0f} MHz, L2 {predicted.l2} before the launch; "
        f"{text.predicted_seconds(predicted.launch_s)} of it is the launch itself",
        limits(predicted),
        execution.prediction_basis,
        f"constants of {predicted.constants}, {fitted}",
    ):
        out.print(Padding(escape(line or ""), (0, 0, 0, 2)))
    out.print()
    out.print(rich_table(bounds_table(predicted, share=NEGLIGIBLE)))


# Source lines.


def _print_remarks(lines: Sequence[Line], simulated: SimulatedCall) -> None:
    own = simulated.written_in.name
    for line in lines:
        for remark in remarks(line) if line.file == own else ():
            say(f": {remark}", "bold", lead=f"line {line.number}")


def _text(file: str, number: int, simulated: SimulatedCall) -> str:
    """A line of the kernel's file; empty where it is of another file, or past the end."""
    own = simulated.written_in
    return line_text(own.text, number) if file == own.name else ""


# The document.


def record(simulated: SimulatedCall) -> LaunchRecord:
    """The launch as `compare` takes it."""
    call, execution = simulated.call, simulated.execution
    return LaunchRecord(
        **vars(call.asked(simulated.kernel)),
        resources=execution.resources,
        basis=execution.basis,
        predicted=execution.predicted,
        counters=dict(execution.counters),
        executed_blocks=execution.executed_blocks,
        estimates=dict(execution.estimates),
        unseen_share=execution.unseen_share,
        samples_s=execution.samples_s,
        uncertainty=execution.uncertainty,
        lines=tuple(
            LineCounters(file=file, line=line, text=_text(file, line, simulated), counters=counters)
            for (file, line), counters in execution.lines.items()
        ),
    )


def page(simulated: SimulatedCall) -> str:
    """HTML page of the launch."""
    from reports.pages.kernel import page as report_page

    own = simulated.written_in
    report = replace(
        simulated.execution.report,
        name=simulated.kernel,
        file=own.name,
        source=own.text,
        command=record(simulated).command,
        remedies=simulated.remedies.found,
        is_rung=simulated.call.rung is not None,
    )
    return report_page(report)


def document(simulated: SimulatedCall) -> dict[str, Any]:
    """Document that --json prints: all facts, including counters of zero."""
    call, execution = simulated.call, simulated.execution
    is_measured = bool(execution.samples_s)  # the GPU executes all blocks
    is_whole = is_measured or execution.executed_blocks == prod(call.grid)
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        **asdict(record(simulated)),
        "traffic_basis": execution.traffic_basis,
        "prediction_basis": execution.prediction_basis,
        "similar_launches": asdict(alike) if (alike := errors_alike(execution.report)) else None,
        "summaries": list(summaries(execution.counters)),
        "simulation_s": execution.simulation_s,
        "measured_s": median(execution.samples_s) if execution.samples_s else None,
        "printed": execution.printed,
        "notes": execution.notes,
        "remedies": remedies_document(simulated.remedies),
        "instructions": [asdict(instruction) for instruction in execution.instructions],
        "outputs": [
            {
                "argument": position,
                "type": type_text(array.dtype),
                "shape": array.shape,
                # if only some blocks ran, these are not the outputs of the launch
                "sha256": sha256(array.tobytes()).hexdigest() if is_whole else None,
            }
            for position, array in simulated.outputs.items()
        ],
        "variables": [
            {"name": name, "type": array.dtype.name, "shape": array.shape, "values": _few(array)}
            for name, array in execution.symbols.items()
        ],
    }


def _few(array: NDArray[np.generic]) -> Any:
    """The values of a small variable; None of a large one, which --save keeps."""
    return _in_json(array.tolist()) if array.size <= MOST_VALUES else None


def _in_json(value: Any) -> Any:
    """A value in terms of JSON: complex numbers as pairs, NaN and infinities as text."""
    if isinstance(value, list | tuple | bytes):
        return [_in_json(one) for one in value]
    if isinstance(value, complex):
        return [_in_json(value.real), _in_json(value.imag)]
    if isinstance(value, int):
        return value
    number = float(value)  # bfloat16 and FP8 are no floats of Python
    return number if isfinite(number) else str(number)


def _times(extent: Sequence[int]) -> str:
    return "×".join(map(str, extent))


def _in_words(count: float) -> str:
    """Two digits: '540 million'."""
    for scale, word in ((1e9, " billion"), (1e6, " million")):
        if count >= scale:
            return f"{float(f'{count / scale:.2g}'):,g}{word}"
    return f"{float(f'{count:.2g}'):,.0f}"
