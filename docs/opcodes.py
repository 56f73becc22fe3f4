"""The list of supported opcodes, from the registry of semantics.

python -m docs.opcodes > docs/opcodes.md
"""

from __future__ import annotations

import sys

from toolkit.sass.isa import REGISTRY, Semantics

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

_HEAD = """# Supported opcodes

What the simulator executes, per architecture, generated from the registry of semantics
(`toolkit/sass/isa`) by `python -m docs.opcodes`. An opcode or modifier that is not listed
stops a simulation with its name, its SASS text and its source line. Compiled code for the
architectures named, of {names}, may hold the opcode. Opcodes that
begin with U run on the uniform datapath.
"""


def opcode_list() -> str:
    """The list as Markdown: a table for each family."""
    families: dict[str, list[Semantics]] = {}
    for meaning in REGISTRY.values():
        families.setdefault(meaning.family, []).append(meaning)
    tables = [_table(family, families[family]) for family in sorted(families)]
    names = ", ".join(f"sm_{number}" for number in ARCHITECTURES)
    return "\n".join([_HEAD.format(names=names), *tables])


def _table(family: str, meanings: list[Semantics]) -> str:
    lines = [f"## {family.capitalize()}", "", "| opcode | on | modifiers |", "|---|---|---|"]
    for meaning in sorted(meanings, key=lambda meaning: meaning.opcode):
        modifiers = " ".join(sorted(meaning.modifiers)) or "–"
        lines.append(f"| `{meaning.opcode}` | {_where(meaning)} | {modifiers} |")
    return "\n".join([*lines, ""])


def _where(meaning: Semantics) -> str:
    """The architectures of an opcode: "all", "sm_90 and later", "sm_75 to sm_100"."""
    found = [number for number in ARCHITECTURES if meaning.since <= number <= meaning.until]
    if found[-1] != ARCHITECTURES[-1]:
        return f"sm_{found[0]} to sm_{found[-1]}"
    return "all" if found[0] == ARCHITECTURES[0] else f"sm_{found[0]} and later"


if __name__ == "__main__":
    sys.stdout.write(opcode_list())
