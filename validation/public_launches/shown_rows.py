"""Rows of the table of mechanisms that the machine code of a launch shows, before any is executed.

The parts after the halves are drawn by them, so that they have launches of each row. Rows that only
an execution shows (rows that are read again, bank conflicts, misaligned loads) are not among them.
A register holds a loaded value if a load of global memory wrote it, or an instruction that reads
such a register, in the order of addresses. The code is read twice, as loops hand values on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import prod

from analysis.geometry import ceil_div
from toolkit.machine_code.instruction import Address, Constant, Instruction, Register
from toolkit.sass.isa.memory import is_strong, width
from toolkit.sass.waits import CONSTANTS, WORD_BYTES, Named, loops


class Row(StrEnum):
    """A row of the table of mechanisms."""

    ATOMICS = "atomics at L2"
    CHAINS = "blocks that wait in a chain"
    PARTS = "parts of sectors, scatters"
    GATHERS = "gathers"
    SMALL_BLOCKS = "many small blocks"
    UNEQUAL = "unequal work"
    SCANS = "scans and trees"
    CONSTANTS = "constants at addresses in registers"
    DOUBLES = "FP64, conversions"
    LOCAL = "local memory"
    SHARED_SUMS = "swaps in shared memory"
    HALVES = "half precision"
    WRITES = "streams that only write"
    SHORT_STREAMS = "short streams"


SMALL_THREADS, MANY_BLOCKS = 128, 8192
SHORT_BYTES = 48 * 2**20  # of all arrays, which L2 holds
BARRIERS_OF_TREE = 3
_ATOMICS = {"ATOM", "ATOMG", "RED", "REDG"}
_LOADS, _STORES = {"LD", "LDG"}, {"ST", "STG"}
_NO_RESULT = _STORES | {"STS", "STL", "RED", "REDG", "BRA", "BAR", "EXIT", "MEMBAR"}
_HALVES = {"HADD2", "HMUL2", "HFMA2", "HSETP2", "HSET2", "HMNMX2"}
_DOUBLES = {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}
_CONVERSIONS = {"F2F", "F2I", "I2F"}
_PARTS = {"U8", "S8", "U16", "S16"}
_WIDE = {"WIDE", "64"}


def rows_of(
    code: Sequence[Instruction], grid: Sequence[int], block: Sequence[int], array_bytes: int
) -> list[Row]:
    """The rows that the code of a launch and its sizes show, in their order."""
    found = {*_of_code(code), *_of_loaded(code)}
    if prod(block) <= SMALL_THREADS and prod(grid) >= MANY_BLOCKS:
        found.add(Row.SMALL_BLOCKS)
    opcodes = {one.opcode for one in code}
    if opcodes & _STORES and not opcodes & _LOADS:
        found.add(Row.WRITES)
    if not found and array_bytes <= SHORT_BYTES and not _looped(code):
        found.add(Row.SHORT_STREAMS)
    return [row for row in Row if row in found]


def _of_code(code: Sequence[Instruction]) -> Iterator[Row]:
    looped, barriers = _looped(code), 0
    for place, one in enumerate(code):
        modifiers = set(one.modifiers)
        if one.opcode in _ATOMICS:
            yield Row.ATOMICS
        elif one.opcode in _LOADS and is_strong(one) and place in looped:
            yield Row.CHAINS
        elif one.opcode == "ATOMS" and any(word.startswith("CAS") for word in modifiers):
            yield Row.SHARED_SUMS
        elif one.opcode in ("LDL", "STL"):
            yield Row.LOCAL
        elif one.opcode in _DOUBLES or (one.opcode in _CONVERSIONS and "F64" in modifiers):
            yield Row.DOUBLES
        elif one.opcode in _HALVES and any(_named(one.operands[1:])):
            yield Row.HALVES
        elif one.opcode in _STORES and _PARTS & modifiers:
            yield Row.PARTS
        elif one.opcode == "BAR":
            barriers += BARRIERS_OF_TREE if place in looped else 1
        for operand in one.operands:
            base = operand.base if isinstance(operand, Constant) and operand.is_indexed else None
            if base is not None and base.file == "R":
                yield Row.CONSTANTS
    if barriers >= BARRIERS_OF_TREE and any(one.opcode == "STS" for one in code):
        yield Row.SCANS


def _of_loaded(code: Sequence[Instruction]) -> Iterator[Row]:
    """Rows of addresses, and of branches backward, that loaded values decide."""
    loaded = set[Named]()
    ends = {loop[-1] for loop in loops(code) if len(loop) > 1}
    for place, one in [*enumerate(code), *enumerate(code)]:
        addresses = [operand for operand in one.operands if isinstance(operand, Address)]
        if loaded & {*_named(addresses)}:
            if one.opcode in _LOADS:
                yield Row.GATHERS
            elif one.opcode in _STORES:
                yield Row.PARTS
        sources = {*_named([one.guard])} | {
            *_named(one.operands if one.opcode in _NO_RESULT else one.operands[1:])
        }
        if one.opcode == "BRA" and loaded & sources and place in ends:
            yield Row.UNEQUAL
        if one.opcode not in _NO_RESULT:
            made = {*_made(one)}
            is_loaded = one.opcode in _LOADS or bool(loaded & sources)
            loaded = loaded | made if is_loaded else loaded - made


def _looped(code: Sequence[Instruction]) -> set[int]:
    """Places in loops of two instructions and more: code ends with a branch to itself."""
    return {place for loop in loops(code) if len(loop) > 1 for place in loop}


def _made(one: Instruction) -> Iterator[Named]:
    """The registers and predicates that an instruction writes, its first operand with all words."""
    words = ceil_div(width(one), WORD_BYTES) if one.opcode in _LOADS else 1
    if one.opcode in _DOUBLES or _WIDE & set(one.modifiers):
        words = max(words, 2)
    for place, operand in enumerate(one.operands[:2]):
        for file, index in _named([operand] if isinstance(operand, Register) else []):
            if place == 0:
                yield from ((file, index + word) for word in range(words))
            elif file in ("P", "UP"):
                yield file, index


def _named(operands: Sequence[object]) -> Iterator[Named]:
    """The registers of operands, those of 64-bit addresses with both words."""
    for one in operands:
        for register in one.registers if isinstance(one, Address) else (one,):
            if isinstance(register, Register) and (register.file, register.index) not in CONSTANTS:
                for word in range(2 if "64" in register.suffix else 1):
                    yield register.file, register.index + word
