"""Double precision, in register pairs."""

from __future__ import annotations

from toolkit.sass.isa.floating import COMPARING, ROUNDINGS, arithmetic, comparison, is_comparison
from toolkit.sass.isa.registry import Lowering, opcode

LEAST = 1  # Ins.flags of DSETP_EXTREME in double.h


@opcode("DADD", "DMUL", "DFMA", modifiers="RN RM RP RZ")
def dadd(i: Lowering) -> None:
    arithmetic(i, "f64", i.opcode, i.choice(ROUNDINGS, 0))


@opcode("DSETP", modifiers=f"MIN MAX {COMPARING}")
def dsetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with

    .MIN, .MAX: whether a is the one, whether both are no number, a, b, predicate combined with.
    """
    extreme = {"MIN", "MAX"} & set(i.modifiers)
    if is_comparison(i) != bool(extreme) and len(extreme) < 2:
        i.form(
            "P P f64 f64 p",
            "DSETP_EXTREME" if extreme else "DSETP",
            flags=i.flags({"MIN": LEAST}),
            aux=comparison(i),
        )
