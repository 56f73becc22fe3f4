"""Cost of register bank conflicts: FFMAs with chosen operands, with and without reuse.

The banks are register number mod 2. A pattern is a few FFMAs, repeated; each operand is
written "e0" (register 0 of the even bank), "o3" (register 3 of the odd bank) or "z" (RZ), with
"!" behind it for the reuse bit. The results do not matter, so dependencies are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from analysis.errors import ToolkitError
from toolkit.microbenchmarks.bench import SCHEDULERS, Bench
from toolkit.microbenchmarks.probe import MULTIPLY_ADD, Probe, interleaved
from toolkit.microbenchmarks.record import Median, each, values
from toolkit.microbenchmarks.words import FFMA, RZ, banks, ffma, replaced, written

COUNT = 240  # divisible by the length of every pattern
CHAINS = 40  # registers that may be named: about 20 of each bank
EACH_BANK = 12
WARPS_PER_SCHEDULER = (1, 2, 4, 8)


def _columns(reuse: str) -> list[str]:
    """Eight rows by a column of the even bank, then by one of the odd: banks busy in turn."""
    found = []
    for column, first in (("e", 0), ("o", 4)):
        for n in range(8):
            row, other = ("e", "o") if n % 2 == 0 else ("o", "e")
            total = f"{other}{first + n // 2}"
            kept = reuse if n < 7 else ""  # another column follows the last row
            found.append(f"{total} {row}{12 + n // 2} {column}16{kept} {total}")
    return found


def _four(instruction: str) -> list[str]:
    """The instruction with the numbers 0 to 3 for `#`."""
    return [instruction.replace("#", str(number)) for number in range(4)]


# (name, instructions): destination, then the three sources
PATTERNS: dict[str, Sequence[str]] = {
    "one_register": ["e0 e1 e1 e1", "e2 e1 e1 e1", "e4 e1 e1 e1"],
    "zero_operands": ["e0 z z z", "e2 z z z", "e4 z z z"],
    "even_even_even": _four("e# e6 e8 e10"),
    "odd_odd_odd": _four("o# o6 o8 o10"),
    "even_even_odd": _four("e# e6 e8 o10"),
    "even_odd_even": _four("e# e6 o8 e10"),
    "odd_even_even": _four("e# o6 e8 e10"),
    "odd_odd_even": _four("e# o6 o8 e10"),
    "even_odd_odd": _four("e# e6 o8 o10"),
    "even_odd_zero": _four("e# e6 o8 z"),
    "even_even_zero": _four("e# e6 e8 z"),
    "even_even_twice": _four("e# e6 e6 e8"),
    "even_zero_zero": _four("e# e6 z z"),
    "odd_destination_even_sources": _four("o# e6 e8 e10"),
    # banks in turn: what a port averages over neighbours
    "turns_eee_ooo": ["e0 e6 e8 e10", "o0 o6 o8 o10"],
    "turns_eeo_ooe": ["e0 e6 e8 o10", "o0 o6 o8 e10"],
    "turns_eee_zzz": ["e0 e6 e8 e10", "e1 z z z"],
    "turns_eee_zzz_zzz": ["e0 e6 e8 e10", "e1 z z z", "e2 z z z"],
    "turns_eee_ozz": ["e0 e6 e8 e10", "e1 o6 z z"],
    "turns_eee_ooz": ["e0 e6 e8 e10", "e1 o6 o8 z"],
    "turns_eee_eee_ooo_ooo": ["e0 e6 e8 e10", "e1 e6 e8 e10", "o0 o6 o8 o10", "o1 o6 o8 o10"],
    "turns_eez_ooz": ["e0 e6 e8 z", "e1 o6 o8 z"],
    "turns_eez_eez_ooz_ooz": ["e0 e6 e8 z", "e1 e6 e9 z", "e2 o6 o8 z", "e3 o6 o9 z"],
    "turns_3eee_3ooo": [f"{b}{d} {b}6 {b}8 {b}10" for b in "eo" for d in (0, 1, 2)],
    # the reuse bit: the operand of that slot is kept for the next instruction
    "reuse_a_eee": _four("e# e6! e8 e10"),
    "reuse_ab_eee": _four("e# e6! e8! e10"),
    "reuse_abc_eee": _four("e# e6! e8! e10!"),
    "reuse_b_eeo": _four("e# e6 e8! o10"),
    "reuse_a_eoo": _four("e# e6! o8 o10"),
    "reuse_other_slot_eee": ["e0 e6! e8 e10", "e1 e8 e6 e10"],
    "reuse_half_eee": ["e0 e6! e8! e10", "e1 e6 e8 e11"],
    # for how long it is kept, and what is read instead of it
    "kept_next": ["e0 e6! e8 e10", "e2 e6 e8 e10", "e1 z z z", "e1 z z z"],
    "kept_pair": ["e0 e6! e8! e10", "e1 e6 e8 e11", "e2 z z z", "e2 z z z"],
    "kept_over_zero": ["e0 e6! e8 e10", "e1 z z z", "e2 e6 e8 e10", "e1 z z z"],
    "kept_over_odd": ["e0 e6! e8 e10", "e1 o7 z z", "e2 e6 e8 e10", "e1 o7 z z"],
    "kept_over_even": ["e0 e6! e8 e10", "e1 e7 z z", "e2 e6 e8 e10", "e1 e7 z z"],
    "kept_over_itself": ["e0 e6! e8 e10", "e1 e6 z z", "e2 e6 e8 e10", "e1 e6 z z"],
    "kept_over_other_slot": ["e0 e6! e8 e10", "e1 z e7 z", "e2 e6 e8 e10", "e1 z e7 z"],
    "kept_over_two": [
        "e0 e6! e8 e10",
        "e1 z z z",
        "e1 z z z",
        "e2 e6 e8 e10",
        "e1 e7 e9 e10",
    ],
    "kept_again": ["e0 e6! z e8", "e1 e6! e9 e0", "o0 e6 o9 o0"],
    "kept_again_apart": ["e0 e6! z o7", "e1 e6! z e0", "o0 e6 o9 o0"],
    "kept_from_conflict": ["e0 e6! z e0", "o0 e6 o9 o0"],
    # an outer product as in a product of matrices: a kept, b and the sum change
    "outer_product_conflict": [f"e{d} e6! e{8 + d} e{d}" for d in (0, 1, 2, 3)],
    "outer_product_clean": [f"e{d} e6! o{8 + d} e{d}" for d in (0, 1, 2, 3)],
    "outer_product_mixed": [
        "e0 e6! o8 e0",
        "o0 e6 o9! o0",
        "o1 e7! o9 o1",
        "e1 e7 o8! e1",
    ],
    "outer_product_reads": ["e0 e6 z e0", "o0 z o9 o0", "o1 e7 z o1", "e1 z o8 e1"],
    "outer_product_columns": [
        *(f"{x}0 {x}6 e8! {x}0" for x in "eo"),
        *("e1 e7 e8! o1", "o1 o7 e8 o1"),
        *(f"{x}0 {x}6 o8! {x}0" for x in "eo"),
        *("e1 e7 o8! o1", "o1 o7 o8 o1"),
    ],
    # products of columns and rows, as compilers order them
    "columns_read": _columns(""),
    "columns_kept": _columns("!"),
    "accumulate_eeo": [f"o{d} e6 e8 o{d}" for d in (0, 1, 2, 3, 4, 5)],
    "accumulate_eoe": [f"e{d} e6 o8 e{d}" for d in (0, 1, 2, 3, 4, 5)],
}

_OPERAND = re.compile(r"(?:([eo])(\d+)|z)(!?)")


def encoded(instruction: str, even: Sequence[int], odd: Sequence[int]) -> int:
    """The word of an FFMA of a pattern, with the registers of each bank."""
    registers, reuse = [], 0
    for slot, operand in enumerate(instruction.split()):
        match = _OPERAND.fullmatch(operand)
        assert match is not None, operand
        bank = even if match[1] == "e" else odd
        registers.append(bank[int(match[2])] if match[1] else RZ)
        if match[3]:
            reuse |= 1 << slot - 1
    d, a, b, c = registers
    return ffma(d, a, b, c, reuse)


def patched(words: list[int], pattern: Sequence[str]) -> list[int]:
    """The kernel's FFMAs as the pattern says, in the registers that they wrote before."""
    even, odd = banks(written(words, FFMA))
    if min(len(even), len(odd)) < EACH_BANK:
        raise ToolkitError(f"{len(even)} even and {len(odd)} odd registers are too few")
    code = [encoded(instruction, even, odd) for instruction in pattern]
    return replaced(words, FFMA, lambda number, word: code[number % len(code)])


def _probe(name: str, pattern: Sequence[str]) -> Probe:
    base = interleaved(f"banks_{name}", [MULTIPLY_ADD], chains=CHAINS, count=COUNT)
    return replace(base, patch=lambda words: patched(words, pattern))


BANKS = {name: _probe(name, pattern) for name, pattern in PATTERNS.items()}
PROBES = tuple(BANKS.values())


def _measure(bench: Bench, name: str) -> Median:
    found = bench.by_warps(BANKS[name], WARPS_PER_SCHEDULER, schedulers=SCHEDULERS)
    return found[1].with_detail(
        operands=list(PATTERNS[name]), cycles_by_warps_per_scheduler=values(found)
    )


BENCHMARKS = tuple(
    each(
        "ffma_banks_{name}_cycles",
        "cycles per FFMA and scheduler",
        "rewritten FFMAs, 1 warp per scheduler (others: detail)",
        _measure,
        name=tuple(PATTERNS),
    )
)
