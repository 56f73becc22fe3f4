"""Single precision."""

from __future__ import annotations

from toolkit.sass.instruction import Instruction
from toolkit.sass.isa.registry import Lowering, opcode


@opcode("FFMA")
def ffma(i: Instruction, to: Lowering) -> None:
    d, *factors = i.operands
    to.emit("FFMA", d=[to.out(d)], s=[to.f32(x) for x in factors])
