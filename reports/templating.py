"""The pages' templates."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[kMGTP]?FLOP/s|[kMG]?B)(?!\w))")


def unbroken(sentence: str) -> str:
    """The sentence, with numbers that stay on one line with their units."""
    return _NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", sentence)


@cache
def _environment() -> Environment:
    """Environment of all templates: those which others import are compiled once."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,  # for every name; jinja2's select_autoescape would skip ".j2"
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = unbroken
    return environment


def template(name: str) -> Template:
    return _environment().get_template(name)
