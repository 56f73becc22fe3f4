"""The list of supported opcodes, from the registry of semantics.

python -m docs.opcodes > docs/opcodes.md
"""

from __future__ import annotations

import re
import sys

from toolkit.sass.isa import REGISTRY, Semantics

_HEAD = """# Supported opcodes

What the simulator executes on every architecture, generated from the registry of semantics
(`toolkit/sass/isa`) by `python -m docs.opcodes`. An opcode or modifier that is not listed
stops a simulation with its name, its SASS text and its source line. Opcodes that
begin with U run on the uniform datapath.
"""


_SHAPE = re.compile(r"64x\d+x(\d+)")  # of a warpgroup's product; N is a multiple of 8 up to 256


def opcode_list() -> str:
    """The list as Markdown: a table for each family."""
    families: dict[str, list[Semantics]] = {}
    for meaning in REGISTRY.values():
        families.setdefault(meaning.lower.__module__.rpartition(".")[2], []).append(meaning)
    tables = [_table(family, families[family]) for family in sorted(families)]
    return "\n".join([_HEAD, *tables])


def _table(family: str, meanings: list[Semantics]) -> str:
    lines = [f"## {family.capitalize()}", "", "| opcode | modifiers |", "|---|---|"]
    for meaning in sorted(meanings, key=lambda meaning: meaning.opcode):
        shown = {_SHAPE.sub(r"64xNx\1", name) for name in meaning.modifiers}
        modifiers = " ".join(sorted(shown)) or "–"
        lines.append(f"| `{meaning.opcode}` | {modifiers} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(opcode_list())
