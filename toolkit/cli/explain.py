"""The command `explain`: what a word of the output means."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Annotated

import typer

from toolkit.cli.errors import one_line_errors
from toolkit.cli.options import Json
from toolkit.cli.output import print_json
from toolkit.cli.terminal import out, say

INDENT = 2


def complete_word(incomplete: str) -> list[str]:
    from analysis.records.words import BY_NAME

    return [name for name in BY_NAME if name.startswith(incomplete)]


def explain(
    word: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="A cause, limiter, remedy, stall reason, counter, metric or opcode.",
            show_default="all words",
            autocompletion=complete_word,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a term: a cause, a limiter, a remedy, or a counter of Nsight Compute.

    Without a term, list all terms by group.
    """
    with one_line_errors():
        from analysis.records.words import by_group
        from analysis.records.words import explain as entry_of

        if word:
            found = entry_of(" ".join(word))
            if as_json:
                print_json(asdict(found))
            else:
                say(found.text(out.width))
            return
        groups = by_group()
        if as_json:
            print_json(
                {str(group): [asdict(one) for one in found] for group, found in groups.items()}
            )
            return
        for group, entries in groups.items():
            say(f"{group}", "bold")
            say(_listed([one.word for one in entries]))


def _listed(words: list[str]) -> str:
    indent = " " * INDENT
    return textwrap.fill(
        ", ".join(words),
        width=out.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
