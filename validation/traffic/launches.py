"""The launches whose traffic is held to hardware: every kernel at a small and a large matrix."""

from __future__ import annotations

from validation.timing.timed_launches import TIMED, TRAFFIC

# 4 MiB, which L2 holds, and 64 MiB, which it does not.
SIDES = ("1024", "4096")
LAUNCHES = tuple(
    (one, case)
    for one in TIMED
    for case in one.cases
    if case.file == TRAFFIC and case.name.endswith(SIDES)
)
