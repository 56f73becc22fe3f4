"""Fields of a 128-bit instruction that reordering uses, in addition to those of `patching`.

An FFMA encodes its four registers at fixed offsets: the result, and three sources.
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
RESULT_OFFSET = 16
SOURCE_OFFSETS = (24, 32, 64)  # of Ra, Rb, Rc, in the order of the reuse flags

MULTIPLY_ADD = 0x223  # FFMA of three registers
_GUARD_OFFSET, _GUARD_BITS = OPCODE_BITS, 4
_STALL_COUNT_BITS = STALL_BITS - 1  # the highest bit is the yield flag


def is_movable(word: Word) -> bool:
    """True for an FFMA of registers without a predicate that sets no scoreboard."""
    return (
        opcode(word) == MULTIPLY_ADD
        and field(word, _GUARD_OFFSET, _GUARD_BITS) == field(ALWAYS, _GUARD_OFFSET, _GUARD_BITS)
        and field(word, BARRIERS, BARRIERS_BITS) == NO_BARRIERS
    )


def register(word: Word, at: int) -> int:
    return field(word, at, REGISTER_BITS)


def with_register(word: Word, at: int, number: int) -> Word:
    return with_field(word, at, REGISTER_BITS, number)


def operands_of(word: Word) -> Operands:
    """The registers of a multiply-add: its three sources, and its result."""
    a, b, c = (register(word, at) for at in SOURCE_OFFSETS)
    return a, b, c, register(word, RESULT_OFFSET)


def stall_clocks(word: Word) -> int:
    """Stall count: the least clocks until the next instruction of the warp issues."""
    return max(1, field(word, STALL, _STALL_COUNT_BITS))


def waits(word: Word) -> bool:
    return field(word, WAIT, WAIT_BITS) != 0


def scoreboards(word: Word) -> tuple[int, int]:
    """Write barrier and read barrier; 7 means none."""
    both = field(word, BARRIERS, BARRIERS_BITS)
    return both & 7, both >> 3


def reuse(word: Word) -> int:
    return field(word, REUSE, REUSE_BITS)


def with_reuse(word: Word, slots: int) -> Word:
    return with_field(word, REUSE, REUSE_BITS, slots)


def moved(word: Word, scheduled_as: Word) -> Word:
    """`word` with stall, yield flag and wait mask of another instruction, and no reuse flags."""
    for at, bits in ((STALL, STALL_BITS), (WAIT, WAIT_BITS)):
        word = with_field(word, at, bits, field(scheduled_as, at, bits))
    return with_reuse(word, 0)
