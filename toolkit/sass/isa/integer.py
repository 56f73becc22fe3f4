"""32-bit integers, logic, shifts and moves, and their uniform twins."""

from __future__ import annotations

from itertools import takewhile

from toolkit.sass.instruction import Constant, Instruction, Operand, Register
from toolkit.sass.isa.registry import INT_NEG, Lowering, Source, opcode

NEGATE = (1, 2, 4)  # NEGATE_k of integer.h: source k is subtracted


@opcode("MOV", "UMOV")
def mov(i: Instruction, to: Lowering) -> None:
    to.emit("MOV", d=[to.out(i.operands[0])], s=[to.u32(i.operands[1])])


@opcode("IADD3", "UIADD3", modifiers="X")
def iadd3(i: Instruction, to: Lowering) -> None:
    """d, [carry out, [carry out,]] a, b, c [, carry in, carry in]"""
    d, *rest = i.operands
    carries_out = list(takewhile(is_predicate, rest))
    addends = rest[len(carries_out) : len(carries_out) + 3]
    carries_in = rest[len(carries_out) + 3 :]
    sources, flags = zip(*(addend(to, x, k) for k, x in enumerate(addends)), strict=True)
    to.emit(
        "IADD3",
        d=[to.out(d)],
        pd=[to.predicate_out(x) for x in carries_out],
        s=sources,
        ps=[to.predicate(x) for x in carries_in],
        flags=sum(flags),
    )


def addend(to: Lowering, operand: Operand, position: int) -> tuple[Source, int]:
    """An addend and its flag: subtraction adds the complement and one, which the carry sees."""
    source = to.u32(operand)
    if isinstance(operand, Register | Constant) and operand.negate:
        return Source(source.slot, source.mod & ~INT_NEG), NEGATE[position]
    return source, 0


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")
