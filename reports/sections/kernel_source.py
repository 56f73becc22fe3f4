"""Source of one launch: an excerpt around its expensive lines, and a row for each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.records.counters import InstructionCounts
from analysis.records.source_lines import AccessTotal, distinct_accesses
from analysis.timing.predicted import NAMED
from reports import text
from reports.sections.answer import per_request
from reports.sections.launch_report import LaunchReport
from reports.source_lines import line_text

MOST_LINES = 24  # of an excerpt
CONTEXT = 3  # lines around an expensive one
MOST_COSTLY = 6  # lines that an excerpt is about
MOST_VALUES = 3  # of one line: more are given as a range
LONGEST = 160  # characters of a line that is shown

_TOKEN = re.compile(
    r"(?P<cm>//.*|/\*.*?(?:\*/|$))|(?P<str>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<kw>\b(?:__\w+__|__syncthreads|extern|void|float[234]?|double[2]?|half|int|unsigned|char"
    r"|long|short|bool|const|volatile|static|struct|template|typename|class|auto|if|else|for"
    r"|while|do|return|break|continue|switch|case|constexpr|inline|size_t|u?int\d+_t)\b)"
)
_PYTHON_TOKEN = re.compile(
    r"(?P<str>\"\"\".*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<cm>#.*)"
    r"|(?P<kw>\b(?:def|return|for|while|in|if|elif|else|and|or|not|is|None|True|False|break"
    r"|continue|pass|lambda|assert|with|as|from|import)\b)"
)


@dataclass(frozen=True, kw_only=True)
class ExcerptLine:
    """A line of an excerpt, None as its number for lines that are left out.

    `cost` is its predicted cost as text, `why` the reason of a hot line.
    """

    number: int | None
    code: Markup
    cost: str = ""
    why: str = ""
    is_hot: bool = False


@dataclass(frozen=True, kw_only=True)
class LineRow:
    """A line with its counts. `sectors` and `wavefronts` are values per request, as text.

    `cost_s` is its predicted cost, None if it is not known.
    """

    number: int
    code: Markup
    cost_s: float | None
    executed: int
    share: float
    sectors: str
    wavefronts: str
    is_hot: bool


def highlighted(code: str, file: str | None = None) -> Markup:
    """A line with its comments and keywords marked: of Python if its file is, else of CUDA C++."""
    token = _PYTHON_TOKEN if (file or "").endswith(".py") else _TOKEN
    shown = code if len(code) <= LONGEST else f"{code[:LONGEST]}…"
    found, end = list[Markup](), 0
    for match in token.finditer(shown):
        kind, words = match.lastgroup, escape(match[0])
        found.append(escape(shown[end : match.start()]))
        found.append(words if kind == "str" else Markup(f'<span class="{kind}">{words}</span>'))
        end = match.end()
    return Markup("".join(found)) + escape(shown[end:])


def excerpt(report: LaunchReport, unit: tuple[float, str] | None) -> list[ExcerptLine]:
    """Lines around the most expensive ones; empty if the source or its lines are not known."""
    lines = (report.source or "").splitlines()
    own = {number: of for (file, number), of in report.lines.items() if file == report.file}
    own = {number: of for number, of in own.items() if 1 <= number <= len(lines)}
    if not own:
        return []
    shown = _chosen(report, sorted(own))
    found, before = list[ExcerptLine](), None
    for number in shown:
        if before is not None and number > before + 1:
            left = text.many(number - before - 1, "line")
            found.append(ExcerptLine(number=None, code=escape(f"⋯ {left}")))
        found.append(_source_line(report, number, lines[number - 1], own.get(number, ()), unit))
        before = number
    return found


def _chosen(report: LaunchReport, own: Sequence[int]) -> list[int]:
    """Numbers of the lines of an excerpt: all of the kernel, or those around expensive ones."""
    assert report.file is not None
    last = len((report.source or "").splitlines())
    first, end = own[0], min(last, own[-1])
    if end - first < MOST_LINES:
        return list(range(first, end + 1))
    place = report.answer.place
    hot = [place[1]] if place and place[0] == report.file else []
    cost = {number: report.line_s(report.file, number) or 0.0 for number in own}
    costly = [*hot, *sorted(own, key=lambda number: -cost[number])][: MOST_COSTLY + len(hot)]
    found = set[int]()
    for number in dict.fromkeys(costly):
        around = range(max(first, number - CONTEXT), min(end, number + CONTEXT) + 1)
        if len(found.union(around)) <= MOST_LINES:
            found.update(around)
    return sorted(found)


def _source_line(
    report: LaunchReport,
    number: int,
    code: str,
    instructions: Sequence[InstructionCounts],
    unit: tuple[float, str] | None,
) -> ExcerptLine:
    assert report.file is not None
    is_hot = report.answer.place == (report.file, number)
    cost_s = report.line_s(report.file, number)
    cost = ""
    if unit and report.predicted and cost_s and cost_s >= NAMED * report.predicted.time_s:
        cost = f"{text.three_digits(cost_s / unit[0])} {unit[1]}"
    why = reasons(distinct_accesses(instructions)) if is_hot else ""
    code_of_line = highlighted(code, report.file)
    return ExcerptLine(number=number, code=code_of_line, cost=cost, why=why, is_hot=is_hot)


def reasons(accesses: Sequence[AccessTotal]) -> str:
    """Accesses of a line that waste traffic, each kind with its values; empty without any."""
    kinds: dict[tuple[str, str], list[AccessTotal]] = {}
    for one in sorted(accesses, key=lambda one: (not one.waste, -one.units)):
        kinds.setdefault((one.space, one.action), []).append(one)
    wasted = [same for same in kinds.values() if any(one.waste for one in same)]
    told = [per_request(same) for same in wasted]
    return f"{'; '.join(told[:2])}." if told else ""


def line_rows(report: LaunchReport, most: int) -> list[LineRow]:
    """The `most` expensive lines that were executed, in order of cost, then of instructions."""
    executed = {place: sum(one.executed for one in of) for place, of in report.lines.items()}
    cost_s = {place: report.line_s(*place) for place in executed}
    order = sorted(executed, key=lambda place: (-(cost_s[place] or 0.0), -executed[place]))
    total = sum(executed.values())
    rows = []
    for place in order[:most]:
        file, number = place
        is_own = file == report.file
        code = line_text(report.source, number) if is_own else ""
        accesses = distinct_accesses(report.lines[place])
        rows.append(
            LineRow(
                number=number,
                code=highlighted(code, file) if is_own else escape(file),
                cost_s=cost_s[place],
                executed=executed[place],
                share=executed[place] / total,
                sectors=values(a for a in accesses if a.space != "shared"),
                wavefronts=values(a for a in accesses if a.space == "shared"),
                is_hot=report.answer.place == place,
            )
        )
    return rows


def values(accesses: Iterable[AccessTotal]) -> str:
    """Units per request of each access, with the ideal where it is less: '32 (4), 4'."""
    found = list(dict.fromkeys(_values(accesses)))
    if len(found) <= MOST_VALUES:
        return ", ".join(found)
    return f"{', '.join(found[:MOST_VALUES])}, {len(found) - MOST_VALUES} more"


def _values(accesses: Iterable[AccessTotal]) -> Iterator[str]:
    for one in accesses:
        units, ideal = (text.per_each(x / one.requests) for x in (one.units, one.ideal))
        yield units if units == ideal else f"{units} (ideal {ideal})"
