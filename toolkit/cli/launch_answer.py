"""First screen of `simulate` and `run`: the time, its cause, its line, and what it is spent on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from analysis.records.counters import InstructionCounts, of_lines
from analysis.records.metrics import is_arithmetic
from analysis.records.source_lines import AccessTotal, distinct_accesses
from analysis.timing.predicted import Predicted, Resource
from reports import text
from reports.sections.launch_facts import error_sentence, measured_sentence, occupancy_of
from reports.sections.table import Title, plain_table
from reports.sections.time_parts import PartClass, parts
from reports.source_lines import line_text
from toolkit.cli.argument_syntax import BufferArgument
from toolkit.cli.call import SimulatedCall
from toolkit.cli.remedies import print_remedies
from toolkit.cli.terminal import note, out, print_without_margins, rich_table, say
from toolkit.launch.launch import Execution

SMALL = 0.02  # of the time: the cost of a line below it is not shown
BAR_WIDTH = 24
MOST_ROWS = 45  # of the answer, unless more source lines are asked for
MOST_LINES, FEWEST_LINES = 6, 2  # of the source
LABEL_WIDTH = 10  # of the facts at the end
MOST_UNITS = 5  # of those that are busy
LEAST_BUSY = 0.01  # of the time: units that are busy for less are not shown
MOST_VALUES = 2  # of the accesses of one line
MOST_CHARACTERS = 20  # of them: of more, the worst access stands for all
NARROWEST_SOURCE = 8
FULL_WARP = 32


def print_answer(simulated: SimulatedCall, *, top: int | None) -> None:
    """The answer on one launch, with the `top` source lines, None for none.

    With `FITTING` there are as many of them that the answer has at most 45 lines.
    """
    _print_above_lines(simulated)
    if top is not None and simulated.execution.instructions:
        _print_lines(simulated, top or _fitting(simulated))
    _print_facts(simulated)


def _fitting(simulated: SimulatedCall) -> int:
    """Number of source lines beside which the answer has at most 45 lines."""
    others = [partial(_print_above_lines, simulated), partial(_print_facts, simulated)]
    left = MOST_ROWS - sum(map(_height, others))
    for number in range(MOST_LINES, FEWEST_LINES, -1):
        if _height(partial(_print_lines, simulated, number)) <= left:
            return number
    return FEWEST_LINES


def _height(shown: Callable[[], None]) -> int:
    """Number of lines that a function prints; nothing is printed."""
    with out.capture() as captured:
        shown()
    return captured.get().count("\n")


def _print_above_lines(simulated: SimulatedCall) -> None:
    execution = simulated.execution
    first, *rest = execution.verdict.splitlines()
    say(first, "bold", indent=0)
    for line in rest:
        say(line, indent=0)
    for one in filter(None, [execution.resources.note, *execution.notes]):
        note(one)
    print_remedies(simulated.remedies)
    _print_parts(execution)


def _print_facts(simulated: SimulatedCall) -> None:
    out.print()
    for label, fact in _facts(simulated):
        say(f"{label:<{LABEL_WIDTH}}{fact}", indent=LABEL_WIDTH)


def _print_parts(execution: Execution) -> None:
    """Parts of the time as bars, as the page shows them."""
    rows = parts(execution.report)
    if not rows:
        return
    whole_s = sum(row.time_s for row in rows)
    scale, unit = text.time_unit(whole_s)
    width, largest = max(len(row.name) for row in rows), max(row.time_s for row in rows)
    decimals = text.decimals(whole_s / scale)
    out.print()
    say(f"time, {unit}")
    for row in rows:
        ink = "░" if row.kind == PartClass.UNEXPLAINED else "█"
        bar = ink * round(BAR_WIDTH * row.time_s / largest)
        shown = f"{row.time_s / scale:.{decimals}f}"
        if not float(shown):
            continue
        say(f"  {row.name:<{width}}  {bar:<{BAR_WIDTH}}  {shown:>7}")


# Source lines.


def _print_lines(simulated: SimulatedCall, top: int) -> None:
    execution = simulated.execution
    lines = of_lines(one for one in execution.instructions if one.executed)
    out.print()
    if not lines:
        say("no source lines: the machine code was compiled without -lineinfo")
        return
    costs = _costs_of_lines(execution.predicted)
    executed = {place: sum(one.executed for one in of) for place, of in lines.items()}
    order = sorted(lines, key=lambda place: (-costs.get(place, 0.0), -executed[place]))
    shown = order[:top]
    columns = [
        (title, per, [cell(place, lines[place]) for place in shown])
        for title, per, cell in _columns(costs, execution.predicted)
    ]
    columns = [one for one in columns if any(one[2])]
    taken = sum(2 + max(map(len, (title, per, *cells))) for title, per, cells in columns)
    room = max(NARROWEST_SOURCE, out.width - taken - len("line") - 5)
    titles: list[Title] = [("line", "", True), "source"]
    titles += [(title, per, True) for title, per, _ in columns]
    rows = [
        [str(place[1]), _shortened(source_line(place, simulated), room), *cells]
        for place, *cells in zip(shown, *(cells for *_, cells in columns), strict=True)
    ]
    print_without_margins(rich_table(plain_table(titles, rows)))
    left = len(lines) - len(shown)
    further = [f"{text.many(left, 'more line')}: --top {len(lines)}"] if left else []
    if any(one.callers for of in lines.values() for one in of):
        further.append("lines of inlined functions: --inner-lines")
    if further:
        say(f"      {'; '.join(further)}")


FileLine = tuple[str, int]
Cells = Callable[[FileLine, Sequence[InstructionCounts]], str]


def _columns(
    costs: Mapping[FileLine, float], predicted: Predicted | None
) -> Iterator[tuple[str, str, Cells]]:
    """Title, second title and cells of each column after the source."""
    yield "warp", "instr.", lambda _, of: text.digits(sum(one.executed for one in of))
    yield "active", "threads", lambda _, of: _active(of)
    yield "sectors", "/request", lambda _, of: _per_request(of, shared=False)
    yield "wavefronts", "/access", lambda _, of: _per_request(of, shared=True)
    if predicted is not None and costs:
        scale, unit = text.time_unit(predicted.time_s)
        least_s = SMALL * predicted.time_s

        def cost(place: FileLine, _: Sequence[InstructionCounts]) -> str:
            time_s = costs.get(place, 0.0)
            return text.three_digits(time_s / scale) if time_s >= least_s else ""

        yield unit, "", cost


def _costs_of_lines(predicted: Predicted | None) -> dict[FileLine, float]:
    known = predicted.lines if predicted else ()
    return {
        (one.file, one.line): one.time_s
        for one in known
        if one.file is not None and one.line is not None
    }


def _active(of: Sequence[InstructionCounts]) -> str:
    """Active threads per warp instruction, empty where all are."""
    threads = sum(one.threads for one in of) / sum(one.executed for one in of)
    return "" if threads == FULL_WARP else text.count(threads)


def _per_request(of: Sequence[InstructionCounts], *, shared: bool) -> str:
    """'4', '32, ideal 1', '4 and 32, ideal 4': of accesses of a line that differ, or the worst."""
    accesses = [one for one in distinct_accesses(of) if (one.space == "shared") == shared]
    if not accesses:
        return ""
    each = list(dict.fromkeys(map(_units, accesses)))
    ideal = list(dict.fromkeys(map(_ideal, accesses)))
    values = " and ".join(each[:MOST_VALUES]) + ("…" if len(each) > MOST_VALUES else "")
    if each == ideal:
        return values
    whole = f"{values}, ideal {' and '.join(ideal[:MOST_VALUES])}"
    if len(whole) <= MOST_CHARACTERS:
        return whole
    worst = max(accesses, key=lambda one: one.units / max(one.ideal, 1))
    return f"{_units(worst)}…, ideal {_ideal(worst)}"


def _units(access: AccessTotal) -> str:
    return text.per_each(access.units / access.requests)


def _ideal(access: AccessTotal) -> str:
    return text.per_each(access.ideal / access.requests)


def source_line(place: FileLine, simulated: SimulatedCall) -> str:
    """The text of a line; of another file its name, and empty past the end of the source."""
    file, number = place
    own = simulated.written_in
    return line_text(own.text, number) if file == own.name else file


def _shortened(code: str, width: int) -> str:
    return code if len(code) <= width else code[: width - 1] + "…"


# Facts.


def _facts(simulated: SimulatedCall) -> Iterator[tuple[str, str]]:
    """Label and sentence of each fact below the tables."""
    call, execution = simulated.call, simulated.execution
    predicted = execution.predicted
    if execution.samples_s:
        yield "measured", measured_sentence(execution.report)
    if predicted is not None:
        bounds = sorted(predicted.bounds, key=lambda bound: -bound.time_s)
        busy_s = predicted.time_s - predicted.launch_s
        shares = {one.name: one.time_s / busy_s for one in bounds if one.name != Resource.LATENCY}
        units = [
            f"{name} {text.percent(share)}" for name, share in shares.items() if share >= LEAST_BUSY
        ]
        yield (
            "busy",
            ", ".join(units[:MOST_UNITS])
            or f"each unit less than {text.percent(LEAST_BUSY)} of the time",
        )
        if is_arithmetic(execution.instructions, execution.counters):
            yield "rate", text.flop_per_s(predicted.flop_per_s)
    if found := occupancy_of(execution.report):
        yield (
            "occupancy",
            f"{found.warps_per_sm} of {found.max_warps_per_sm} warps on an SM, limited by "
            f"{text.listing(found.limiters)}",
        )
    if execution.basis:
        yield "counted", execution.basis
    if error := error_sentence(execution.report):
        yield "trust", f"{error} (docs/trust.md)"
    is_random = call.rung is not None or any(
        isinstance(item, BufferArgument) and item.is_random for item in call.arguments
    )
    if is_random:
        yield "repeat", f"--seed {call.seed}"
    yield "more", "--verbose: launch, counters and bounds; --html FILE: a page; --json"
