"""Results of multiply-adds that may be kept in another register than the compiler's.

A value may change its register where nothing but multiply-adds of its own block write and read it.
Each gets a number of its own, beyond those of registers, so that an order is looked for as if there
were registers for all: no result waits for another one's register. Which register it gets is
decided afterwards (`allocation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.machine_code.instruction import RZ
from toolkit.reorder.banks import FIRST_VALUE, Operands
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Code


@dataclass
class _Value:
    """A result: where it is written, and which sources of which positions read it."""

    writer: int
    readers: list[tuple[int, int]] = field(default_factory=list)
    is_bound: bool = False


def with_values(code: Code, block: Block, live_after: frozenset[int]) -> Code:
    """The code with a number for each value of a block that may change its register."""
    values = _values(code, block, live_after)
    free = [value for value in values if value.readers and not value.is_bound]
    operands: dict[int, Operands] = dict(code.operands)
    for number, value in enumerate(free, start=FIRST_VALUE):
        for position, slot in ((value.writer, -1), *value.readers):
            named = list(operands[position])
            named[slot] = number
            a, b, c, d = named
            operands[position] = a, b, c, d
    return code.with_operands(operands)


def with_registers(operands: Operands, registers: Mapping[int, int]) -> Operands:
    """The operands with values in the registers that they were given."""
    a, b, c, d = (registers.get(number, number) for number in operands)
    return a, b, c, d


def _values(code: Code, block: Block, live_after: frozenset[int]) -> list[_Value]:
    """The results of a block's multiply-adds; bound are those that anything else touches."""
    found: list[_Value] = []
    current: dict[int, _Value] = {}
    for position in range(block.start, block.end):
        if code.moves(position):
            *sources, result = code.operands[position]
            for slot, register in enumerate(sources):
                if register in current:
                    current[register].readers.append((position, slot))
            current[result] = _Value(position, is_bound=result == RZ)
            found.append(current[result])
            continue
        is_sure = code.instructions[position].guard is None
        for register in code.read[position] | (frozenset() if is_sure else code.written[position]):
            if register in current:
                current[register].is_bound = True
        for register in code.written[position] if is_sure else ():
            current.pop(register, None)
    for register in live_after & current.keys():
        current[register].is_bound = True
    return found
