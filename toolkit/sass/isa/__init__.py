"""What each SASS opcode means: one function per opcode, by family.

`REGISTRY` holds them all. A function takes an instruction and says, through `Lowering`, which
operation of the native core it is and where its operands are; opcodes, modifiers and operands
that nobody declared are refused by name.
"""

from toolkit.sass.isa import bulk, control, convert, double, floating, half, integer, memory, warp
from toolkit.sass.isa.registry import REGISTRY, Semantics, lower

__all__ = [
    "REGISTRY",
    "Semantics",
    "bulk",
    "control",
    "convert",
    "double",
    "floating",
    "half",
    "integer",
    "lower",
    "memory",
    "warp",
]
