"""What `simulate` prints: the launch, its counters, and the source lines that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from math import prod
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

import toolkit
from analysis.occupancy import occupancy
from analysis.records.launch import SCHEMA_VERSION
from analysis.records.metrics import THREAD_INSTRUCTIONS, is_arithmetic
from analysis.records.source_lines import Line, Work, summed_by_line
from analysis.timing.predicted import Predicted
from reports import text
from reports.launch import CounterRow, counter_rows
from reports.sections.access import remarks
from reports.sections.prediction import bound_rows, gap_rows, limits
from toolkit.cli.argument_syntax import Buffer
from toolkit.cli.launch_options import Call, Simulated
from toolkit.cli.terminal import note, out, plain_table, say
from toolkit.launch.checks import device_of
from toolkit.launch.launch import Execution

NEGLIGIBLE = 0.02  # of the time: nobody would look for these

FROM_WIDTH_OF_NAMES = 116


def print_simulated(simulated: Simulated, *, top: int | None) -> None:
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
    out.print(_counters_table(execution))
    if execution.predicted is not None:
        _print_predicted(execution.predicted, simulated)
    if top is not None:
        lines = summed_by_line(execution.instructions)
        if lines:
            _print_lines(lines, simulated.call, top)
        else:
            out.print("no source lines: the machine code was compiled without -lineinfo")


def _headline(simulated: Simulated) -> Iterator[str]:
    call, execution = simulated.call, simulated.execution
    resources = execution.resources
    yield (
        f"{simulated.kernel} of {call.source.name} for {resources.architecture} "
        f"({resources.compiler})"
    )
    blocks, threads = prod(call.grid), prod(call.block)
    yield (
        f"  grid {_times(call.grid)} of {_times(call.block)} threads: {_many(blocks, 'block')}, "
        f"{_many(blocks * threads, 'thread')}"
    )
    if call.arguments:
        yield f"  {'; '.join(_arguments(simulated))}"
    if call.rung is not None:
        yield (
            f"  {call.rung.label} at {call.rung.problem}: random A and B, --seed {call.seed} "
            "repeats them"
        )
    if any(isinstance(item, Buffer) and item.fill == "random" for item in call.arguments):
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
        f"  {_many(resources.registers_per_thread, 'register')} and {local} local memory per "
        f"thread, {' + '.join(shared) or 'no'} shared memory per block"
    )
    yield from _occupancy(simulated)


def _occupancy(simulated: Simulated) -> Iterator[str]:
    call, resources = simulated.call, simulated.execution.resources
    device = call.device if call.text is not None else device_of(resources.architecture)
    if device is None:
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


def _arguments(simulated: Simulated) -> Iterator[str]:
    """`in: f32[64,64]=random`: each under its parameter's name, or its position."""
    call = simulated.call
    names = [parameter.name for parameter in simulated.declared] or [None] * len(call.arguments)
    for position, (name, item) in enumerate(zip(names, call.arguments, strict=True)):
        shown = call.written[position]
        if isinstance(item, Buffer) and item.fill == "random" and "=" not in shown:
            shown += "=random"
        yield f"{name or position}: {shown}"


def _speed(call: Call, execution: Execution) -> str:
    if not execution.simulation_s:
        return ""
    took = f" in {text.seconds(execution.simulation_s)}"
    if execution.executed_blocks != prod(call.grid):
        return took  # the counters are of more than was executed
    rate = execution.counters[THREAD_INSTRUCTIONS] / execution.simulation_s
    return f"{took} ({_in_words(rate)} thread instructions per second)"


# Counters of the launch.


def _counters_table(execution: Execution) -> Table:
    """The counters that are not zero, in groups, each beside what follows from it."""
    with_names = out.width >= FROM_WIDTH_OF_NAMES
    table = plain_table(2)
    table.add_column("counters")
    table.add_column("[dim]simulated[/]", justify="right", no_wrap=True)
    if with_names:
        table.add_column("[dim]at Nsight Compute[/]", no_wrap=True)
    for group, rows in counter_rows(execution.instructions, execution.counters).items():
        table.add_row(f"[bold]{group}[/]")
        for row in rows:
            table.add_row(*(_cells(row) if with_names else _cells(row)[:2]))
    return table


def _cells(row: CounterRow) -> tuple[str, str, str]:
    if row.is_metric:
        return f"    [italic]{row.meaning}[/]", f"[italic]{row.value}[/]", ""
    grade = f" [dim]({row.grade})[/]" if row.grade else ""
    return f"  {row.meaning}{grade}", row.value, f"[dim]{row.name}[/]"


# The predicted time.


def _print_predicted(predicted: Predicted, simulated: Simulated) -> None:
    """The time and what limits it, the simple bounds, and the gap from nominal peak."""
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
    out.print(_prediction_table("least time of", bound_rows(predicted, NEGLIGIBLE)))
    if has_rate:
        out.print(_prediction_table("from FP32 peak", gap_rows(predicted)))


def _prediction_table(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """Names under a title, each with a predicted time and what it rests on."""
    table = plain_table(2)
    table.add_column(title, no_wrap=True)
    table.add_column("[dim]predicted[/]", justify="right", no_wrap=True)
    table.add_column("")
    for name, shown, basis in rows:
        table.add_row(f"  {escape(name)}", shown, f"[dim]{escape(basis)}[/]")
    return table


# Source lines.


_COLUMNS: tuple[tuple[str, str, Callable[[Line], str]], ...] = (
    ("instr.", "of warps", lambda line: f"{line.executed:,}"),
    ("threads", "active", lambda line: text.count((line.threads or 0) / line.executed)),
    ("sectors", "/request", lambda line: _average(line.per_request("units", shared=False))),
    ("ideal", "", lambda line: _average(line.per_request("ideal", shared=False))),
    ("conflicts", "/access", lambda line: _average(line.per_request("excess", shared=True))),
)


def _average(value: float | None) -> str:
    return "" if value is None else text.count(value)


NARROWEST_SOURCE = 16
FULL_WARP = "32"


def _print_lines(lines: Sequence[Line], call: Call, top: int) -> None:
    busiest = sorted(lines, key=lambda line: line.work(Work.ANY), reverse=True)[:top]
    ordered = sorted(lines, key=lambda line: not _is_own(line, call))
    shown = [line for line in ordered if line in busiest]
    left = f": the {top} busiest of {len(lines)}, --top {len(lines)} shows all"
    out.print(f"source lines{left if len(lines) > top else ''}")
    remarkable = {line.number: list(remarks(line)) for line in shown if _is_own(line, call)}
    table = plain_table()
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True, overflow="ellipsis")
    dull = {"", FULL_WARP}
    columns = [column for column in _COLUMNS if any(column[2](line) not in dull for line in shown)]
    for title, per, _ in columns:
        table.add_column(f"{title}\n[dim]{per}[/]", justify="right", no_wrap=True)
    cells = [[cell(line) for _, _, cell in columns] for line in shown]
    width = max(NARROWEST_SOURCE, out.width - _width(columns, cells) - len("line") - 5)
    for line, row in zip(shown, cells, strict=True):
        number, source = str(line.number), _source_line(line, call, width)
        if _is_own(line, call) and remarkable[line.number]:
            number = f"[bold red]{number}[/]"
        table.add_row(number, source, *row)
    out.print(table)
    for number_, found in remarkable.items():
        for remark in found:
            say(f": {remark}", "bold red", lead=f"line {number_}")


def _width(columns: Sequence[tuple[str, str, Any]], rows: Sequence[Sequence[str]]) -> int:
    """What the columns of numbers take, with two spaces between them."""
    return sum(
        2 + max(len(title), len(per), *(len(row[k]) for row in rows))
        for k, (title, per, _) in enumerate(columns)
    )


def _is_own(line: Line, call: Call) -> bool:
    return line.file == call.source.name


def _source_line(line: Line, call: Call, width: int) -> str:
    """The text of a line as far as there is room; of another file its name."""
    if not _is_own(line, call):
        return f"[dim]{escape(line.file)}[/]"
    code = _text(line.file, line.number, call)
    return escape(code if len(code) <= width else code[: width - 1] + "…")


def _text(file: str, number: int, call: Call) -> str:
    """A line of the source that was given; empty where it is of another file, or past the end."""
    texts = (call.text or "").splitlines() if file == call.source.name else []
    return texts[number - 1].strip() if 0 < number <= len(texts) else ""


# The document.


def document(simulated: Simulated) -> dict[str, Any]:
    """What --json prints: everything that is known, counters of zero included."""
    call, execution = simulated.call, simulated.execution
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        "source": call.source.name,
        "kernel": simulated.kernel,
        "rung": call.rung and call.rung.label,
        "grid": call.grid,
        "block": call.block,
        "dynamic_shared_bytes": call.dynamic_shared_bytes,
        "arguments": call.written,
        "defines": call.defines,
        "options": call.options,
        "seed": call.seed,
        "device": call.device.key if call.device and call.models_traffic else None,
        "resources": asdict(execution.resources),
        "basis": execution.basis,
        "traffic_basis": execution.traffic_basis,
        "predicted": asdict(execution.predicted) if execution.predicted else None,
        "prediction_basis": execution.prediction_basis,
        "executed_blocks": execution.executed_blocks,
        "simulation_s": execution.simulation_s,
        "notes": execution.notes,
        "counters": execution.counters,
        "lines": [
            {
                "file": file,
                "line": line,
                "text": _text(file, line, call),
                "counters": counters,
            }
            for (file, line), counters in execution.lines.items()
        ],
        "instructions": [asdict(instruction) for instruction in execution.instructions],
        "outputs": [
            {
                "argument": position,
                "type": array.dtype.name,
                "shape": array.shape,
                "sha256": sha256(array.tobytes()).hexdigest(),
            }
            for position, array in simulated.outputs.items()
        ],
    }


def _times(extent: Sequence[int]) -> str:
    return "×".join(map(str, extent))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _in_words(count: float) -> str:
    """Two digits: '540 million'."""
    for scale, word in ((1e9, " billion"), (1e6, " million")):
        if count >= scale:
            return f"{float(f'{count / scale:.2g}'):,g}{word}"
    return f"{float(f'{count:.2g}'):,.0f}"
