"""Patches that leave a class of instructions out, or make them read every operand anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolkit.patching import (
    ALWAYS,
    BARRIERS,
    NO_BARRIERS,
    REUSE,
    REUSE_BITS,
    STALL,
    STALL_BITS,
    WAIT,
    WAIT_BITS,
    Patch,
    Word,
    field,
    with_field,
)

OPERATION_BITS = 9  # of an opcode, without the form of the operands
NOP = 0x918

# Instructions by what they are for; a number is the opcode without the form of its operands.
OPERATIONS: Mapping[str, frozenset[int]] = {
    "barriers": frozenset({0x11D}),  # BAR
    "global loads": frozenset({0x181}),  # LDG
    "global stores": frozenset({0x186}),  # STG
    "shared loads": frozenset({0x184}),  # LDS
    "shared stores": frozenset({0x188}),  # STS
    "asynchronous copies": frozenset({0x1AE}),  # LDGSTS
    "multiply-adds": frozenset({0x023}),  # FFMA
}


def operation(word: Word) -> int:
    """The opcode, whatever the form of the operands: registers, constants, immediates."""
    return field(word, 0, OPERATION_BITS)


def nop(word: Word) -> Word:
    """A NOP in place of an instruction: it waits, stalls and yields like it, and releases nothing.

    Nobody waits in vain: a scoreboard that nothing holds is open.
    """
    kept = ((STALL, STALL_BITS), (WAIT, WAIT_BITS))
    schedule = sum(field(word, at, bits) << at for at, bits in kept)
    return NOP | ALWAYS | schedule | NO_BARRIERS << BARRIERS


def without_reuse(word: Word) -> Word:
    """The instruction with every operand read from the register file by the next one too."""
    return with_field(word, REUSE, REUSE_BITS, 0)


def without(operations: Collection[int]) -> Patch:
    """A patch that makes NOPs of all instructions of some operations."""
    return lambda code: [nop(word) if operation(word) in operations else word for word in code]


def all_without_reuse(code: list[Word]) -> list[Word]:
    """A patch: no instruction keeps an operand for the next one."""
    return list(map(without_reuse, code))
