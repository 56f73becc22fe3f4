"""The fields of a 128-bit instruction that this pass reads and writes, beside those of a patch.

Numbers of registers stand in four positions: the result's, and one for each of three sources. Which
source has which position depends on the form of the operands, and is found by comparing them with
what nvdisasm prints.
"""

from __future__ import annotations

from toolkit.machine_code.patching import (
    ALWAYS,
    BARRIERS,
    BARRIERS_BITS,
    NO_BARRIERS,
    OPCODE_BITS,
    REUSE,
    REUSE_BITS,
    STALL,
    STALL_BITS,
    WAIT,
    WAIT_BITS,
    Word,
    field,
    opcode,
    with_field,
)
from toolkit.reorder.banks import Operands

REGISTER_BITS = 8
RESULT = 16
SOURCES = (24, 32, 64)  # in the order of the bits for reuse

MULTIPLY_ADD = 0x223  # FFMA of three registers
_GUARD_BITS = 4
_STALL_ONLY_BITS = STALL_BITS - 1  # the yield bit is the highest


def is_movable(word: Word) -> bool:
    """Whether it is an FFMA of registers that is always executed and releases no scoreboard."""
    return (
        opcode(word) == MULTIPLY_ADD
        and field(word, OPCODE_BITS, _GUARD_BITS) == field(ALWAYS, OPCODE_BITS, _GUARD_BITS)
        and field(word, BARRIERS, BARRIERS_BITS) == NO_BARRIERS
    )


def register(word: Word, at: int) -> int:
    return field(word, at, REGISTER_BITS)


def with_register(word: Word, at: int, number: int) -> Word:
    return with_field(word, at, REGISTER_BITS, number)


def operands_of(word: Word) -> Operands:
    """The registers of a multiply-add: its three sources, and its result."""
    a, b, c = (register(word, at) for at in SOURCES)
    return a, b, c, register(word, RESULT)


def stall_clocks(word: Word) -> int:
    """Clocks to the next instruction of the warp, at least."""
    return max(1, field(word, STALL, _STALL_ONLY_BITS))


def waits(word: Word) -> bool:
    return field(word, WAIT, WAIT_BITS) != 0


def scoreboards(word: Word) -> tuple[int, int]:
    """Those that are released when the result is written, and when the sources were read."""
    both = field(word, BARRIERS, BARRIERS_BITS)
    return both & 7, both >> 3


def reuse(word: Word) -> int:
    return field(word, REUSE, REUSE_BITS)


def with_reuse(word: Word, slots: int) -> Word:
    return with_field(word, REUSE, REUSE_BITS, slots)


def moved(word: Word, position: Word) -> Word:
    """The arithmetic of one instruction with the schedule of the position that another one had."""
    for at, bits in ((STALL, STALL_BITS), (WAIT, WAIT_BITS)):
        word = with_field(word, at, bits, field(position, at, bits))
    return with_reuse(word, 0)
