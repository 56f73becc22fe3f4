"""Source lines of a changed counter, matched even if an edit moved them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from analysis.records.profile import LineCounters


@dataclass(frozen=True, kw_only=True)
class LineChange:
    """Contribution of one source line to a changed counter; None if a side lacks the line."""

    file: str
    text: str
    line_before: int | None
    line_after: int | None
    before: int | None
    after: int | None

    @property
    def difference(self) -> int:
        return (self.after or 0) - (self.before or 0)


def line_changes(
    counter: str, before: Sequence[LineCounters], after: Sequence[LineCounters]
) -> tuple[LineChange, ...]:
    """Lines with different counts of `counter`, the largest difference first."""
    changes = (
        _change(counter, ours, theirs)
        for ours, theirs in aligned(before, after)
        if _count(counter, ours) != _count(counter, theirs)
    )
    return tuple(sorted(changes, key=lambda one: -abs(one.difference)))


def _count(counter: str, line: LineCounters | None) -> int:
    return line.counters.get(counter, 0) if line else 0


def _change(counter: str, before: LineCounters | None, after: LineCounters | None) -> LineChange:
    known = after or before
    assert known is not None
    return LineChange(
        file=known.file,
        text=known.text,
        line_before=before.line if before else None,
        line_after=after.line if after else None,
        before=_count(counter, before) if before else None,
        after=_count(counter, after) if after else None,
    )


def aligned(
    before: Sequence[LineCounters], after: Sequence[LineCounters]
) -> Iterator[tuple[LineCounters | None, LineCounters | None]]:
    """Pairs of lines with the same text, even if an edit above has moved them.

    Lines between such pairs are matched in order if both sides have equally many.
    """
    ours, theirs = ([_text_of(line) for line in lines] for lines in (before, after))
    matcher = SequenceMatcher(a=ours, b=theirs, autojunk=False)
    for tag, start, stop, other_start, other_stop in matcher.get_opcodes():
        if tag == "equal" or stop - start == other_stop - other_start:
            yield from zip(before[start:stop], after[other_start:other_stop], strict=True)
        else:
            yield from ((line, None) for line in before[start:stop])
            yield from ((None, line) for line in after[other_start:other_stop])


def _text_of(line: LineCounters) -> str:
    return line.text.strip() or f"{line.file}:{line.line}"
