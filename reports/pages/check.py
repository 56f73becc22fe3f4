"""The result of a check as a page: what is wrong, the lines and threads, and what was checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import escape

from analysis.errors import shortened
from reports import text
from reports.sections.kernel_source import ExcerptLine, highlighted
from reports.sections.launch_facts import times
from reports.templating import template

CONTEXT = 2  # lines around each that a finding names
MOST_FINDINGS = 40
MOST_OPEN = 8  # findings that are shown at once

# Names of compute-sanitizer that are short for something
_KINDS = {
    "RAW": "read-after-write hazard",
    "WAR": "write-after-read hazard",
    "WAW": "write-after-write hazard",
    "out of bounds": "access out of bounds",
    "misaligned": "misaligned access",
}


@dataclass(frozen=True, kw_only=True)
class Action:
    """Access of a thread: '(31, 0, 0)' and its block's index. `line` is None without -lineinfo."""

    what: str
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    file: str | None
    line: int | None


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """One mistake: its tool and kind in compute-sanitizer, a sentence, and what threads did.

    `memory` is "shared" or "global", None if no memory is involved. `number` counts occurrences.
    """

    tool: str
    kind: str
    sentence: str
    memory: str | None
    number: int
    actions: Sequence[Action]


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """Result of a check of one launch. `source` is its text, None where it is not known."""

    kernel: str
    file: str
    source: str | None
    architecture: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    findings: Sequence[CheckFinding]
    executed_blocks: int
    blocks: int
    tools: Sequence[str]
    notes: Sequence[str]
    command: str


def page(report: CheckReport) -> str:
    """The result as one HTML page that needs no network."""
    number = len(report.findings)
    shown = [_finding(one, report) for one in report.findings[:MOST_FINDINGS]]
    return template("check.html.j2").render(
        title=f"{shortened(report.kernel)}: {_errors(number)}",
        name=report.kernel,
        short_name=shortened(report.kernel),
        meta=list(_meta(report)),
        number=number,
        errors="error" if number == 1 else "errors",
        verdict=_verdict(report),
        open=shown[:MOST_OPEN],
        more=shown[MOST_OPEN:],
        left=max(0, number - MOST_FINDINGS),
        tools=list(_tools(report)),
        coverage=_coverage(report),
        notes=report.notes,
        command=report.command,
    )


def _errors(number: int) -> str:
    return text.many(number, "error") if number else "no errors"


def _meta(report: CheckReport) -> Iterator[str]:
    yield shortened(report.file)
    yield report.architecture
    blocks = "block" if report.blocks == 1 else "blocks"
    yield f"{times(report.grid)} {blocks} of {times(report.block)} threads"


def _verdict(report: CheckReport) -> tuple[str, str]:
    """The sentence that stands out, and the one after it."""
    if not report.findings:
        return "Nothing was found.", _coverage(report)
    first = report.findings[0]
    words = heading(first)
    lines = sorted({one.line for one in first.actions if one.line is not None})
    where = f" at {'lines' if len(lines) > 1 else 'line'} {text.listing(list(map(str, lines)))}"
    return f"{words}{where if lines else ''}.", f"{first.tool} found it. {_coverage(report)}"


def _coverage(report: CheckReport) -> str:
    if report.blocks == 1:
        return "The one block was executed."
    if report.executed_blocks == report.blocks:
        return f"All {report.blocks:,} blocks were executed."
    return f"{report.executed_blocks:,} of {report.blocks:,} blocks were executed."


def heading(finding: CheckFinding) -> str:
    """'Read-after-write hazard in shared memory'"""
    words = _KINDS.get(finding.kind, finding.kind)
    place = f" in {finding.memory} memory" if finding.memory else ""
    return f"{text.capital(words)}{place}"


def _finding(finding: CheckFinding, report: CheckReport) -> dict[str, object]:
    sentence = finding.sentence.removeprefix(f"{report.kernel}: ")
    return {
        "heading": heading(finding),
        "tool": finding.tool,
        "sentence": f"{text.capital(sentence)}.",
        "number": f"{finding.number:,} times" if finding.number > 1 else "once",
        "source": _excerpt(finding, report),
    }


def _excerpt(finding: CheckFinding, report: CheckReport) -> list[ExcerptLine]:
    """The lines that a finding names, each with what was done there, and those around them."""
    lines = (report.source or "").splitlines()
    done: dict[int, list[str]] = {}
    for one in finding.actions:
        if one.file == report.file and one.line is not None and 1 <= one.line <= len(lines):
            told = f"{one.what} by thread {one.thread} of block {one.block}"
            done.setdefault(one.line, []).append(told)
    shown = sorted(
        {
            number
            for line in done
            for number in range(max(1, line - CONTEXT), min(len(lines), line + CONTEXT) + 1)
        }
    )
    found, before = list[ExcerptLine](), None
    for number in shown:
        if before is not None and number > before + 1:
            left = text.many(number - before - 1, "line")
            found.append(ExcerptLine(number=None, code=escape(f"⋯ {left}")))
        why = "; ".join(done.get(number, ()))
        code = highlighted(lines[number - 1], report.file)
        found.append(ExcerptLine(number=number, code=code, why=why, is_hot=number in done))
        before = number
    return found


_TOOLS = {
    "memcheck": "accesses out of bounds or misaligned",
    "racecheck": "accesses of two threads without synchronization between them",
    "synccheck": "barriers that some threads never reach, warp masks that name the wrong lanes",
    "initcheck": "reads of memory that was never written",
}


def _tools(report: CheckReport) -> Iterator[tuple[str, str, str]]:
    """Each tool, what it looks for, and the number of its findings or that it did not run."""
    for tool, what in _TOOLS.items():
        number = sum(one.tool == tool for one in report.findings)
        yield tool, what, f"{number:,}" if tool in report.tools or number else "did not run"
