"""Double precision, in register pairs."""

from __future__ import annotations

from toolkit.machine_code.instruction import Operand
from toolkit.sass.isa.floating import COMPARING, ROUNDINGS, comparison, is_comparison
from toolkit.sass.isa.integer import choice
from toolkit.sass.isa.registry import Lowering, opcode

LEAST = 1  # Ins.flags of DSETP_EXTREME in double.h


@opcode("DADD", "DMUL", modifiers="RN RM RP RZ")
def dadd(i: Lowering) -> None:
    match i.operands:
        case [d, a, b]:
            arithmetic(i, d, a, b)


@opcode("DFMA", modifiers="RN RM RP RZ")
def dfma(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            arithmetic(i, d, a, b, c)


def arithmetic(i: Lowering, d: Operand, *sources: Operand) -> None:
    flags = choice(i, ROUNDINGS, 0)
    i.emit(i.opcode, d=d, s=map(i.f64, sources), flags=flags)


@opcode("DSETP", modifiers=f"MIN MAX {COMPARING}")
def dsetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with

    .MIN, .MAX: whether a is the one, whether both are no number, a, b, predicate combined with.
    """
    match i.operands:
        case [first, second, a, b, p]:
            extreme = {"MIN", "MAX"} & set(i.modifiers)
            if is_comparison(i) == bool(extreme) or len(extreme) > 1:
                return
            i.emit(
                "DSETP_EXTREME" if extreme else "DSETP",
                pd=[first, second],
                s=map(i.f64, (a, b)),
                ps=[p],
                flags=LEAST if "MIN" in extreme else 0,
                aux=comparison(i),
            )
