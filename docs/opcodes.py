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
stops a simulation with its name, its SASS text and its source line. A dot means that compiled code
for the architecture may hold the opcode. Opcodes that begin with U run on the uniform datapath.
"""


def opcode_list() -> str:
    """The list as Markdown: a table for each family."""
    families: dict[str, list[Semantics]] = {}
    for meaning in REGISTRY.values():
        families.setdefault(meaning.family, []).append(meaning)
    tables = [_table(family, families[family]) for family in sorted(families)]
    return "\n".join([_HEAD, *tables])


def _table(family: str, meanings: list[Semantics]) -> str:
    names = " | ".join(f"sm_{number}" for number in ARCHITECTURES)
    lines = [
        f"## {family.capitalize()}",
        "",
        f"| opcode | {names} | modifiers |",
        f"|---|{':-:|' * len(ARCHITECTURES)}---|",
    ]
    for meaning in sorted(meanings, key=lambda meaning: meaning.opcode):
        dots = " | ".join(
            "●" if meaning.since <= number <= meaning.until else " " for number in ARCHITECTURES
        )
        modifiers = " ".join(sorted(meaning.modifiers)) or "–"
        lines.append(f"| `{meaning.opcode}` | {dots} | {modifiers} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(opcode_list())
