"""The corpus: every launch that the simulator and silicon are tested with.

`CASES` are small, for outputs. `COUNTED` are larger ones of a part of the kernels, for hardware
counters; what they count follows from the generator's seed, except where blocks or warps race
(`RACING`).
"""

from __future__ import annotations

import cases_control
import cases_floats
import cases_integers
import cases_memory
import cases_programs
import cases_warps
from case import Case

_THEMES = (
    cases_memory,
    cases_warps,
    cases_control,
    cases_integers,
    cases_floats,
    cases_programs,
)

CASES: tuple[Case, ...] = tuple(case for theme in _THEMES for case in theme.CASES)
COUNTED: tuple[Case, ...] = tuple(case for theme in _THEMES for case in theme.COUNTED)

# How often a loop turns depends on who comes first.
RACING = frozenset({"cas_product", "spin_lock", "last_block_sums"})


def find(name: str) -> Case:
    """The case of that name."""
    return next(case for case in (*CASES, *COUNTED) if case.name == name)
