"""Loops in which a warp only waits for a value that another block writes.

Such a loop polls a flag: it loads and compares it repeatedly. The number of polls depends on time,
which the simulator does not model. It counts the last pass alone, as if the flag had been set at
the first poll.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.geometry import ceil_div
from toolkit.machine_code.instruction import (
    INSTRUCTION_BYTES,
    PT,
    RZ,
    URZ,
    Address,
    Immediate,
    Instruction,
    Register,
)
from toolkit.sass.isa.memory import is_strong, width

WORD_BYTES = 4
WIDEST_RESULT = 2  # registers, but for loads
LONGEST = 24  # instructions, as core.h has room for
_EITHER = {"VOTE", "LOP3", "PLOP3", "SEL", "IADD3", "IMAD", "HFMA2"}
# Of each opcode that such a loop may hold, how many operands it writes. Which registers the others
# write depends on their form: all of theirs count as read and as written.
_WRITTEN = {
    **{"LD": 1, "LDG": 1, "ISETP": 2, "MOV": 1},
    **dict.fromkeys(("CCTL", "YIELD", "WARPSYNC", "NANOSLEEP", "NOP", "ERRBAR", "MEMBAR"), 0),
    **dict.fromkeys(_EITHER, 0),
}
Named = tuple[str, int]
CONSTANTS: set[Named] = {("R", RZ), ("UR", URZ), ("P", PT), ("UP", PT)}


def loops(instructions: Sequence[Instruction]) -> Iterator[range]:
    """The indices of each loop: from the target of a branch backward to the branch."""
    for end, branch in enumerate(instructions):
        target = branch.operands[-1] if branch.opcode == "BRA" and branch.operands else None
        if isinstance(target, Immediate) and target.integer <= branch.address:
            yield range(target.integer // INSTRUCTION_BYTES, end + 1)


def waits(instructions: Sequence[Instruction]) -> Iterator[range]:
    """The places of each loop that only waits, the branch backward among them."""
    for loop in loops(instructions):
        *body, branch = (instructions[index] for index in loop)
        if 0 < len(body) < LONGEST and not branch.modifiers and _only_waits(body, branch):
            yield loop


def polls_by_atomics(instructions: Sequence[Instruction]) -> bool:
    """True if a short loop has an atomic operation: it may wait for a value that others write."""
    return any(
        instructions[index].opcode in ("ATOM", "ATOMG")
        for loop in loops(instructions)
        if len(loop) <= LONGEST
        for index in loop
    )


def _only_waits(body: Sequence[Instruction], branch: Instruction) -> bool:
    """True if no pass of a loop hands a value to the next: it writes no register it read first."""
    loads = [one for one in body if one.opcode in ("LD", "LDG")]
    if not loads or not all(map(is_strong, loads)) or any(one.guard for one in body):
        return False
    written, first_read = set[Named](), set[Named]()
    for one in body:
        if one.opcode not in _WRITTEN:
            return False
        results = one.operands[: _WRITTEN[one.opcode]]
        first_read |= set(_named(one.operands[len(results) :])) - written
        for result in one.operands if one.opcode in _EITHER else results:
            extent = ceil_div(width(one), WORD_BYTES) if one in loads else WIDEST_RESULT
            written |= {(file, k + n) for file, k in _named([result]) for n in range(extent)}
    first_read |= set(_named([branch.guard, *branch.operands])) - written
    return not written & first_read


def _named(operands: Sequence[object]) -> Iterator[Named]:
    for one in operands:
        registers = one.registers if isinstance(one, Address) else (one,)
        for register in registers:
            if isinstance(register, Register) and (register.file, register.index) not in CONSTANTS:
                for n in range(2 if "64" in register.suffix else 1):
                    yield register.file, register.index + n
