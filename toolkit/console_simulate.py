"""What `simulate` prints: the launch, its counters, and the source lines that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from math import prod
from types import TracebackType
from typing import Any

from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

import toolkit
from analysis.counters import COUNTERS, InstructionCounts
from analysis.geometry import WARP_SIZE
from analysis.metrics import THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS, conflict_share
from reports import text
from toolkit.arguments import Buffer
from toolkit.call import Call, Simulated
from toolkit.console import err, out
from toolkit.executor import Execution

SCHEMA_VERSION = 1

# Sectors over the fewest that could hold the bytes: from here on a line is called out. A warp
# that reads 128 bytes beside a sector's boundary takes 5 instead of 4.
WASTEFUL, UNCOALESCED = 1.1, 2.0

FROM_WIDTH_OF_NAMES = 116


class SimulationProgress:
    """A bar on standard error while blocks are executed; nothing where that is no terminal."""

    def __init__(self, what: str) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("blocks"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self._bar.add_task(f"simulating {escape(what)}", total=None)

    def __enter__(self) -> SimulationProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def advance(self, done: int, of: int) -> None:
        self._bar.update(self._task, completed=done, total=of)


# The tables.


def print_simulated(simulated: Simulated, *, top: int | None) -> None:
    """Everything about one launch; the `top` busiest source lines, None for no lines."""
    execution = simulated.execution
    for line in _headline(simulated):
        out.print(escape(line), soft_wrap=True)
    for note in filter(None, [execution.resources.note, *execution.notes]):
        out.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    out.print()
    out.print(_counters_table(execution))
    if top is not None:
        lines = summed_by_line(execution.instructions)
        absent = "no source lines: the machine code was compiled without -lineinfo"
        out.print(_lines_table(lines, simulated.call, top) if lines else absent)


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
    if any(isinstance(item, Buffer) and item.fill == "random" for item in call.arguments):
        yield f"  random content of seed {call.seed} (--seed {call.seed} repeats it)"
    yield f"  {execution.basis}{_speed(call, execution)}"
    dynamic = f" + {text.size(call.dynamic_shared_bytes)} dynamic" * bool(call.dynamic_shared_bytes)
    local = text.size(resources.local_bytes) if resources.local_bytes else "no"
    yield (
        f"  {_many(resources.registers_per_thread, 'register')} and {local} local memory per "
        f"thread, {text.size(resources.static_shared_bytes)}{dynamic} shared memory per block"
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
    return f"{took}: {text.count(float(f'{rate:.2g}'))} thread instructions per second"


def _counters_table(execution: Execution) -> Table:
    """The counters that are not zero, in groups, each with what follows from them."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, title_style=""
    )
    with_names = out.width >= FROM_WIDTH_OF_NAMES
    table.add_column("counters", no_wrap=False)
    table.add_column("[dim]simulated[/]", justify="right", no_wrap=True)
    if with_names:
        table.add_column("[dim]at Nsight Compute[/]", no_wrap=True)
    groups = _groups(execution)
    for group, rows in groups.items():
        if not rows:
            continue
        table.add_row(f"[bold]{group}[/]")
        for meaning, value, name in rows:
            cells = [f"  {escape(meaning)}", value]
            table.add_row(*cells, *([f"[dim]{escape(name)}[/]"] if with_names else []))
    return table


def _groups(execution: Execution) -> dict[str, list[tuple[str, str, str]]]:
    """(meaning, value, name) of what is not zero, by group; metrics have no name."""
    counters = execution.counters
    groups: dict[str, list[tuple[str, str, str]]] = {
        name: [] for name in ("instructions", "global memory", "shared memory", "local memory")
    }
    for name, value in counters.items():
        if value:
            counter = COUNTERS[name]
            grade = "" if counter.grade == "exact" else f" ({counter.grade})"
            groups[_group(name)].append((f"{counter.meaning}{grade}", f"{value:,}", name))
    for group, metric in _metrics(execution):
        if groups[group]:
            groups[group].append((*metric, ""))
    return groups


def _group(name: str) -> str:
    return next((f"{s} memory" for s in ("global", "shared", "local") if s in name), "instructions")


def _metrics(execution: Execution) -> Iterator[tuple[str, tuple[str, str]]]:
    counters = execution.counters
    issued = counters[WARP_INSTRUCTIONS]
    if issued:
        active = counters[THREAD_INSTRUCTIONS] / issued
        yield (
            "instructions",
            ("active threads per instruction", f"{text.count(active)} of {WARP_SIZE}"),
        )
    for space, action in product(("global", "local"), ("load", "store")):
        of = _accesses(execution, space, action)
        if of.requests:
            ideal = text.count(of.ideal / of.requests)
            what = f"sectors per request of {space} {action}s (ideal: {ideal})"
            yield (f"{space} memory", (what, text.count(of.sectors / of.requests)))
    for action in ("load", "store"):
        of = _accesses(execution, "shared", action)
        if of.shared_accesses:
            what = f"bank conflicts per shared {action}"
            yield ("shared memory", (what, text.count(of.conflicts / of.shared_accesses)))
    share = conflict_share(counters)
    if share:
        yield ("shared memory", ("of the wavefronts are bank conflicts", text.percent(share)))


def _accesses(execution: Execution, space: str, action: str) -> Line:
    of = [i for i in execution.instructions if (i.space, i.action) == (space, action)]
    return _line(("", 0), of)


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the instructions of one source line did together."""

    file: str
    line: int
    executed: int
    threads: int
    requests: int
    sectors: int
    ideal: int
    shared_accesses: int
    wavefronts: int
    conflict_free: int
    splitting: int
    splits: int
    local: bool

    @property
    def conflicts(self) -> int:
        return self.wavefronts - self.conflict_free

    @property
    def cost(self) -> int:
        """What it takes of the issue slots and of L1, roughly."""
        return self.executed + self.sectors + self.wavefronts

    def remarks(self) -> Iterator[str]:
        """What is worth a look."""
        if self.ideal and self.sectors >= UNCOALESCED * self.ideal:
            yield f"[bold red]uncoalesced: {text.ratio(self.sectors / self.ideal)} the sectors[/]"
        elif self.ideal and self.sectors > WASTEFUL * self.ideal:
            yield f"[yellow]{text.ratio(self.sectors / self.ideal)} the sectors needed[/]"
        if self.conflicts:
            share = self.conflicts / self.wavefronts
            yield f"[bold red]bank conflicts: {text.percent(share)} of its wavefronts[/]"
        if self.splits:
            yield f"[yellow]splits {text.percent(self.splits / self.splitting)} of the warps[/]"
        if self.local:
            yield "[yellow]local memory[/]"


def summed_by_line(instructions: Iterable[InstructionCounts]) -> list[Line]:
    """The lines whose instructions were executed, in order."""
    of_lines: dict[tuple[str, int], list[InstructionCounts]] = {}
    for one in instructions:
        if one.file is not None and one.line is not None and one.executed:
            of_lines.setdefault((one.file, one.line), []).append(one)
    return [_line(place, of_lines[place]) for place in sorted(of_lines)]


def _line(place: tuple[str, int], of: Sequence[InstructionCounts]) -> Line:
    off_chip = [i for i in of if i.sectors]
    shared = [i for i in of if i.wavefronts]
    splitting = [i for i in of if i.divergent]
    return Line(
        file=place[0],
        line=place[1],
        executed=sum(i.executed for i in of),
        threads=sum(i.threads for i in of),
        requests=sum(i.requests for i in off_chip),
        sectors=sum(i.sectors for i in off_chip),
        ideal=sum(i.ideal for i in off_chip),
        shared_accesses=sum(i.requests for i in shared),
        wavefronts=sum(i.wavefronts for i in shared),
        conflict_free=sum(i.conflict_free for i in shared),
        splitting=sum(i.executed for i in splitting),
        splits=sum(i.divergent for i in splitting),
        local=any(i.space == "local" for i in of),
    )


def _lines_table(lines: Sequence[Line], call: Call, top: int) -> Table:
    busiest = sorted(lines, key=lambda line: line.cost, reverse=True)[:top]
    shown = [line for line in lines if line in busiest]
    left = f": the {top} busiest of {len(lines)}, --top {len(lines)} shows all"
    table = Table(
        title=f"source lines{left if len(lines) > top else ''}",
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    columns = [column for column in _COLUMNS if any(column[1](line) for line in shown)]
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True, overflow="ellipsis", ratio=1)
    for title, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    texts = (call.text or "").splitlines()
    for line in shown:
        own = line.file == call.source.name
        table.add_row(
            str(line.line) if own else escape(f"{line.file}:{line.line}"),
            escape(texts[line.line - 1].strip()) if own and line.line <= len(texts) else "",
            *(cell(line) for _, cell in columns),
            ", ".join(line.remarks()),
        )
    return table


def _per(count: int, of: int) -> str:
    return text.count(count / of) if of else ""


_COLUMNS: tuple[tuple[str, Callable[[Line], str]], ...] = (
    ("warp\ninstructions", lambda line: f"{line.executed:,}"),
    ("threads\neach", lambda line: _per(line.threads, line.executed)),
    ("sectors per\nrequest", lambda line: _per(line.sectors, line.requests)),
    ("\nideal", lambda line: _per(line.ideal, line.requests)),
    ("bank conflicts\nper access", lambda line: _per(line.conflicts, line.shared_accesses)),
)


# The document.


def document(simulated: Simulated) -> dict[str, Any]:
    """What --json prints: everything that is known, counters of zero included."""
    call, execution = simulated.call, simulated.execution
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        "source": call.source.name,
        "kernel": simulated.kernel,
        "grid": call.grid,
        "block": call.block,
        "dynamic_shared_bytes": call.dynamic_shared_bytes,
        "arguments": call.written,
        "defines": call.defines,
        "options": call.options,
        "seed": call.seed,
        "resources": asdict(execution.resources),
        "basis": execution.basis,
        "executed_blocks": execution.executed_blocks,
        "simulation_s": execution.simulation_s,
        "notes": execution.notes,
        "counters": execution.counters,
        "lines": [
            {"file": file, "line": line, "counters": counters}
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
