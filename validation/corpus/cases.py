"""The corpus: every launch that the simulator and silicon are tested with.

`CASES` are small, for outputs. `COUNTED` are larger ones of a part of the kernels, for hardware
counters; what they count follows from the seed of their input, except where threads race
(`RACING`).
"""

from __future__ import annotations

from validation.corpus import (
    cases_bulk,
    cases_control,
    cases_floats,
    cases_integers,
    cases_memory,
    cases_warps,
)
from validation.corpus.case import Case

_THEMES = (
    cases_memory,
    cases_warps,
    cases_control,
    cases_integers,
    cases_floats,
    cases_bulk,
)

CASES: tuple[Case, ...] = tuple(case for theme in _THEMES for case in theme.CASES)
COUNTED: tuple[Case, ...] = tuple(case for theme in _THEMES for case in theme.COUNTED)

# Kernels in which the number of turns of a loop depends on who comes first. Additions of floats
# and of 64 bits in shared memory are such loops in machine code.
RACING = frozenset({"cas_product", "spin_lock", "histogram_weighted", "shared_atomics"})


def find(name: str) -> Case:
    """The case of that name."""
    return next(case for case in (*CASES, *COUNTED) if case.name == name)
