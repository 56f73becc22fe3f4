"""Conversions between formats of numbers, and rounding to whole numbers.

Operands are named in SASS order: `d` is written, `a`, `b` are read.
"""

from __future__ import annotations

from toolkit.machine_code.instruction import RZ, Constant, Immediate, Operand, Register
from toolkit.sass.isa.floating import BF16, FTZ, ROUNDINGS, SOURCE_HALF, half_operand
from toolkit.sass.isa.half import RELU
from toolkit.sass.isa.integer import choice, flag
from toolkit.sass.isa.registry import Lowering, opcode
from toolkit.sass.isa.slots import Source

# Ins.flags and Ins.aux of convert.h
NAN_TO_ZERO, FINITE, SOURCE_F64 = 0x100, 0x200, 0x2000
IS_SIGNED, FIRST_BYTE_SHIFT = 0x80, 16

INTEGERS = {
    f"{sign}{bits}": bits | (IS_SIGNED if sign == "S" else 0)
    for sign in "US"
    for bits in (8, 16, 32, 64)
}
WHOLE = {"TRUNC": ROUNDINGS["RZ"], "FLOOR": ROUNDINGS["RM"], "CEIL": ROUNDINGS["RP"]}
FORMATS = ("F16", "BF16", "F32", "F64")
FIRST_BYTES = {(): 0, ("B0",): 0, ("B1",): 1, ("B2",): 2, ("B3",): 3, ("H0",): 0, ("H1",): 2}
PARTS = {8: {"B0", "B1", "B2", "B3"}, 16: {"H0", "H1"}}  # of a register, by the bits of an integer


def formats(i: Lowering) -> list[str]:
    return [name for name in i.modifiers if name in FORMATS]


def source_format(i: Lowering) -> str:
    return next(iter(formats(i)), "F32")


def number(i: Lowering, operand: Operand, form: str) -> tuple[Source, int, int]:
    """A floating-point operand of a format, with its Ins.flags and Ins.aux."""
    if form == "F32":
        return i.f32(operand), 0, 0
    if form == "F64":
        return i.f64(operand), SOURCE_F64, 0
    if not isinstance(operand, Register):
        i.refuse_operand(operand, "one half of a register")
    source, swizzle = half_operand(i, operand)
    return source, SOURCE_HALF | (BF16 if form == "BF16" else 0), swizzle


@opcode("F2F", modifiers=f"FTZ RN RM RP RZ {' '.join(FORMATS)}")
def f2f(i: Lowering) -> None:
    """d, a; the modifiers name the format of d first, then that of a."""
    match formats(i), i.operands:
        case ["F64", form], [d, a] if form != "F64":
            source, flags, aux = number(i, a, form)
            flags |= flag(i, "FTZ", FTZ)
            i.emit("TO_F64", d=d, s=[source], flags=flags, aux=aux)
        case ["F32", "F64"], [d, a] if "FTZ" not in i.modifiers:
            source, flags, _ = number(i, a, "F64")
            flags |= choice(i, ROUNDINGS, 0)
            i.emit("F64_TO_F32", d=d, s=[source], flags=flags)
        case ["F16" | "BF16" as result, "F32" | "F64" as form], [d, a]:
            source, flags, _ = number(i, a, form)
            flags |= choice(i, ROUNDINGS, 0) | flag(i, "FTZ", FTZ)
            flags |= BF16 if result == "BF16" else 0
            i.emit("TO_HALF", d=d, s=[source], flags=flags)


@opcode("F2FP", modifiers="F16 BF16 F32 PACK_AB MERGE_C RN RZ RELU SATFINITE", since=80)
@opcode("UF2FP", modifiers="F16 BF16 F32 PACK_AB MERGE_C RN RZ RELU SATFINITE", since=100)
def f2fp(i: Lowering) -> None:
    """d, what becomes the high half, what becomes the low one; .MERGE_C: d, low half, zero"""
    match i.operands:
        case [d, a, b] if "PACK_AB" in i.modifiers:
            sources = [i.f32(a), i.f32(b)]
        case [d, a, Register(index=index)] if "MERGE_C" in i.modifiers and index == RZ:
            sources = [Source(i.word(0)), i.f32(a)]
        case _:
            return
    flags = choice(i, ROUNDINGS, 0) | flag(i, "BF16", BF16) | flag(i, "RELU", RELU)
    i.emit("PACK_HALVES", d=d, s=sources, flags=flags | flag(i, "SATFINITE", FINITE))


INTEGER_NAMES, WHOLE_NAMES = " ".join(INTEGERS), " ".join(WHOLE)


@opcode("F2I", modifiers=f"FTZ NTZ {INTEGER_NAMES} {WHOLE_NAMES} F16 BF16 F64")
@opcode("UF2I", modifiers=f"FTZ NTZ {INTEGER_NAMES} {WHOLE_NAMES} F16 BF16 F64", since=100)
def f2i(i: Lowering) -> None:
    """d, a; .NTZ: a NaN becomes 0."""
    match i.operands:
        case [d, a] if len(formats(i)) < 2:
            whole(i, d, a, choice(i, INTEGERS, INTEGERS["S32"]))


@opcode("F2IP", modifiers=f"U8 S8 F32 NTZ {WHOLE_NAMES}", since=80)
@opcode("UF2IP", modifiers=f"U8 S8 F32 NTZ {WHOLE_NAMES}", since=100)
def f2ip(i: Lowering) -> None:
    """d, zero, a, zero; other forms, which pack several bytes, are not known."""
    match i.operands:
        case [d, Register(index=first), a, Register(index=last)] if first == last == RZ:
            if {"U8", "S8"} & set(i.modifiers):
                whole(i, d, a, choice(i, INTEGERS, 0))


def whole(i: Lowering, d: Operand, a: Operand, integer: int) -> None:
    source, flags, aux = number(i, a, source_format(i))
    flags |= choice(i, WHOLE, 0) | flag(i, "FTZ", FTZ) | flag(i, "NTZ", NAN_TO_ZERO)
    i.emit("F2I", d=d, s=[source], flags=flags, aux=aux | integer)


@opcode("FRND", modifiers=f"FTZ {WHOLE_NAMES} F16 BF16 F64")
@opcode("UFRND", modifiers=f"FTZ {WHOLE_NAMES}", since=100)
def frnd(i: Lowering) -> None:
    match i.operands:
        case [d, a] if len(formats(i)) < 2:
            source, flags, aux = number(i, a, source_format(i))
            flags |= choice(i, WHOLE, 0) | flag(i, "FTZ", FTZ)
            i.emit("FRND", d=d, s=[source], flags=flags, aux=aux)


@opcode("I2F", modifiers=f"RN RM RP RZ F16 BF16 F64 {INTEGER_NAMES}")
@opcode("UI2F", modifiers=f"RN RM RP RZ F16 BF16 F64 {INTEGER_NAMES}", since=100)
@opcode("I2FP", modifiers=f"RN RZ F32 {INTEGER_NAMES}", since=80)
@opcode("UI2FP", modifiers=f"RN RZ F32 {INTEGER_NAMES}", since=100)
def i2f(i: Lowering) -> None:
    match i.operands:
        case [d, a] if len(formats(i)) < 2:
            source, aux = integer_operand(i, a, choice(i, INTEGERS, INTEGERS["S32"]))
            form = source_format(i)
            operation = {"F32": "I2F", "F64": "I2D"}.get(form, "I2H")
            flags = choice(i, ROUNDINGS, 0) | (BF16 if form == "BF16" else 0)
            i.emit(operation, d=d, s=[source], flags=flags, aux=aux)


def integer_operand(i: Lowering, operand: Operand, integer: int) -> tuple[Source, int]:
    """An integer of 8 to 64 bits, which may begin inside a register, and its Ins.aux."""
    bits = integer & ~IS_SIGNED
    if bits == 64 and isinstance(operand, Immediate):  # its upper word; the lower one is zero
        return Source(i.words(0, operand.integer & 0xFFFFFFFF)), integer
    if bits == 64:
        return i.u64(operand), integer
    suffix = operand.suffix if isinstance(operand, Register | Constant) else ()
    if not set(suffix) <= PARTS.get(bits, set()) or suffix not in FIRST_BYTES:
        i.refuse_operand(operand, f"an integer of {bits} bits")
    if bits < 32 and isinstance(operand, Register | Constant) and operand.negate:
        i.refuse_operand(operand, "an integer without a sign before it")
    return i.u32(operand), integer | FIRST_BYTES[suffix] << FIRST_BYTE_SHIFT
