"""Outcomes of following a page: each answer that it shows beside the actual answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.snippets.exchanges import PRINTED, PROMPT, Exchange, exchanges, matches, printed_lines
from docs.snippets.interpreter import HEAD
from docs.snippets.pages import Block, PageError, blocks
from docs.snippets.session import Session

ASKS_FOR_STATUS = "echo $?"  # the command before it may fail: the page shows how


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One answer: as the page shows it, and as it came."""

    where: str
    source: str
    shown: tuple[str, ...]
    printed: tuple[str, ...]
    line: int | None  # of the page, from 0, at which the answer stands; None: between the lines
    indent: str

    @property
    def is_as_shown(self) -> bool:
        return matches(self.shown, self.printed)

    def __str__(self) -> str:
        parts = (f"{self.where}: {self.source}", "shown:", *self.shown, "printed:", *self.printed)
        return "\n".join(parts)


def outcomes(page: Path, *, gpu: bool = False) -> list[Outcome]:
    """Follow a page; PageError where a block fails. Blocks that need a GPU are left out without."""
    with tempfile.TemporaryDirectory() as scratch, Session(Path(scratch), gpu=gpu) as session:
        return [outcome for block in blocks(page) for outcome in _follow(block, session, gpu)]


def needs_gpu(page: Path) -> bool:
    """True if some blocks of a page need a GPU."""
    return any(block.needs == "gpu" for block in blocks(page))


def _follow(block: Block, session: Session, gpu: bool) -> Iterator[Outcome]:
    session.lay_out(block)
    if block.is_executed and (gpu or block.needs != "gpu"):
        yield from FOLLOW[block.language](block, session)


def _console(block: Block, session: Session) -> Iterator[Outcome]:
    asked = _asked(block)
    sources = [exchange.source for exchange in asked]
    answers = session.commands(sources, block.where, gpu=block.needs == "gpu")
    for exchange, (printed, status), after in zip(asked, answers, [*sources[1:], ""], strict=True):
        if status and after != ASKS_FOR_STATUS:
            raise PageError(f"{block.where}: exit status {status} of {exchange.source}\n{printed}")
        yield _outcome(block, exchange, printed)


def _pycon(block: Block, session: Session) -> Iterator[Outcome]:
    raised = HEAD.splitlines()[0]
    for exchange in _asked(block):
        code = exchange.source + "\n"  # a compound statement ends with a blank line
        printed = session.python(code, block.where, mode="single")
        if exchange.answer and raised in printed and raised not in exchange.answer:
            raise PageError(f"{block.where}: {exchange.source} raised an error:\n{printed}")
        yield _outcome(block, exchange, printed)


def _asked(block: Block) -> list[Exchange]:
    asked = exchanges(block.language, block.text)
    if not asked or asked[0].line:
        prompt = PROMPT[block.language]
        raise PageError(f"{block.where}: a {block.language} block begins with {prompt!r}")
    return asked


def _bash(block: Block, session: Session) -> Iterator[Outcome]:
    session.script(block.text, block.where, gpu=block.needs == "gpu")
    return iter(())


def _python(block: Block, session: Session) -> Iterator[Outcome]:
    """A plain block shows no output, but may say what a line prints in a comment behind it."""
    printed = session.python(block.text, block.where)
    said = tuple(text.rstrip() for text in PRINTED.findall(block.text))
    if said:
        yield Outcome(
            where=block.where,
            source=block.text,
            shown=said,
            printed=printed_lines(printed),
            line=None,
            indent=block.indent,
        )


def _outcome(block: Block, exchange: Exchange, printed: str) -> Outcome:
    page, line = block.where.rsplit(":", 1)
    return Outcome(
        where=f"{page}:{int(line) + exchange.line}",
        source=exchange.source,
        shown=exchange.answer,
        printed=printed_lines(printed),
        line=block.line + exchange.answer_line,
        indent=block.indent,
    )


FOLLOW: dict[str, Callable[[Block, Session], Iterator[Outcome]]] = {
    "console": _console,
    "pycon": _pycon,
    "bash": _bash,
    "python": _python,
}
