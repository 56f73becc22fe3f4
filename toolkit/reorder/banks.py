"""Clocks that reading registers takes: two banks, each of which reads one register per clock.

The rule is stricter than that of the model of an SM (`bank_clocks` of analysis/sm/sm.c, which
has its source), and needs no operand slots, which an order does not choose: an instruction is
dispatched when all its reads are done in as many clocks as the bank with the most of them needs.
The model lets an operand that stands behind others be read a clock or two later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from toolkit.machine_code.instruction import RZ

Operands = tuple[int, int, int, int]  # the registers of an FFMA's three sources, and its result
Reads = tuple[int, int]  # registers of the even bank, and of the odd one


class Banks(NamedTuple):
    """For how many clocks from now each bank is busy."""

    even: int
    odd: int

    def later(self, clocks: int) -> Banks:
        return Banks(max(0, self.even - clocks), max(0, self.odd - clocks))


IDLE = Banks(0, 0)


def reads_of(numbers: Iterable[int]) -> Reads:
    """How many registers of each bank are read."""
    distinct = set(numbers) - {RZ}
    odd = sum(number & 1 for number in distinct)
    return len(distinct) - odd, odd


def dispatched(banks: Banks, reads: Reads) -> tuple[int, Banks]:
    """The clocks that an instruction with these reads is late, and the banks after it."""
    even, odd = reads
    most = even if even > odd else odd
    late = 0
    if even and banks.even + even > most:
        late = banks.even + even - most
    if odd and banks.odd + odd > late + most:
        late = banks.odd + odd - most
    return late, Banks(max(banks.even, late) + even, max(banks.odd, late) + odd)
