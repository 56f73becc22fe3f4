"""Sums of counters over the instructions of a launch."""

import random
from dataclasses import replace
from typing import get_args

from analysis.records.counters import (
    ALL_COUNTERS,
    InstructionCounts,
    MemoryAction,
    MemorySpace,
    totals,
)

TEXTS = (
    "FFMA R1, R2, R3, R4", "DADD R0, R2, R4", "HADD2 R0, R1, R2", "HFMA2.BF16_V2 R0, R1, R2, R3",
    "HMMA.16816.F32 R4, R8, R12, R4", "HMMA.1688.F32 R4, R8, R12, R4", "BRA P1, 0x100",
    "LDG.E R0, [R2.64]", "IADD3 R0, R1, R2, R3",
)  # fmt: skip
COUNTS = (
    "executed", "threads", "predicated", "requests", "sectors", "wavefronts", "conflict_free",
    "ideal", "taken", "divergent", "reissued", "reissued_threads", "refused",
)  # fmt: skip


def instructions(number):
    draw = random.Random(5)
    for address in range(number):
        text = draw.choice(TEXTS)
        of_memory = text.startswith("LDG")
        yield InstructionCounts(
            address=16 * address,
            opcode=text.partition(" ")[0].partition(".")[0],
            text=text,
            file=None,
            line=None,
            space=draw.choice(get_args(MemorySpace)) if of_memory else None,
            action=draw.choice(get_args(MemoryAction)) if of_memory else None,
            bytes_per_lane=draw.choice((4, 16)),
            **{name: draw.randrange(1000) for name in COUNTS},
        )


def test_counters_are_the_sums_over_instructions_one_by_one():
    listed = list(instructions(400))
    found = totals(listed)
    assert found == {name: sum(map(ALL_COUNTERS[name].of, listed)) for name in found}
    assert sum(found.values()) > 0
    twice = [replace(one, **{name: 2 * getattr(one, name) for name in COUNTS}) for one in listed]
    assert totals(twice) == {name: 2 * count for name, count in found.items()}
