"""Tables that `simulate` prints: the launch, its counters, and the source lines they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from math import prod
from typing import Any

from rich.markup import escape
from rich.padding import Padding

import toolkit
from analysis.occupancy import occupancy
from analysis.records.launch import SCHEMA_VERSION, LaunchRecord
from analysis.records.metrics import THREAD_INSTRUCTIONS, is_arithmetic
from analysis.records.profile import LineCounters
from analysis.records.source_lines import LimitedWork, Line, summed_by_line
from analysis.records.summaries import summaries
from analysis.timing.predicted import Predicted
from reports import text
from reports.sections.access import remarks
from reports.sections.launch import counters_table
from reports.sections.prediction import launch_tables, limits
from reports.sections.table import Cell, Title, plain_table
from toolkit.cli.argument_syntax import BufferArgument
from toolkit.cli.launch_options import Call, SimulatedCall
from toolkit.cli.remedies import print_remedies, remedies_document
from toolkit.cli.terminal import note, out, rich_table, say
from toolkit.launch.launch import Execution

NEGLIGIBLE = 0.02  # of the time: nobody would look for these

FROM_WIDTH_OF_NAMES = 116


def print_simulated(simulated: SimulatedCall, *, top: int | None) -> None:
    """Everything about one launch; the `top` busiest source lines, None for no lines."""
    execution = simulated.execution
    for line in execution.verdict.splitlines():
        say(line, "bold")
    out.print()
    for line in _headline(simulated):
        say(line)
    for one in filter(None, [execution.resources.note, *execution.notes]):
        note(one)
    out.print()
    print_remedies(simulated.remedies)
    counters = counters_table(execution.instructions, execution.counters, execution.estimates)
    is_narrow = out.width < FROM_WIDTH_OF_NAMES
    out.print(rich_table(counters.without_last_column if is_narrow else counters))
    if execution.predicted is not None:
        _print_predicted(execution.predicted, simulated)
    if top is not None:
        lines = summed_by_line(execution.instructions)
        if lines:
            _print_lines(lines, simulated.call, top)
        else:
            out.print("no source lines: the machine code was compiled without -lineinfo")


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
    if any(isinstance(item, BufferArgument) and item.fill == "random" for item in call.arguments):
        yield f"  random content: --seed {call.seed} repeats it"
    yield f"  {execution.basis}{_speed(call, execution)}"
    if execution.traffic_basis:
        yield f"  L2 and DRAM: {execution.traffic_basis}"
    if execution.predicted is None and execution.prediction_basis:
        yield f"  time: {execution.prediction_basis}"
    static, dynamic = resources.static_shared_bytes, call.dynamic_shared_bytes
    shared = [f"{text.size(static)} static"] * bool(static)
    shared += [f"{text.size(dynamic)} dynamic"] * bool(dynamic)
    local = text.size(resources.local_bytes) if resources.local_bytes else "no"
    yield (
        f"  {text.many(resources.registers_per_thread, 'register')} and {local} local memory per "
        f"thread, {' + '.join(shared) or 'no'} shared memory per block"
    )
    yield from _occupancy(simulated)


def _occupancy(simulated: SimulatedCall) -> Iterator[str]:
    call, resources = simulated.call, simulated.execution.resources
    if (device := call.device) is None:
        return
    found = occupancy(
        device,
        threads_per_block=prod(call.block),
        registers_per_thread=resources.registers_per_thread,
        shared_bytes_per_block=resources.static_shared_bytes + call.dynamic_shared_bytes,
    )
    yield (
        f"  {found.warps_per_sm} of {found.max_warps_per_sm} warps fit on an SM of {device.name}, "
        f"limited by {text.listing(found.limiters)}"
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
    """Print the time and its limiter, the simple bounds, and the gap from nominal peak."""
    device = simulated.call.device
    where = f" on {device.name}" if device else ""
    execution = simulated.execution
    has_rate = is_arithmetic(execution.instructions, execution.counters)
    rate = f", {text.flop_per_s(predicted.flop_per_s)}" if has_rate else ""
    out.print(f"[bold]{text.predicted_seconds(predicted.time_s)}[/] predicted{escape(where)}{rate}")
    fitted = "fitted on such a device" if predicted.is_fitted else "not fitted on such a device"
    for line in (
        f"at {predicted.clock_hz / 1e6:,.0f} MHz, L2 {predicted.l2} before; "
        f"{text.predicted_seconds(predicted.launch_s)} of it are the cost of any launch",
        limits(predicted),
        execution.prediction_basis,
        f"constants of {predicted.constants}, {fitted}",
    ):
        out.print(Padding(escape(line or ""), (0, 0, 0, 2)))
    out.print()
    for table in launch_tables(predicted, share=NEGLIGIBLE, has_gap=has_rate):
        out.print(rich_table(table))


# Source lines.


# Title, grade or what it is an average of, and what a line has
_COLUMNS: tuple[tuple[str, str, Callable[[Line], str]], ...] = (
    ("instr.", "of warps", lambda line: text.digits(line.executed)),
    ("threads", "active", lambda line: text.count((line.threads or 0) / line.executed)),
    ("sectors", "/request", lambda line: text.average(line.per_request("units", shared=False))),
    ("ideal", "", lambda line: text.average(line.per_request("ideal", shared=False))),
    ("conflicts", "/access", lambda line: text.average(line.per_request("excess", shared=True))),
)


NARROWEST_SOURCE = 16
FULL_WARP = "32"


def _print_lines(lines: Sequence[Line], call: Call, top: int) -> None:
    busiest = sorted(lines, key=lambda line: line.work(LimitedWork.ANY), reverse=True)[:top]
    ordered = sorted(lines, key=lambda line: not _is_own(line, call))
    shown = [line for line in ordered if line in busiest]
    left = f": the {top} busiest of {len(lines)}, --top {len(lines)} shows all"
    out.print(f"source lines{left if len(lines) > top else ''}")
    remarkable = {line.number: list(remarks(line)) for line in shown if _is_own(line, call)}
    dull = {"", FULL_WARP}
    columns = [column for column in _COLUMNS if any(column[2](line) not in dull for line in shown)]
    cells = [[cell(line) for _, _, cell in columns] for line in shown]
    width = max(NARROWEST_SOURCE, out.width - _width(columns, cells) - len("line") - 5)
    titles: list[Title] = [("line", "", True), "source"]
    titles += [(title, per, True) for title, per, _ in columns]
    rows: list[list[Cell | str]] = [
        [
            Cell(str(line.number), is_bad=_is_own(line, call) and bool(remarkable[line.number])),
            _source_line(line, call, width),
            *row,
        ]
        for line, row in zip(shown, cells, strict=True)
    ]
    out.print(rich_table(plain_table(titles, rows)))
    for number_, found in remarkable.items():
        for remark in found:
            say(f": {remark}", "bold red", lead=f"line {number_}")


def _width(columns: Sequence[tuple[str, str, Any]], rows: Sequence[Sequence[str]]) -> int:
    """Width of the columns of numbers, with two spaces between them."""
    return sum(
        2 + max(len(title), len(per), *(len(row[k]) for row in rows))
        for k, (title, per, _) in enumerate(columns)
    )


def _is_own(line: Line, call: Call) -> bool:
    return line.file == call.source.name


def _source_line(line: Line, call: Call, width: int) -> str:
    """The text of a line as far as there is room; of another file its name."""
    code = _text(line.file, line.number, call) if _is_own(line, call) else line.file
    return code if len(code) <= width else code[: width - 1] + "…"


def _text(file: str, number: int, call: Call) -> str:
    """A line of the source that was given; empty where it is of another file, or past the end."""
    texts = (call.text or "").splitlines() if file == call.source.name else []
    return texts[number - 1].strip() if 0 < number <= len(texts) else ""


# The document.


def record(simulated: SimulatedCall) -> LaunchRecord:
    """The launch as `compare` takes it."""
    call, execution = simulated.call, simulated.execution
    return LaunchRecord(
        source=call.source.name,
        kernel=simulated.kernel,
        grid=call.grid,
        block=call.block,
        dynamic_shared_bytes=call.dynamic_shared_bytes,
        arguments=tuple(call.written),
        defines=dict(call.defines),
        options=tuple(call.options),
        seed=call.seed,
        device=call.device.key if call.device else None,
        resources=execution.resources,
        basis=execution.basis,
        predicted=execution.predicted,
        counters=dict(execution.counters),
        rung=call.rung.label if call.rung else None,
        executed_blocks=execution.executed_blocks,
        estimates=dict(execution.estimates),
        unseen_share=execution.unseen_share,
        lines=tuple(
            LineCounters(file=file, line=line, text=_text(file, line, call), counters=counters)
            for (file, line), counters in execution.lines.items()
        ),
    )


def document(simulated: SimulatedCall) -> dict[str, Any]:
    """Document that --json prints: all facts, including counters of zero."""
    call, execution = simulated.call, simulated.execution
    is_whole = execution.executed_blocks == prod(call.grid)
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        **asdict(record(simulated)),
        "traffic_basis": execution.traffic_basis,
        "prediction_basis": execution.prediction_basis,
        "summaries": list(summaries(execution.counters)),
        "simulation_s": execution.simulation_s,
        "notes": execution.notes,
        "remedies": remedies_document(simulated.remedies),
        "instructions": [asdict(instruction) for instruction in execution.instructions],
        "outputs": [
            {
                "argument": position,
                "type": array.dtype.name,
                "shape": array.shape,
                # if only some blocks ran, these are not the outputs of the launch
                "sha256": sha256(array.tobytes()).hexdigest() if is_whole else None,
            }
            for position, array in simulated.outputs.items()
        ],
    }


def _times(extent: Sequence[int]) -> str:
    return "×".join(map(str, extent))


def _in_words(count: float) -> str:
    """Two digits: '540 million'."""
    for scale, word in ((1e9, " billion"), (1e6, " million")):
        if count >= scale:
            return f"{float(f'{count / scale:.2g}'):,g}{word}"
    return f"{float(f'{count:.2g}'):,.0f}"
