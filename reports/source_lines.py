"""The text of a line of a source, as tables show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b[\s\w]*\(")
_TEXT_OR_PARENTHESIS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|[()]')


def line_text(source: str | None, number: int) -> str:
    """The text of line `number`, from 1, without the spaces around it; empty past the end.

    A compiler names one of the lines of an `asm` statement for all of its instructions, often
    that of an operand: the text is then the statement's, in one line.
    """
    return _line_texts(source or "").get(number, "")


@lru_cache(maxsize=4)
def _line_texts(source: str) -> Mapping[int, str]:
    lines = enumerate(source.splitlines(), start=1)
    return {number: line.strip() for number, line in lines} | _assembly(source)


def _assembly(source: str) -> dict[int, str]:
    """The text of each `asm` statement of several lines, for all of its lines but the first."""
    found = dict[int, str]()
    for start in _ASSEMBLY.finditer(source):
        depth, end = 1, start.end()
        for part in _TEXT_OR_PARENTHESIS.finditer(source, start.end()):
            depth += (part[0] == "(") - (part[0] == ")")
            end = part.end()
            if depth == 0:
                break
        first = source.count("\n", 0, start.start()) + 1
        statement = " ".join(source[start.start() : end].split())
        last = first + source.count("\n", start.start(), end)
        found.update(dict.fromkeys(range(first + 1, last + 1), statement))
    return found
