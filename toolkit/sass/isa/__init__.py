"""Semantics of the SASS opcodes: one function per opcode, by family.

`REGISTRY` holds them all. A function takes an instruction and states, through `Lowering`, which
operation of the native core executes it and where its operands are. An error names an opcode,
modifier or operand that no function declares.
"""

from toolkit.sass.isa import (
    bulk,
    control,
    convert,
    double,
    floating,
    gmma,
    half,
    integer,
    memory,
    mma,
    texture,
    warp,
)
from toolkit.sass.isa.registry import REGISTRY, Semantics, lower

__all__ = [
    "REGISTRY",
    "Semantics",
    "bulk",
    "control",
    "convert",
    "double",
    "floating",
    "gmma",
    "half",
    "integer",
    "lower",
    "memory",
    "mma",
    "texture",
    "warp",
]
