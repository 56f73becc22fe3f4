"""Edit that removes accidental FP64: literals such as 0.5 become 0.5f."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.timing.predicted import Effect
from toolkit.machine_code.source_tree import line_of
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
    """All literals of FP64 in lines that execute FP64, if the kernel names no variable of it."""
    source = facts.source
    if not facts.double_lines or source.names_double:
        return
    found = [
        one
        for one in source.nodes("number_literal", source.body)
        if DOUBLE.fullmatch(source.written(one))
    ]
    if not found:
        return
    lines = tuple(sorted({line_of(one) for one in found}))
    written = list(dict.fromkeys(source.written(one) for one in found))
    more = ", ..." if len(written) > 2 else ""
    yield Edit(
        effect=facts.worst(EFFECTS),
        lines=lines,
        title=f"{', '.join(f'{one}f' for one in written[:2])}{more} instead of FP64 literals",
        replacements=tuple(
            Replacement(start=one.end_byte, end=one.end_byte, text="f") for one in found
        ),
        may_round=True,
    )
