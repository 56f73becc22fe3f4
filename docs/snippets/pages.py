"""The pages whose commands and snippets are executed, and the blocks that stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_SNIPPETS = ROOT / "docs" / "decisions"  # records of their day

EXECUTED = ("console", "bash", "python", "pycon")
# Blocks of these are for reading; a `file` remark still writes them. Any other is refused, so that
# a command cannot pass by as `sh`, `py` or nothing at all.
SHOWN = ("text", "cuda", "json", "yaml", "toml", "sass")
DIRECTIVES = (
    "{include}",
    "{literalinclude}",
    "{toctree}",
    "{figure}",
    "{image}",
    "{math}",
    "{eval-rst}",
)

REMARK = re.compile(r"<!--\s*([a-z][a-z ]*):\s*(.*?)\s*-->", re.DOTALL)
REMARKS = ("needs", "not executed", "file", "copy")
COPY = re.compile(r"(\S+) as (\S+)")
HARDWARE = ("gpu",)


class PageError(Exception):
    """A page breaks the rules of docs/snippets/README.md, or a block of it fails."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page, with what the remarks right above say of it."""

    where: str  # page:line of its first line of text, as editors open it
    language: str
    text: str
    line: int  # of the page, from 0, at which its text begins
    indent: str
    needs: str | None = None
    reason_not_executed: str | None = None
    file: str | None = None
    copy: tuple[str, str] | None = None

    @property
    def is_executed(self) -> bool:
        return self.language in EXECUTED and self.file is None and self.reason_not_executed is None


def pages() -> list[Path]:
    """README.md and every page of docs/ but the records of decisions."""
    inside = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in inside if WITHOUT_SNIPPETS not in p.parents)]


def name_of(page: Path) -> str:
    """The page as a reader of the repository calls it."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


@cache
def parsed(text: str) -> tuple[Token, ...]:
    """The Markdown tokens of a page, tables included. Do not change them: callers share them."""
    return tuple(MarkdownIt().enable("table").parse(text))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page from top to bottom; PageError for one that breaks the rules."""
    text = page.read_text(encoding="utf-8")
    tokens = parsed(text)
    fences = (index for index, token in enumerate(tokens) if token.type == "fence")
    lines = text.splitlines()
    return [_block(name_of(page), lines, tokens[i], _remarks_above(tokens, i)) for i in fences]


def _remarks_above(tokens: Sequence[Token], index: int) -> dict[str, str]:
    """The remarks in the HTML comments that stand right above a block."""

    def comments() -> Iterator[str]:
        for token in reversed(tokens[:index]):
            if token.type != "html_block":
                return
            yield token.content

    return dict(found for text in comments() for found in REMARK.findall(text))


def _block(page: str, lines: Sequence[str], fence: Token, remarks: dict[str, str]) -> Block:
    assert fence.map is not None
    opening = lines[fence.map[0]]
    language, *_ = fence.info.split() or [""]
    where = f"{page}:{fence.map[0] + 2}"
    _check(where, language, fence.content, remarks)
    return Block(
        where=where,
        language=language,
        text=fence.content,
        line=fence.map[0] + 1,
        indent=opening[: len(opening) - len(opening.lstrip())],
        needs=remarks.get("needs"),
        reason_not_executed=remarks.get("not executed"),
        file=remarks.get("file"),
        copy=_copy(where, remarks["copy"]) if "copy" in remarks else None,
    )


def _copy(where: str, remark: str) -> tuple[str, str]:
    found = COPY.fullmatch(remark)
    if not found or not (ROOT / found[1]).is_file():
        raise PageError(f"{where}: copy: {remark!r} is not 'FILE OF THE REPOSITORY as NAME'")
    return found[1], found[2]


def _check(where: str, language: str, text: str, remarks: dict[str, str]) -> None:
    known = (*EXECUTED, *SHOWN, *DIRECTIVES)
    if language not in known:
        raise PageError(f"{where}: a block of {language!r}; use one of {', '.join(known)}")
    if language in DIRECTIVES and "```" in text:
        raise PageError(f"{where}: a block inside of {language} is not seen; use ::: around it")
    for remark, value in remarks.items():
        if remark not in REMARKS or not value:
            raise PageError(f"{where}: <!-- {remark}: {value} -->; use {', '.join(REMARKS)}: …")
    if remarks.get("needs", HARDWARE[0]) not in HARDWARE:
        raise PageError(f"{where}: needs: {remarks['needs']!r} is not of {', '.join(HARDWARE)}")
    if ".." in PurePosixPath(remarks.get("file", "")).parts:
        raise PageError(f"{where}: file: {remarks['file']!r} is outside of the page's folder")
