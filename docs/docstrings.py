"""Docstrings for Sphinx: their Markdown tables and bars, as reStructuredText.

What else they are made of (paragraphs, lists, examples, `code`) means the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")  # between the head of a table and its body
CODE_OR_BAR = re.compile(r"(`[^`]*`)|\|")


def restructured(lines: Iterable[str]) -> list[str]:
    """The same docstring without what only Markdown knows."""
    return [
        out
        for is_row, part in groupby(lines, key=_is_row)
        for out in (_table(list(part)) if is_row else map(_without_bars, part))
    ]


def _is_row(line: str) -> bool:
    text = line.strip()
    return len(text) > 1 and text.startswith("|") and text.endswith("|")


def _without_bars(line: str) -> str:
    """A bar starts a substitution in reStructuredText; in code and examples it is one."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    return CODE_OR_BAR.sub(lambda found: found[1] or r"\|", line)


def _table(rows: Sequence[str]) -> Iterator[str]:
    indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
    yield from (f"{indent}.. list-table::", f"{indent}   :header-rows: 1", "")
    for row in rows:
        if not RULE.fullmatch(row.strip()):
            first, *others = (cell.strip() for cell in row.strip().strip("|").split("|"))
            yield f"{indent}   * - {_escaped(first)}"
            yield from (f"{indent}     - {_escaped(cell)}" for cell in others)
    yield ""


def _escaped(cell: str) -> str:
    return cell.replace("*", r"\*")
