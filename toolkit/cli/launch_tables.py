"""What `simulate` prints: the launch, its counters, and the source lines that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from math import prod
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

import toolkit
from analysis.comparison.launches import SCHEMA_VERSION
from analysis.devices import Device
from analysis.occupancy import occupancy
from analysis.records.counters import ALL_COUNTERS, MODELLED, OF_BULK_COPIES, InstructionCounts
from analysis.records.metrics import THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS, flop
from analysis.timing.predict import DRAM, dram_bytes_per_s
from analysis.timing.predicted import Predicted
from reports import text
from reports.prediction import limits
from toolkit.cli.argument_syntax import Buffer
from toolkit.cli.launch_options import Call, Simulated
from toolkit.cli.terminal import out, plain_table
from toolkit.launch.checks import device_of
from toolkit.launch.launch import Execution

# Sectors over the fewest that could hold the bytes: from here on a line is called out. A warp
# that reads 128 bytes beside a sector's boundary takes 5 instead of 4.
WASTEFUL, UNCOALESCED = 1.25, 2.0
NEGLIGIBLE = 0.02  # of the wavefronts, the branches, the time: nobody would look for these

SPACES = ("global", "shared", "local", "generic")
BELOW_L1 = "L2 and DRAM"

FROM_WIDTH_OF_NAMES = 116

# Roofline: a product of 32 × 32 matrices and more is above, copies, reductions, matrix-vector
# products and stencils of few points are below.
ARITHMETIC_FLOP_PER_BYTE = 4.0


class Work(StrEnum):
    """What a launch has a limited rate of, as the first lines call it."""

    INSTRUCTIONS = "all warp instructions"
    WAVEFRONTS = "all shared-memory wavefronts"
    SECTORS = "all sectors"
    ANY = "all instructions, sectors and wavefronts"


# Of each limiter. Others are pipes, which the instructions of a line keep busy.
_WORK_OF = {
    "shared memory": Work.WAVEFRONTS,
    "L1": Work.SECTORS,
    "L2": Work.SECTORS,
    DRAM: Work.SECTORS,
    "latency": Work.ANY,
}


# The tables.


def print_simulated(simulated: Simulated, *, top: int | None) -> None:
    """Everything about one launch; the `top` busiest source lines, None for no lines."""
    execution = simulated.execution
    for line in _verdict(simulated):
        out.print(f"[bold]{escape(line)}[/]", soft_wrap=True)
    out.print()
    for line in _headline(simulated):
        out.print(escape(line), soft_wrap=True)
    for note in filter(None, [execution.resources.note, *execution.notes]):
        out.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
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


def _verdict(simulated: Simulated) -> Iterator[str]:
    """The time, the limiter, and the most expensive source line with the reason."""
    predicted, device = simulated.execution.predicted, simulated.call.device
    if predicted is None or device is None:
        basis = simulated.execution.prediction_basis
        yield (
            f"{simulated.kernel}: {basis}."
            if basis
            else f"{simulated.kernel}: no predicted time without --device, such as --device h200."
        )
        yield "Limiter: unknown without a predicted time."
    else:
        rate = text.flop_per_s(predicted.flop_per_s)
        also = f", {rate}" if _is_arithmetic(simulated.execution) else ""
        yield (
            f"{simulated.kernel}: {text.predicted_seconds(predicted.time_s)} predicted on "
            f"{device.name}{also}."
        )
        yield f"L{limits(predicted)[1:]}{_of_dram(predicted, device)}."
    yield _most_expensive(simulated)


def _of_dram(predicted: Predicted, device: Device) -> str:
    """The rate of DRAM and its share of the bandwidth, if DRAM limits."""
    if predicted.limiter != DRAM:
        return ""
    rate = dram_bytes_per_s(predicted, device)
    share = text.percent(rate / device.dram_bytes_per_s)
    return f": {text.bytes_per_s(rate, digits=3)} of DRAM, {share} of its bandwidth"


def _is_arithmetic(execution: Execution) -> bool:
    """True if FLOP/s describe the launch: a matrix product, but no copy, reduction or stencil."""
    moved = sum(execution.counters[f"dram__bytes_{way}.sum"] for way in ("read", "write"))
    return flop(execution.instructions) >= ARITHMETIC_FLOP_PER_BYTE * moved > 0


def _most_expensive(simulated: Simulated) -> str:
    """The line with most of the work that limits the launch, and its dearest access."""
    lines = summed_by_line(simulated.execution.instructions)
    if not lines:
        return "Most expensive line: unknown, the machine code was compiled without -lineinfo."
    predicted = simulated.execution.predicted
    limiting = _WORK_OF.get(predicted.limiter, Work.INSTRUCTIONS) if predicted else Work.ANY
    work = limiting if any(line.work(limiting) for line in lines) else Work.ANY
    line = max(lines, key=lambda line: line.work(work))
    share = text.percent(line.work(work) / sum(line.work(work) for line in lines))
    where = "" if _is_own(line, simulated.call) else f" of {line.file}"
    return f"Most expensive: line {line.number}{where}, {share} of {work}{_reason(line, work)}."


def _reason(line: Line, work: Work) -> str:
    """What the dearest access of a line takes, empty if its instructions cost more."""
    of = [one for one in line.accesses if work in (one.work, Work.ANY)]
    one = max(of, key=lambda access: access.units, default=None)
    if one is None or (work is Work.ANY and one.units < line.executed / 2):
        return ""
    found, ideal = (text.count(x / one.requests) for x in (one.units, one.ideal))
    unit = "wavefronts" if one.work is Work.WAVEFRONTS else "sectors"
    if found == ideal:
        return f": {one.space} {one.action}s take {found} {unit} each, the fewest possible"
    waste = f" ({one.waste})" if one.waste else ""
    return f": {one.space} {one.action}s take {found} {unit} each instead of {ideal}{waste}"


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
    rows = [*_counted(execution), *_not_named(execution)]
    for group in ("instructions", *(f"{space} memory" for space in SPACES), BELOW_L1):
        of_group = [row for row in rows if row.group == group]
        if of_group:
            table.add_row(f"[bold]{group}[/]")
        for row in of_group:
            table.add_row(*(row.cells() if with_names else row.cells()[:2]))
    return table


# The predicted time.


def _print_predicted(predicted: Predicted, simulated: Simulated) -> None:
    """The time and what limits it, the simple bounds, and the gap from nominal peak."""
    device = simulated.call.device
    where = f" on {device.name}" if device else ""
    is_arithmetic = _is_arithmetic(simulated.execution)
    rate = f", {text.flop_per_s(predicted.flop_per_s)}" if is_arithmetic else ""
    out.print(f"[bold]{text.predicted_seconds(predicted.time_s)}[/] predicted{escape(where)}{rate}")
    fitted = "fitted on such a device" if predicted.is_fitted else "not fitted on such a device"
    for line in (
        f"at {predicted.clock_hz / 1e6:,.0f} MHz, L2 {predicted.l2} before; "
        f"{text.predicted_seconds(predicted.launch_s)} of it are the cost of any launch",
        limits(predicted),
        simulated.execution.prediction_basis,
        f"constants of {predicted.constants}, {fitted}",
    ):
        out.print(Padding(escape(line or ""), (0, 0, 0, 2)))
    out.print()
    out.print(_prediction_table("least time of", _bounds(predicted)))
    if is_arithmetic:
        out.print(_prediction_table("from FP32 peak", _gap(predicted)))


def _prediction_table(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """Names under a title, each with a predicted time and what it rests on."""
    table = plain_table(2)
    table.add_column(title, no_wrap=True)
    table.add_column("[dim]predicted[/]", justify="right", no_wrap=True)
    table.add_column("")
    for name, shown, basis in rows:
        table.add_row(f"  {escape(name)}", shown, f"[dim]{escape(basis)}[/]")
    return table


def _bounds(predicted: Predicted) -> Iterator[tuple[str, str, str]]:
    """The least time that each resource alone needs, the longest first, without negligible ones."""
    for bound in sorted(predicted.bounds, key=lambda bound: -bound.time_s):
        if bound.time_s > NEGLIGIBLE * predicted.time_s:
            yield bound.name, text.predicted_seconds(bound.time_s), bound.basis


def _gap(predicted: Predicted) -> Iterator[tuple[str, str, str]]:
    """The steps from the FLOP at nominal FP32 peak to the predicted time."""
    for k, step in enumerate(predicted.gap):
        sign = "+" if k and step.time_s >= 0 else "−" if step.time_s < 0 else ""
        yield step.name, f"{sign}{text.predicted_seconds(abs(step.time_s))}", step.detail
    yield "time", text.predicted_seconds(predicted.time_s), ""


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A counter, under Nsight Compute's name where it has one, or what follows from one."""

    group: str
    meaning: str
    value: str
    name: str = ""
    is_metric: bool = False

    def cells(self) -> tuple[str, str, str]:
        if self.is_metric:
            return f"    [italic]{self.meaning}[/]", f"[italic]{self.value}[/]", ""
        return f"  {self.meaning}", self.value, f"[dim]{self.name}[/]"


def _counted(execution: Execution) -> Iterator[_Row]:
    """The counters that are not zero, each with the metric that follows from it."""
    metrics = _metrics(execution)
    for name, value in execution.counters.items():
        if not value:
            continue
        counter = ALL_COUNTERS[name]
        group = next((f"{s} memory" for s in SPACES if f"_{s}_" in name), "instructions")
        if name in MODELLED or name in OF_BULK_COPIES:
            group = BELOW_L1
        grade = "" if counter.grade == "exact" else f" [dim]({counter.grade})[/]"
        yield _Row(group=group, meaning=f"{counter.meaning}{grade}", value=f"{value:,}", name=name)
        if name in metrics:
            meaning, derived = metrics[name]
            yield _Row(group=group, meaning=meaning, value=derived, is_metric=True)


def _not_named(execution: Execution) -> Iterator[_Row]:
    """Accesses that no counter is for, such as atomics."""
    for one in accesses(execution.instructions):
        what, group = f"{one.space} {one.action}s", f"{one.space} memory"
        if one.action in ("load", "store", "copy") and one.space != "generic":
            continue
        unit = "wavefronts" if one.space == "shared" else "32-byte sectors"
        yield _Row(group=group, meaning=f"requests of {what}", value=f"{one.requests:,}")
        yield _Row(group=group, meaning=f"{unit} of {what}", value=f"{one.units:,}")


def _metrics(execution: Execution) -> dict[str, tuple[str, str]]:
    """What follows from counters, by the name of the counter that it is shown below."""
    counters = execution.counters
    metrics = {}
    if issued := counters[WARP_INSTRUCTIONS]:
        active = text.count(counters[THREAD_INSTRUCTIONS] / issued)
        metrics[THREAD_INSTRUCTIONS] = "active threads per warp instruction", f"{active} of 32"
    # asynchronous copies into shared memory count as global loads
    sides = {"load": "ld", "copy": "ld", "store": "st"}
    found: dict[tuple[str, str], list[Access]] = {}
    for one in accesses(execution.instructions):
        if one.action in sides:
            found.setdefault((one.space, sides[one.action]), []).append(one)
    for (space, short), of in found.items():
        requests = sum(one.requests for one in of)
        units, ideal = (
            text.count(sum(getattr(one, name) for one in of) / requests)
            for name in ("units", "ideal")
        )
        if space == "shared":
            conflicts = text.count(sum(one.excess for one in of) / requests)
            name = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"
            metrics[name] = "bank conflicts per access", conflicts
        else:
            but = f" (ideal: {ideal})" if units != ideal else ", the fewest possible"
            name = f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{short}.sum"
            metrics[name] = f"sectors per request{but}", units
    return metrics


@dataclass(frozen=True, kw_only=True)
class Access:
    """What instructions asked of one memory: sectors, or wavefronts of shared memory.

    `ideal` is the fewest that could hold the bytes, or that there would be without bank
    conflicts.
    """

    space: str
    action: str
    requests: int
    units: int
    ideal: int

    @property
    def excess(self) -> int:
        return self.units - self.ideal

    @property
    def work(self) -> Work:
        return Work.WAVEFRONTS if self.space == "shared" else Work.SECTORS

    @property
    def waste(self) -> str:
        """Why `units` are above `ideal`, empty if that is negligible."""
        if self.space == "shared":
            return "bank conflicts" if self.excess > NEGLIGIBLE * self.units else ""
        if self.space == "local" or self.units < WASTEFUL * self.ideal:
            return ""
        return "uncoalesced" if self.units >= UNCOALESCED * self.ideal else "partly used"


def accesses(instructions: Iterable[InstructionCounts]) -> list[Access]:
    """The accesses of some instructions, summed by memory and action."""
    kinds: dict[tuple[str, str], list[InstructionCounts]] = {}
    for one in instructions:
        if one.space is not None and one.action is not None and one.requests:
            kinds.setdefault((one.space, one.action), []).append(one)
    return [
        Access(
            space=space,
            action=action,
            requests=sum(one.requests for one in same),
            units=sum(one.wavefronts if space == "shared" else one.sectors for one in same),
            ideal=sum(one.conflict_free if space == "shared" else one.ideal for one in same),
        )
        for (space, action), same in kinds.items()
    ]


# Source lines.


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the instructions of one source line did."""

    file: str
    number: int
    executed: int
    threads: int
    accesses: Sequence[Access]
    branches: int  # those that split a warp, by warps
    splits: int

    def work(self, kind: Work) -> int:
        """How much work of a kind the line has."""
        executed = self.executed if kind in (Work.INSTRUCTIONS, Work.ANY) else 0
        return executed + sum(a.units for a in self.accesses if kind in (a.work, Work.ANY))

    def per_request(self, quantity: str, *, shared: bool) -> str:
        of = [access for access in self.accesses if (access.space == "shared") == shared]
        requests = sum(access.requests for access in of)
        return text.count(sum(getattr(a, quantity) for a in of) / requests) if requests else ""


def summed_by_line(instructions: Iterable[InstructionCounts]) -> list[Line]:
    """The lines whose instructions were executed, in order."""
    of_lines: dict[tuple[str, int], list[InstructionCounts]] = {}
    for one in instructions:
        if one.file is not None and one.line is not None and one.executed:
            of_lines.setdefault((one.file, one.line), []).append(one)
    return [_line(place, of_lines[place]) for place in sorted(of_lines)]


def _line(place: tuple[str, int], of: Sequence[InstructionCounts]) -> Line:
    splitting = [one for one in of if one.divergent]
    return Line(
        file=place[0],
        number=place[1],
        executed=sum(one.executed for one in of),
        threads=sum(one.threads for one in of),
        accesses=accesses(of),
        branches=sum(one.executed for one in splitting),
        splits=sum(one.divergent for one in splitting),
    )


def remarks(line: Line) -> Iterator[str]:
    """What is worth a look about a line."""
    for one in line.accesses:
        what = f"{one.space} {one.action}s"
        found, ideal = (text.count(x / one.requests) for x in (one.units, one.ideal))
        if one.space == "local":
            yield f"{what}: {one.requests:,} requests for what did not fit into registers"
        elif one.waste and one.space == "shared":
            yield f"{what} take {found} wavefronts each instead of {ideal}: {one.waste}"
        elif one.waste:
            would = f"where {ideal} would hold the bytes"
            yield f"{what} take {found} sectors each {would}: {one.waste}"
    if line.splits > NEGLIGIBLE * line.branches:
        yield f"splits {text.percent(line.splits / line.branches)} of the warps that branch here"


_COLUMNS: tuple[tuple[str, str, Callable[[Line], str]], ...] = (
    ("instr.", "of warps", lambda line: f"{line.executed:,}"),
    ("threads", "active", lambda line: text.count(line.threads / line.executed)),
    ("sectors", "/request", lambda line: line.per_request("units", shared=False)),
    ("ideal", "", lambda line: line.per_request("ideal", shared=False)),
    ("conflicts", "/access", lambda line: line.per_request("excess", shared=True)),
)
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
            out.print(f"[bold red]line {number_}[/]: {remark}", soft_wrap=True)


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
