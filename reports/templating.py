"""The pages' templates."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,  # for every name; jinja2's select_autoescape would skip ".j2"
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
