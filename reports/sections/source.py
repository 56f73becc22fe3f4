"""Annotated source: the cost of each line of a kernel, and its machine code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.records.profile import LineAccess, Listing
from analysis.records.source_lines import Line, accesses
from reports import ladder, text
from reports.ladder import View
from reports.sections import access


@dataclass(frozen=True, kw_only=True)
class AnnotatedLine:
    """A source line, its part of all warp instructions that were issued (`share`).

    `reasons` say in words why an access costs more than its data needs.
    """

    line: Line
    share: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """One variant at one shape: its listing, its lines that did something, and every count."""

    label: str
    listing: Listing
    lines: tuple[AnnotatedLine, ...]
    executed: tuple[int, ...]
    basis: str


def annotated(view: View, label: str) -> Annotated | None:
    """The annotated source of a variant, None if it was not simulated at that shape."""
    record = view.record(label)
    listing = ladder.listing_of(view.profile, record) if record else None
    simulated = record.simulated if record else None
    if listing is None or simulated is None or len(simulated.executed) != len(listing.lines):
        return None
    return Annotated(
        label=label,
        listing=listing,
        lines=tuple(_lines(listing, simulated.executed, simulated.memory)),
        executed=simulated.executed,
        basis=simulated.basis,
    )


def all_annotated(view: View) -> tuple[Annotated, ...]:
    """The annotated sources of all rungs of a shape, in the order of the ladder."""
    found = (annotated(view, record.label) for record in view.rungs)
    return tuple(one for one in found if one)


def _lines(
    listing: Listing, executed: Sequence[int], memory: Sequence[LineAccess]
) -> Iterator[AnnotatedLine]:
    issued: dict[int, int] = defaultdict(int)
    for line, count in zip(listing.lines, executed, strict=True):
        issued[line] += count
    memory_of: dict[int, list[LineAccess]] = defaultdict(list)
    for one in memory:
        memory_of[listing.lines[one.place]].append(one)
    total = sum(executed)
    for number in sorted(issued):
        if number and issued[number]:
            yield AnnotatedLine(
                line=Line(
                    file=listing.file,
                    number=number,
                    executed=issued[number],
                    accesses=accesses(memory_of[number]),
                ),
                share=issued[number] / total,
                reasons=tuple(_reasons(memory_of[number])),
            )


def _reasons(memory: Sequence[LineAccess]) -> Iterator[str]:
    """One sentence per kind of access; unrolled copies of it say the same."""
    shown: dict[tuple[str, str, int], tuple[LineAccess, str]] = {}
    for one in memory:
        said = access.reason(one, one.first)
        kind = (one.space, one.action, one.bytes_per_lane)
        if said and (kind not in shown or (one.first and shown[kind][0].first is None)):
            shown[kind] = one, said
    yield from dict.fromkeys(said for _, said in shown.values())


# As the page reads it.


def counts_document(found: Sequence[Annotated]) -> dict[str, object]:
    """The counts of one shape as JSON has them, by label.

    A line is [number, issued, share, share in words, sectors / ideal, the wasted part of them,
    conflicts, their part of all wavefronts, reasons].
    """
    return {
        one.label: {
            "listing": one.listing.label,
            "basis": one.basis,
            "lines": [_row(line) for line in one.lines],
            "executed": one.executed,
        }
        for one in found
    }


def listing_document(listing: Listing) -> dict[str, object]:
    """The source and the machine code as JSON has them, the same at every shape."""
    return {
        "label": listing.label,
        "file": listing.file,
        "source": listing.source.splitlines(),
        "sass": listing.sass,
        "lines": listing.lines,
    }


def _row(one: AnnotatedLine) -> list[object]:
    line = one.line
    sectors, ideal = (line.per_request(what, shared=False) for what in ("units", "ideal"))
    conflicts, wavefronts = (line.per_request(what, shared=True) for what in ("excess", "units"))
    return [
        line.number,
        text.count(line.executed),
        round(one.share, 4),
        text.percent(one.share),
        f"{text.average(sectors)} / {text.average(ideal)}" if sectors else "",
        round(1 - (ideal or 0) / sectors, 4) if sectors else 0,
        text.average(conflicts),
        round((conflicts or 0) / wavefronts, 4) if wavefronts else 0.0,
        one.reasons,
    ]


def summary(found: Annotated) -> str:
    """Sentences on the line that executes most instructions, and on lines that waste traffic."""
    hottest = max(found.lines, key=lambda one: one.line.executed, default=None)
    if hottest is None:
        return f"No line of {found.label} was executed."
    wasteful = [str(one.line.number) for one in found.lines if one.reasons]
    called = "No line is uncoalesced or has bank conflicts."
    if wasteful:
        lines = "line" if len(wasteful) == 1 else "lines"
        called = f"Uncoalesced or conflicting: {lines} {text.listing(wasteful)}."
    return (
        f"{text.percent(hottest.share)} of the warp instructions of {found.label} are of "
        f"line {hottest.line.number}. {called}"
    )
