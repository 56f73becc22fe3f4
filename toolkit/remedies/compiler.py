"""Edits of the compiler's options: FP32 functions with fewer instructions and larger errors."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.records.counters import InstructionCounts
from analysis.timing.predicted import Effect
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import Facts

# Scaling of subnormal numbers, and steps that refine a result, are instructions of other pipes.
EFFECTS = (
    Effect.SPECIAL_PIPE,
    Effect.FP32_PIPE,
    Effect.LOGIC_PIPE,
    Effect.OTHER_INSTRUCTIONS,
    Effect.DEPENDENCES,
)
LEAST_SPECIAL = 0.02  # of the executed instructions
OPTIONS = {  # the smaller change first
    "-ftz=true": "FP32 functions without subnormal numbers",
    "-use_fast_math": "approximate FP32 functions and division, without subnormal numbers",
}


def fast(facts: Facts) -> Iterator[Edit]:
    """Options for kernels that execute instructions of the special-function unit."""
    of = facts.execution.instructions
    special = sum(one.executed for one in of if _is_special(one))
    if special < LEAST_SPECIAL * sum(one.executed for one in of) or not special:
        return
    for option, what in OPTIONS.items():
        yield Edit(
            effect=Effect.SPECIAL_PIPE,
            lines=facts.charged_lines(_is_special),
            title=f"compile with {option}: {what}",
            compiler_options=(option,),
            may_round=True,
        )


def _is_special(one: InstructionCounts) -> bool:
    return one.opcode == "MUFU"
