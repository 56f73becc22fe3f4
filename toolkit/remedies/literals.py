"""Edit that removes accidental FP64: literals such as 0.5 become 0.5f."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from analysis.timing.predicted import Effect
from toolkit.machine_code.source_tree import KernelSource, line_of
from toolkit.remedies.edit import Edit, Replacement
from toolkit.remedies.facts import Facts

DOUBLE = re.compile(r"(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
EFFECTS = (
    Effect.FP64_PIPE,
    Effect.SPECIAL_PIPE,
    Effect.DEPENDENCES,
    Effect.OTHER_INSTRUCTIONS,
)


def single(facts: Facts) -> Iterator[Edit]:
    """All literals of FP64 in the kernel and in macros that it uses.

    Only where FP64 is executed, and the kernel names no variable of it.
    """
    source = facts.source
    if not facts.double_lines or source.names_double:
        return
    found = [
        one
        for one in source.nodes("number_literal", source.body)
        if DOUBLE.fullmatch(source.written(one))
    ]
    found += _of_macros(source)
    if not found:
        return
    lines = tuple(sorted({line_of(one) for one in found}))
    written = list(dict.fromkeys(source.written(one) for one in found))
    more = ", ..." if len(written) > 2 else ""
    yield Edit(
        effect=Effect.FP64_PIPE,
        lines=lines,
        title=f"{', '.join(f'{one}f' for one in written[:2])}{more} instead of FP64 literals",
        replacements=tuple(
            Replacement(start=one.end_byte, end=one.end_byte, text="f") for one in found
        ),
        may_round=True,
    )


def _of_macros(source: KernelSource) -> list[Node]:
    """Values of macros that are a literal of FP64 and that the kernel uses."""
    found = []
    for macro in source.nodes("preproc_def", source.root):
        name, value = (macro.child_by_field_name(field) for field in ("name", "value"))
        if name is None or value is None or not source.uses(source.written(name)):
            continue
        if DOUBLE.fullmatch(source.written(value)):
            found.append(value)
    return found
