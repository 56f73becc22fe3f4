"""Exchanges of a page: the text typed at a prompt, the answer shown, and whether it is right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

ANY = "…"  # alone on a line: any lines; inside of one: any text

PROMPT = {"console": "$ ", "pycon": ">>> "}
CONTINUATION = re.compile(r"\.\.\.( |$)")  # of Python's prompt
# A printed value in a plain Python block: `print(value)  # what it prints: why`.
PRINTED = re.compile(r"^\s*print\(.*\)  # ([^:\n]+)", re.MULTILINE)
# Messages of toolkit.cli.progress.
REMAINING_TIME = re.compile(
    r"[\d,]+ (of [\d,]+ blocks are left|blocks take).* min: stop with Ctrl-C"
    r"|the remaining time is unknown until"
)


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A command or statement, and the lines that the page shows as its answer."""

    line: int  # of the block's text, from 0, at which it stands
    source: str
    answer: tuple[str, ...]  # without blank lines at its end
    answer_line: int


def exchanges(language: str, text: str) -> list[Exchange]:
    """The exchanges of a console or pycon block; lines above the first prompt are no exchange."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith(PROMPT[language])]
    ends = [*starts[1:], len(lines)]
    return [_exchange(language, lines, *ends_at) for ends_at in zip(starts, ends, strict=True)]


def _exchange(language: str, lines: Sequence[str], start: int, end: int) -> Exchange:
    source = [lines[start].removeprefix(PROMPT[language])]
    at = start + 1
    while at < end and _continues(language, source[-1], lines[at]):
        source.append(lines[at][4:] if language == "pycon" else lines[at])
        at += 1
    shown = _without_blank_end(lines[at:end])
    return Exchange(line=start, source="\n".join(source), answer=shown, answer_line=at)


def _continues(language: str, before: str, line: str) -> bool:
    if language == "console":
        return before.endswith("\\")
    return CONTINUATION.match(line) is not None


def printed_lines(text: str) -> tuple[str, ...]:
    """As a page shows it: without spaces at the ends of lines and blank lines at the end.

    Messages on the remaining time are left out: they depend on how busy the machine is.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    return _without_blank_end([line for line in lines if not REMAINING_TIME.match(line)])


def _without_blank_end(lines: Sequence[str]) -> tuple[str, ...]:
    filled = [i for i, line in enumerate(lines) if line.strip()]
    return tuple(lines[: filled[-1] + 1]) if filled else ()


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """True if a page shows the printed text, up to the parts that it leaves out with `…`."""
    pattern = "".join(map(_pattern, shown))
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)) is not None


def _pattern(shown: str) -> str:
    if shown.strip() == ANY:
        return r"(?:.*\n)*?"
    return ".*?".join(map(re.escape, shown.rstrip().split(ANY))) + r"\n"


def left_out_again(shown: Sequence[str], printed: Sequence[str]) -> tuple[str, ...]:
    """Printed text without the parts that `shown` leaves out."""
    # a line that leaves text out stands for the first one that it fits
    whole = [one if one.strip() == ANY else _first_fit(one, printed) for one in shown]
    lines: list[str] = []
    for tag, first, last, came_first, came_last in SequenceMatcher(
        None, whole, printed, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            lines += shown[first:last]
        else:
            lines += _left_out(shown[first:last], printed[came_first:came_last])
    return tuple(lines)


def _first_fit(shown: str, printed: Sequence[str]) -> str:
    return next((line for line in printed if matches([shown], [line])), shown)


def _left_out(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """As many lines as `shown` has around its one `…`, else all: which are meant is not clear."""
    places = [i for i, line in enumerate(shown) if line.strip() == ANY]
    if len(places) != 1:
        return list(printed)
    (before,) = places
    end = len(printed) - (len(shown) - 1 - before)
    return [*printed[:before], ANY, *(printed[end:] if before <= end else ())]
