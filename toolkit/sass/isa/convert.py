"""Conversions between formats of numbers, and rounding to whole numbers.

A function that adds no form leaves the instruction unsupported.

Operands are named in SASS order: `d` is written, `a`, `b` are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.machine_code.instruction import RZ, Immediate, Modified, Operand, Register
from toolkit.sass.isa.floating import BF16, ROUNDINGS, SOURCE_HALF
from toolkit.sass.isa.registry import Lowering, opcode, reader
from toolkit.sass.isa.slots import Source

# Bits of Ins.flags and Ins.aux, as in core/convert.h.
SOURCE_F64 = 0x2000
# SASS modifiers to bits of Ins.flags (in convert.h: FTZ, RELU, NAN_TO_ZERO, FINITE).
TO_BFLOAT, BYTE_E5M2, BYTES_OF_HALVES = 0x8000, 0x10000, 0x20000
FLAGS = {"FTZ": 1, "RELU": 0x800, "NTZ": 0x100, "SATFINITE": 0x200}
IS_SIGNED, FIRST_BYTE_SHIFT = 0x80, 16

INTEGERS = {
    f"{sign}{bits}": bits | (IS_SIGNED if sign == "S" else 0)
    for sign in "US"
    for bits in (8, 16, 32, 64)
}
ROUNDING_OF = {"TRUNC": ROUNDINGS["RZ"], "FLOOR": ROUNDINGS["RM"], "CEIL": ROUNDINGS["RP"]}
# Floating-point formats to the reader of a source and its Ins.flags.
FORMATS = {
    "F16": ("half", SOURCE_HALF),
    "BF16": ("half", SOURCE_HALF | BF16),
    "F32": ("f32", 0),
    "F64": ("f64", SOURCE_F64),
}
INTEGER_NAMES, ROUNDING_NAMES = " ".join(INTEGERS), " ".join(ROUNDING_OF)
BYTE_OFFSETS = {(): 0, ("B0",): 0, ("B1",): 1, ("B2",): 2, ("B3",): 3, ("H0",): 0, ("H1",): 2}
SUBREGISTERS = {8: {"B0", "B1", "B2", "B3"}, 16: {"H0", "H1"}}  # by the bits of an integer


def formats(i: Lowering) -> list[str]:
    return [name for name in i.modifiers if name in FORMATS]


@opcode("F2F", modifiers="FTZ RN RM RP RZ F16 BF16 F32 F64")
def f2f(i: Lowering) -> None:
    """Operands: d, a. The first modifier is the format of d, the second that of a."""
    flags = i.choice(ROUNDINGS, 0)
    match formats(i):
        case ["F64", source] if source != "F64":
            source_reader, flags = FORMATS[source]
            i.form(f"d {source_reader}", "TO_F64", flags=flags | i.flags(FLAGS))
        case ["F32", "F64"] if "FTZ" not in i.modifiers:
            i.form("d f64", "F64_TO_F32", flags=flags | SOURCE_F64)
        case ["F16" | "BF16" as result, "F32" | "F64" as source]:
            source_reader, source_flags = FORMATS[source]
            flags |= source_flags | i.flags(FLAGS) | (BF16 if result == "BF16" else 0)
            i.form(f"d {source_reader}", "TO_HALF", flags=flags)
        case ["BF16", "F16"]:
            i.form("d half", "TO_HALF", flags=flags | SOURCE_HALF | TO_BFLOAT)


@opcode(
    "F2FP",
    modifiers="F16 BF16 F32 PACK_AB MERGE_C RN RZ RELU SATFINITE "
    "E4M3 E5M2 PACK_AB_MERGE_C UNPACK_B UNPACK_B_MERGE_C TF32 PACK_B",
    uniform=True,
)
def f2fp(i: Lowering) -> None:
    """PACK_AB: d, high half, low half. MERGE_C: d, low half, RZ; other forms are unsupported.

    Bytes: PACK_AB_MERGE_C: d, second byte, first byte, word whose low half stands above them.
    UNPACK_B_MERGE_C: the same of the halves of one register. UNPACK_B: d, bytes.
    """
    flags = i.choice(ROUNDINGS, 0) | i.flags(FLAGS | {"BF16": BF16})
    found = [name for name in i.modifiers if name in {*FORMATS, "E4M3", "E5M2", "TF32"}]
    byte = i.flags({"RELU": FLAGS["RELU"], "E5M2": BYTE_E5M2})
    match found, [x for x in i.modifiers if "PACK" in x or x == "MERGE_C"]:
        case ["E4M3" | "E5M2", "F32"], ["PACK_AB_MERGE_C"] if "SATFINITE" in i.modifiers:
            i.form("d f32 f32 word", "PACK_BYTES", flags=byte)
        case ["E4M3" | "E5M2", "F16"], ["UNPACK_B_MERGE_C"] if "SATFINITE" in i.modifiers:
            i.form("d halves word", "PACK_BYTES", flags=byte | BYTES_OF_HALVES)
        case ["F16", "E4M3" | "E5M2"], ["UNPACK_B"]:
            i.form("d half", "UNPACK_BYTES", flags=byte)
        case ["TF32", "F32"], ["PACK_B"] if "SATFINITE" not in i.modifiers:
            i.form("d f32", "ROUND_TF32", flags=flags)
        case _, packs if set(found) <= {"F16", "BF16", "F32"}:
            pack_halves(i, packs, flags)


def pack_halves(i: Lowering, packs: list[str], flags: int) -> None:
    match packs, i.operands:
        case ["PACK_AB"], operands:
            pass
        case ["MERGE_C"], [d, a, Register(index=index) as zero] if index == RZ:
            operands = (d, zero, a)
        case _:
            return
    i.form("d f32 f32", "PACK_HALVES", operands=operands, flags=flags)


@opcode("F2I", modifiers=f"FTZ NTZ {INTEGER_NAMES} {ROUNDING_NAMES} F16 BF16 F64", uniform=True)
def f2i(i: Lowering) -> None:
    """d, a; .NTZ: a NaN becomes 0."""
    to_integer(i, "F2I", i.operands, i.choice(INTEGERS, INTEGERS["S32"]))


@opcode("F2IP", modifiers=f"U8 S8 F32 NTZ {ROUNDING_NAMES}", uniform=True)
def f2ip(i: Lowering) -> None:
    """Operands: d, RZ, a, RZ. Forms that pack several bytes are unsupported."""
    match i.operands:
        case [d, Register(index=first), a, Register(index=last)] if first == last == RZ:
            if {"U8", "S8"} & set(i.modifiers):
                to_integer(i, "F2I", (d, a), i.choice(INTEGERS))


@opcode("FRND", modifiers=f"FTZ {ROUNDING_NAMES} F16 BF16 F64")
@opcode("UFRND", modifiers=f"FTZ {ROUNDING_NAMES}")
def frnd(i: Lowering) -> None:
    to_integer(i, "FRND", i.operands, 0)


def to_integer(i: Lowering, operation: str, operands: Sequence[Operand], integer: int) -> None:
    source_reader, flags = i.first(FORMATS, FORMATS["F32"])
    flags |= i.choice(ROUNDING_OF, 0) | i.flags(FLAGS)
    if len(formats(i)) < 2:
        i.form(f"d {source_reader}", operation, operands=operands, flags=flags, aux=integer)


@opcode("I2F", modifiers=f"RN RM RP RZ F16 BF16 F64 {INTEGER_NAMES}", uniform=True)
@opcode("I2FP", modifiers=f"RN RZ F32 {INTEGER_NAMES}", uniform=True)
def i2f(i: Lowering) -> None:
    if len(formats(i)) < 2:
        operation = i.first({"F16": "I2H", "BF16": "I2H", "F64": "I2D"}, "I2F")
        i.form("d integer", operation, flags=i.choice(ROUNDINGS, 0) | i.flags({"BF16": BF16}))


@reader
def integer(i: Lowering, operand: Operand, position: int) -> Source:
    """An integer of 8 to 64 bits, possibly a part of a register (.B1, .H1), and its Ins.aux."""
    kind = i.choice(INTEGERS, INTEGERS["S32"])
    bits = kind & ~IS_SIGNED
    if bits == 64 and isinstance(operand, Immediate):  # its upper word; the lower one is zero
        return Source(i.words(0, operand.integer & 0xFFFFFFFF), aux=kind)
    if bits == 64:
        return replace(i.u64(operand), aux=kind)
    suffix = operand.suffix if isinstance(operand, Modified) else ()
    if not set(suffix) <= SUBREGISTERS.get(bits, set()) or suffix not in BYTE_OFFSETS:
        i.refuse_operand(operand, f"an integer of {bits} bits")
    if bits < 32 and isinstance(operand, Modified) and operand.negate:
        i.refuse_operand(operand, "an integer that is not negated")
    return replace(i.u32(operand), aux=kind | BYTE_OFFSETS[suffix] << FIRST_BYTE_SHIFT)
