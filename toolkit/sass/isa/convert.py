"""Conversions between formats of numbers, and rounding to whole numbers.

Operands are named in SASS order: `d` is written, `a`, `b` are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.machine_code.instruction import RZ, Immediate, Modified, Operand, Register
from toolkit.sass.isa.floating import BF16, ROUNDINGS, SOURCE_HALF
from toolkit.sass.isa.registry import Lowering, opcode, reader
from toolkit.sass.isa.slots import Source

# Ins.flags and Ins.aux of convert.h
SOURCE_F64 = 0x2000
# FTZ, RELU, NAN_TO_ZERO, FINITE
FLAGS = {"FTZ": 1, "RELU": 0x800, "NTZ": 0x100, "SATFINITE": 0x200}
IS_SIGNED, FIRST_BYTE_SHIFT = 0x80, 16

INTEGERS = {
    f"{sign}{bits}": bits | (IS_SIGNED if sign == "S" else 0)
    for sign in "US"
    for bits in (8, 16, 32, 64)
}
WHOLE = {"TRUNC": ROUNDINGS["RZ"], "FLOOR": ROUNDINGS["RM"], "CEIL": ROUNDINGS["RP"]}
# By format: what reads a source of it, and its Ins.flags.
FORMATS = {
    "F16": ("half", SOURCE_HALF),
    "BF16": ("half", SOURCE_HALF | BF16),
    "F32": ("f32", 0),
    "F64": ("f64", SOURCE_F64),
}
INTEGER_NAMES, WHOLE_NAMES = " ".join(INTEGERS), " ".join(WHOLE)
FIRST_BYTES = {(): 0, ("B0",): 0, ("B1",): 1, ("B2",): 2, ("B3",): 3, ("H0",): 0, ("H1",): 2}
PARTS = {8: {"B0", "B1", "B2", "B3"}, 16: {"H0", "H1"}}  # of a register, by the bits of an integer


def formats(i: Lowering) -> list[str]:
    return [name for name in i.modifiers if name in FORMATS]


@opcode("F2F", modifiers="FTZ RN RM RP RZ F16 BF16 F32 F64")
def f2f(i: Lowering) -> None:
    """d, a; the modifiers name the format of d first, then that of a."""
    flags = i.choice(ROUNDINGS, 0)
    match formats(i):
        case ["F64", form] if form != "F64":
            word, flags = FORMATS[form]
            i.form(f"d {word}", "TO_F64", flags=flags | i.flags(FLAGS))
        case ["F32", "F64"] if "FTZ" not in i.modifiers:
            i.form("d f64", "F64_TO_F32", flags=flags | SOURCE_F64)
        case ["F16" | "BF16" as result, "F32" | "F64" as form]:
            word, source = FORMATS[form]
            flags |= source | i.flags(FLAGS) | (BF16 if result == "BF16" else 0)
            i.form(f"d {word}", "TO_HALF", flags=flags)


@opcode("F2FP", modifiers="F16 BF16 F32 PACK_AB MERGE_C RN RZ RELU SATFINITE", since=80)
@opcode("UF2FP", modifiers="F16 BF16 F32 PACK_AB MERGE_C RN RZ RELU SATFINITE", since=100)
def f2fp(i: Lowering) -> None:
    """d, what becomes the high half, what becomes the low one; .MERGE_C: d, low half, zero"""
    flags = i.choice(ROUNDINGS, 0) | i.flags(FLAGS | {"BF16": BF16})
    match i.operands:
        case operands if "PACK_AB" in i.modifiers:
            pass
        case [d, a, Register(index=index) as zero] if "MERGE_C" in i.modifiers and index == RZ:
            operands = (d, zero, a)
        case _:
            return
    i.form("d f32 f32", "PACK_HALVES", operands=operands, flags=flags)


@opcode("F2I", modifiers=f"FTZ NTZ {INTEGER_NAMES} {WHOLE_NAMES} F16 BF16 F64", uniform=100)
def f2i(i: Lowering) -> None:
    """d, a; .NTZ: a NaN becomes 0."""
    whole(i, "F2I", i.operands, i.choice(INTEGERS, INTEGERS["S32"]))


@opcode("F2IP", modifiers=f"U8 S8 F32 NTZ {WHOLE_NAMES}", since=80)
@opcode("UF2IP", modifiers=f"U8 S8 F32 NTZ {WHOLE_NAMES}", since=100)
def f2ip(i: Lowering) -> None:
    """d, zero, a, zero; other forms, which pack several bytes, are not known."""
    match i.operands:
        case [d, Register(index=first), a, Register(index=last)] if first == last == RZ:
            if {"U8", "S8"} & set(i.modifiers):
                whole(i, "F2I", (d, a), i.choice(INTEGERS))


@opcode("FRND", modifiers=f"FTZ {WHOLE_NAMES} F16 BF16 F64")
@opcode("UFRND", modifiers=f"FTZ {WHOLE_NAMES}", since=100)
def frnd(i: Lowering) -> None:
    whole(i, "FRND", i.operands, 0)


def whole(i: Lowering, operation: str, operands: Sequence[Operand], integer: int) -> None:
    word, flags = i.first(FORMATS, FORMATS["F32"])
    flags |= i.choice(WHOLE, 0) | i.flags(FLAGS)
    if len(formats(i)) < 2:
        i.form(f"d {word}", operation, operands=operands, flags=flags, aux=integer)


@opcode("I2F", modifiers=f"RN RM RP RZ F16 BF16 F64 {INTEGER_NAMES}", uniform=100)
@opcode("I2FP", modifiers=f"RN RZ F32 {INTEGER_NAMES}", since=80)
@opcode("UI2FP", modifiers=f"RN RZ F32 {INTEGER_NAMES}", since=100)
def i2f(i: Lowering) -> None:
    if len(formats(i)) < 2:
        operation = i.first({"F16": "I2H", "BF16": "I2H", "F64": "I2D"}, "I2F")
        i.form("d integer", operation, flags=i.choice(ROUNDINGS, 0) | i.flags({"BF16": BF16}))


@reader
def integer(i: Lowering, operand: Operand, position: int) -> Source:
    """An integer of 8 to 64 bits, which may begin inside a register, and its Ins.aux."""
    kind = i.choice(INTEGERS, INTEGERS["S32"])
    bits = kind & ~IS_SIGNED
    if bits == 64 and isinstance(operand, Immediate):  # its upper word; the lower one is zero
        return Source(i.words(0, operand.integer & 0xFFFFFFFF), aux=kind)
    if bits == 64:
        return replace(i.u64(operand), aux=kind)
    suffix = operand.suffix if isinstance(operand, Modified) else ()
    if not set(suffix) <= PARTS.get(bits, set()) or suffix not in FIRST_BYTES:
        i.refuse_operand(operand, f"an integer of {bits} bits")
    if bits < 32 and isinstance(operand, Modified) and operand.negate:
        i.refuse_operand(operand, "an integer without a sign before it")
    return replace(i.u32(operand), aux=kind | FIRST_BYTES[suffix] << FIRST_BYTE_SHIFT)
