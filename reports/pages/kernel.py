"""The report of one launch as a page: no network, no library, readable without its script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.access import BANKS, WORD_BYTES
from analysis.errors import shortened
from analysis.records.counters import ALL_COUNTERS, InstructionCounts
from analysis.records.profile import FirstRequest, LineAccess
from analysis.records.remedy import Remedy
from analysis.records.source_lines import distinct_accesses
from analysis.timing.predicted import Effect
from analysis.traffic.requests import pieces
from reports import text
from reports.sections import launch_facts as facts
from reports.sections import launch_memory as memory
from reports.sections.kernel_source import excerpt, line_rows, values
from reports.sections.launch_report import LaunchReport
from reports.sections.remedies import place
from reports.sections.time_parts import Part, PartClass, parts
from reports.svg.bar import Segment, bar
from reports.svg.busy import bars
from reports.svg.memory_flow import flow
from reports.svg.request import banks, sectors
from reports.svg.roofline import roofline
from reports.templating import template

NOW_PX, OTHER_PX = 46, 30  # heights of bars
NOTEBOOK_PX, LINE_PX = 380, 24
MOST_SHOWN = 3  # remedies on the first screen
MOST_DIFF_LINES = 6
MOST_OPEN, MOST_ROWS = 20, 200  # lines of the table: shown at once, and in all
MOST_INSTRUCTIONS = 1500
LEAST_COST = 0.001  # of the time: a line below it has no number
LEAST_GAIN = 0.005  # of the time: a remedy below it has no factor


def page(report: LaunchReport) -> str:
    """The report as one HTML page that needs no network."""
    return _rendered(report, is_whole=True)


def notebook_frame(report: LaunchReport) -> str:
    """The first screen as HTML for a notebook, in a frame that keeps its style to itself."""
    lines = len(excerpt(report, None))
    height = NOTEBOOK_PX + LINE_PX * max(
        lines, len(report.predicted.costs) if report.predicted else 0
    )
    return Markup(
        '<iframe srcdoc="{}" style="width:100%;height:{}px;border:0" title="{}"></iframe>'
    ).format(_rendered(report, is_whole=False), height, shortened(report.name))


def _rendered(report: LaunchReport, *, is_whole: bool) -> str:
    return template("kernel.html.j2").render(
        title=_title(report),
        name=report.name,
        short_name=shortened(report.name),
        meta=list(_meta(report)),
        big=_big(report),
        verdict=_verdict(report),
        gain=_gain(report),
        figure=_figure(report),
        source=excerpt(report, _unit(report)),
        parts=list(_part_rows(report)),
        remedies=[
            _remedy(one, _unit(report) or text.time_unit(one.before_s)) for one in report.remedies
        ],
        most_shown=MOST_SHOWN,
        notes=[*filter(None, [report.resources.note]), *report.notes],
        whole=_Whole.of(report) if is_whole else None,
    )


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """Sections below the first screen."""

    units: str
    busy: Markup | None
    roofline: Markup | None
    memory: str
    flow: Markup | None
    request_title: str
    request: Markup | None
    lines: Sequence[dict[str, object]]
    more_lines: Sequence[dict[str, object]]
    lines_sentence: str
    time_unit: str
    has_costs: bool
    code: Markup | None
    code_title: str
    counters: Sequence[tuple[str, str, str]]
    occupancy: str
    limits: Markup | None
    launch: Sequence[tuple[str, str]]
    trust: str
    errors: Sequence[tuple[str, str, str, str]]
    grades: Sequence[tuple[str, str, str]]
    unused: str
    command: str | None

    @classmethod
    def of(cls, report: LaunchReport) -> _Whole:
        shown_roofline, shown_flow = memory.launch_roofline(report), memory.launch_flow(report)
        busy, limits = memory.busy_bars(report), facts.occupancy_bars(report)
        request, lines = _request(report), list(_line_rows(report))
        return cls(
            units=memory.busy_sentence(report),
            busy=bars(busy, "Share of the time for which each unit is busy") if busy else None,
            roofline=roofline(shown_roofline) if shown_roofline else None,
            memory=memory.memory_sentence(report),
            flow=flow(shown_flow) if shown_flow else None,
            request_title=request[0] if request else "",
            request=request[1] if request else None,
            lines=lines[:MOST_OPEN],
            more_lines=lines[MOST_OPEN:],
            lines_sentence=_lines_sentence(report),
            time_unit=(_unit(report) or (1, ""))[1],
            has_costs=bool(report.predicted and report.predicted.lines),
            code=_code(report.instructions),
            code_title=_code_title(report),
            counters=list(_counters(report)),
            occupancy=facts.occupancy_sentence(report),
            limits=bars(limits, "Blocks per SM that each resource allows") if limits else None,
            launch=list(facts.launch_rows(report)),
            trust=facts.trust_sentence(report),
            errors=list(facts.error_rows(report)),
            grades=list(facts.grade_rows(report)),
            unused=", ".join(facts.unused(report)),
            command=report.command,
        )


# The first screen.


def _whole_s(report: LaunchReport) -> float | None:
    """The time of the bar: the longer one of predicted and measured."""
    known = [report.measured_s, report.predicted.time_s if report.predicted else None]
    return max((time_s for time_s in known if time_s), default=None)


def _unit(report: LaunchReport) -> tuple[float, str] | None:
    whole_s = _whole_s(report)
    return text.time_unit(whole_s) if whole_s else None


def _title(report: LaunchReport) -> str:
    told = [shortened(report.name)]
    if report.device:
        told.append(f"on {facts.short_device(report.device)}")
    time_s, cause = report.time_s, report.answer.cause
    why = f", {cause.effect}" if cause else ""
    return " ".join(told) + (f": {text.predicted_seconds(time_s)}{why}" if time_s else "")


def _meta(report: LaunchReport) -> Iterator[str]:
    places = (one.charged for one in report.instructions)
    first = min((place[1] for place in places if place and place[0] == report.file), default=None)
    if report.file:
        yield shortened(report.file) + (f":{first}" if first else "")
    if report.device:
        yield report.device.name
    if report.geometry:
        grid, block = facts.times(report.geometry.grid), facts.times(report.geometry.block)
        blocks = "block" if report.geometry.blocks == 1 else "blocks"
        threads = "thread" if report.geometry.threads_per_block == 1 else "threads"
        yield f"{grid} {blocks} of {block} {threads}"
    if report.uncertainty:
        yield report.uncertainty[0].lower() + report.uncertainty[1:]


def _big(report: LaunchReport) -> dict[str, str]:
    """The number of the page, its unit, its grade, and what is known of its error."""
    predicted = report.predicted
    if report.measured_s is not None:
        also = f"predicted {text.predicted_seconds(predicted.time_s)}" if predicted else ""
        return {**_number(report.measured_s), "grade": "measured", "trust": also}
    if predicted is not None:
        return {
            **_number(predicted.time_s),
            "grade": "predicted",
            "trust": facts.error_short(report),
        }
    return {"value": text.ABSENT, "unit": "", "grade": "no time", "trust": ""}


def _number(time_s: float) -> dict[str, str]:
    value, _, unit = text.predicted_seconds(time_s).partition(" ")
    return {"value": value, "unit": unit}


def _verdict(report: LaunchReport) -> tuple[str, str]:
    """The sentence that stands out, and the ones after it."""
    answer = report.answer
    if report.predicted is None and report.measured_s is None:
        why = report.prediction_basis or "not predicted: no device was named"
        return f"{text.capital(why)}.", answer.line_sentence
    first, _, rest = answer.cause_sentence.partition(". ")
    return f"{first.rstrip('.')}.", f"{rest} {answer.line_sentence}".strip()


def _gain(report: LaunchReport) -> str:
    """'Remedy 1 makes it 1.55× faster', empty without a remedy that was made."""
    remedy = _first(report)
    if remedy is None or remedy.after_s is None or not remedy.after_s > 0:
        return ""
    if remedy.before_s - remedy.after_s < LEAST_GAIN * remedy.before_s:
        return ""
    return f"{text.ratio(remedy.before_s / remedy.after_s)} faster"


def _first(report: LaunchReport) -> Remedy | None:
    """The first remedy, if it was made."""
    made = [one for one in report.remedies if one.after_s is not None]
    return min(made, key=lambda one: one.number, default=None)


def _figure(report: LaunchReport) -> dict[str, object] | None:
    """Bars of the time: now, and with the first remedy or measured; None without any time."""
    whole_s, found = _whole_s(report), parts(report)
    if not whole_s or not found:
        return None
    scale, unit = text.time_unit(whole_s)
    segments = [_segment(part, whole_s, scale) for part in found]
    listed = ", ".join(f"{one.name} {one.value}" for one in segments)
    predicted, measured_s = report.predicted, report.measured_s
    is_longer = measured_s is not None and (not predicted or measured_s >= predicted.time_s)
    first_s = measured_s if is_longer and measured_s else predicted.time_s if predicted else 0.0
    grade = "now" if measured_s is None else "measured" if is_longer else "predicted"
    rows = [_bar_row(first_s, grade, segments, f"Parts of the time in {unit}: {listed}", NOW_PX)]
    rows += _second_rows(report, whole_s, (scale, unit))
    return {"rows": rows, "unit": unit, "key": segments}


def _second_rows(
    report: LaunchReport, whole_s: float, unit: tuple[float, str]
) -> Iterator[dict[str, object]]:
    predicted, measured_s = report.predicted, report.measured_s
    if predicted and measured_s and measured_s < predicted.time_s:
        left = Part(name="unexplained", time_s=whole_s - measured_s, kind=PartClass.UNEXPLAINED)
        whole = Part(name="", time_s=measured_s, kind=PartClass.REST)
        segments = [_segment(part, whole_s, unit[0]) for part in (whole, left)]
        yield _bar_row(measured_s, "measured", segments, "Measured time", OTHER_PX)
    remedy = _first(report)
    if predicted and remedy and remedy.after_s and 0 < remedy.after_s < predicted.time_s:
        after = Segment(share=remedy.after_s / whole_s, value="", name="", class_=PartClass.ROOF)
        saved_s = predicted.time_s - remedy.after_s
        said = f"{text.three_digits(saved_s / unit[0])} {unit[1]}"
        saved = Segment(share=saved_s / whole_s, value="saves", name=said, class_=PartClass.MISSING)
        label = f"With remedy {remedy.number}: saves {said}"
        yield _bar_row(
            remedy.after_s, f"with remedy {remedy.number}", [after, saved], label, OTHER_PX
        )


def _segment(part: Part, whole_s: float, scale: float) -> Segment:
    return Segment(
        share=part.time_s / whole_s,
        value=text.three_digits(part.time_s / scale),
        name=part.name,
        class_=part.kind,
    )


def _bar_row(
    time_s: float, what: str, segments: Sequence[Segment], label: str, height: int
) -> dict[str, object]:
    return {
        "time": text.predicted_seconds(time_s),
        "what": what,
        "bar": bar(segments, label, height=height),
    }


def _part_rows(report: LaunchReport) -> Iterator[dict[str, str]]:
    """Each part of the predicted time, what it would save alone, and why."""
    predicted = report.predicted
    if predicted is None:
        return
    scale, _ = text.time_unit(predicted.time_s)
    for cost in predicted.costs:
        if cost.time_s < 0.001 * predicted.time_s:
            continue
        is_free = cost.is_roof or cost.effect in (Effect.LAUNCH, Effect.REMAINDER)
        yield {
            "name": cost.effect,
            "value": text.three_digits(cost.time_s / scale),
            "share": text.three_digits(100 * cost.time_s / predicted.time_s),
            "alone": "" if is_free else text.three_digits(cost.alone_s / scale),
            "class_": "hot" if cost is report.answer.cause else "",
        }


def _remedy(remedy: Remedy, unit: tuple[float, str]) -> dict[str, object]:
    told = [remedy.compared, "changes rounding" if remedy.is_rounding else "", remedy.error]
    if remedy.measured_s is not None:
        told.insert(0, f"{text.predicted_seconds(remedy.measured_s)} measured with it")
    if remedy.arguments:
        told.insert(0, f"launch with {' '.join(remedy.arguments)}")
    if remedy.after_s is None:  # what was made has a diff
        told.insert(0, place(remedy))
    return {
        "number": remedy.number,
        "title": remedy.title,  # begins with source code
        "saves": _saves(remedy, unit),
        "tags": [
            *(f"alternative to remedy {number}" for number in remedy.instead_of),
            *(f"after remedy {number}" for number in remedy.after),
        ],
        "about": ". ".join(text.capital(one) for one in told if one),
        "diff": list(_diff(remedy.diff)),
    }


def _saves(remedy: Remedy, unit: tuple[float, str]) -> str:
    """'−55.1 µs', and 'at most 7.35 µs' of a remedy that was not made."""
    saved_s = remedy.saved_s if remedy.most_s is None else remedy.most_s
    if saved_s is None:
        return ""
    shown = f"{text.three_digits(abs(saved_s) / unit[0])} {unit[1]}"
    if remedy.most_s is not None:
        return f"at most {shown}"
    return f"{'−' if saved_s >= 0 else '+'}{shown}"


def _diff(diff: str) -> Iterator[tuple[str, str]]:
    """(class, line) of the lines that a unified diff removes and adds."""
    changed = [
        line
        for line in diff.splitlines()
        if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))
    ]
    for line in changed[:MOST_DIFF_LINES]:
        yield ("p" if line[0] == "+" else "m"), line
    if len(changed) > MOST_DIFF_LINES:
        yield "", f"{len(changed) - MOST_DIFF_LINES} more lines"


# Below the first screen.


def _request(report: LaunchReport) -> tuple[str, Markup] | None:
    """Figure of the request that wastes most, of the line that the verdict names."""
    place, cause = report.answer.place, report.answer.cause
    if place is None or (cause and cause.effect not in (Effect.CONFLICTS, Effect.UNCOALESCED)):
        return None
    found = [
        (one, one.first)
        for one in report.memory
        if one.first and _place(report, one) == place and _wasted(one) > 0
    ]
    if not found:
        return None
    one, first = max(found, key=lambda pair: _wasted(pair[0]))
    return _drawn_request(one, first, place[1])


def _drawn_request(one: LineAccess, first: FirstRequest, line: int) -> tuple[str, Markup] | None:
    if one.space == "shared":
        active = [offset for offset in first.lanes if offset is not None]
        hit = len({offset // WORD_BYTES % BANKS for offset in active})
        met = f"{text.many(len(active), 'lane')} in {text.many(hit, 'bank')}"
        title = f"Line {line}, one {one.action} of a warp: {met}"
        return title, banks(first.lanes, title)
    if one.space != "global":
        return None
    taken = len(pieces(first.lanes, one.bytes_per_lane, one.space))
    title = f"Line {line}, one {one.action} of a warp: {text.many(taken, 'sector')}"
    return title, sectors(first.lanes, one.bytes_per_lane, title)


def _place(report: LaunchReport, one: LineAccess) -> tuple[str | None, int | None]:
    return report.instructions[one.place].charged or (None, None)


def _wasted(one: LineAccess) -> int:
    if one.space == "shared":
        return one.wavefronts - one.conflict_free
    return one.sectors - one.ideal


def _line_rows(report: LaunchReport) -> Iterator[dict[str, object]]:
    unit = _unit(report)
    for row in line_rows(report, MOST_ROWS):
        cost = _line_cost(row.cost_s, report, unit) if unit and row.cost_s else ""
        yield {
            "number": row.number,
            "code": row.code,
            "cost": cost,
            "cost_s": row.cost_s or 0.0,
            "executed": f"{row.executed:,}",
            "executed_v": row.executed,
            "share": text.three_digits(100 * row.share),
            "sectors": row.sectors,
            "wavefronts": row.wavefronts,
            "is_hot": row.is_hot,
        }


def _line_cost(cost_s: float, report: LaunchReport, unit: tuple[float, str]) -> str:
    """A cost as a number, or an upper bound for a negligible one."""
    assert report.predicted is not None
    least_s = LEAST_COST * report.predicted.time_s
    if cost_s >= least_s:
        return text.three_digits(cost_s / unit[0])
    return f"<{float(f'{least_s / unit[0]:.1g}'):g}"


def _lines_sentence(report: LaunchReport) -> str:
    if not report.instructions:
        return "The launch was not executed on the CPU, so its lines have no counts."
    number = len(report.lines)
    if not number:
        return "The machine code has no line information: compile it with -lineinfo."
    told = f"The {MOST_ROWS} most expensive of {number:,} lines. " if number > MOST_ROWS else ""
    predicted = report.predicted
    if predicted is None or not predicted.lines:
        return told + "Values are per request. Brackets hold the ideal where it is lower."
    left_s = sum(one.time_s for one in predicted.lines if one.line is None)
    return (
        f"{told}The cost of a line: how much shorter the launch would be without it. "
        f"{text.predicted_seconds(left_s)} belong to no line."
    )


def _code(instructions: Sequence[InstructionCounts]) -> Markup | None:
    """Machine code in columns: address, instruction, line, executions, values per request."""
    if not instructions:
        return None
    lines = [_columns("address", "instruction", "line", "warps", "sectors or wavefronts")]
    lines += [
        _columns(
            f"{one.address:#06x}",
            one.text,
            f"{one.line or ''}",
            f"{one.executed:,}",
            values(distinct_accesses([one])),
        )
        for one in instructions[:MOST_INSTRUCTIONS]
    ]
    return escape("\n".join(lines))


def _columns(address: str, code: str, line: str, executed: str, each: str) -> str:
    return f"{address:<8}{shortened(code, 52):<54}{line:>5}{executed:>15}  {each}".rstrip()


def _code_title(report: LaunchReport) -> str:
    number, shown = len(report.instructions), min(len(report.instructions), MOST_INSTRUCTIONS)
    first = f"the first {shown:,} of " if shown < number else ""
    return f"{first}{text.many(number, 'SASS instruction')}, {report.resources.architecture}"


def _counters(report: LaunchReport) -> Iterator[tuple[str, str, str]]:
    """Label, value and Nsight Compute's name of each counter that is not zero."""
    for tag, value in report.counters.items():
        if value and tag in ALL_COUNTERS:
            shown = (
                text.count_interval(*report.estimates[tag])
                if tag in report.estimates
                else f"{value:,}"
            )
            yield ALL_COUNTERS[tag].label, shown, tag
