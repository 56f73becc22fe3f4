"""Pairs of halves: binary16, or with .BF16_V2 bfloat16.

Sums and products are fused multiply-adds of the core: a * 1 + b, a * b + -0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.machine_code.instruction import RZ, Constant, Immediate, Operand, Register
from toolkit.sass.isa.floating import (
    BF16,
    COMPARING,
    EXTREMES,
    LIMITS,
    LOW_IS_H1,
    ROUNDINGS,
    SWIZZLE_SHIFT,
    comparison,
    is_comparison,
    without_suffix,
)
from toolkit.sass.isa.registry import Lowering, opcode, reader
from toolkit.sass.isa.slots import F16_ABS, Source, words_of

# Ins.flags and Ins.aux of half.h
TO_F32 = 0x1000
FLAGS = {**LIMITS, "RELU": 0x800, "BF16_V2": BF16, "BF16": BF16, "F32": TO_F32}
HIGH_IS_H0, LOW_NEGATED, FROM_F32 = 2, 4, 8
SWIZZLES = {
    (): 0,
    ("H0_H0",): HIGH_IS_H0,
    ("H1_H1",): LOW_IS_H1,
    ("H0_NH1",): HIGH_IS_H0 | LOW_IS_H1 | LOW_NEGATED,
    ("F32",): FROM_F32,
}

MINUS_ZEROS = Immediate(text="-0", bits=0x80008000)


def ones(i: Lowering) -> Immediate:
    return Immediate(text="1", bits=0x3F803F80 if i.flags(FLAGS) & BF16 else 0x3C003C00)


def operands_of(i: Lowering) -> list[Operand]:
    """The operands, of which two immediates in a row are one: the high half, the low half."""
    found, rest = list[Operand](), list(i.operands)
    while rest:
        match rest:
            case [Immediate() as high, Immediate() as low, *rest]:
                found.append(Immediate(text=high.text, bits=word_of(i, high, low)))
            case [Immediate() as single, *_]:
                i.refuse_operand(single, "a pair of halves")
            case [operand, *rest]:
                found.append(operand)
    return found


@reader
def halves(i: Lowering, operand: Operand, position: int) -> Source:
    """Two numbers: of a register or constant, or two immediates as one word."""
    match operand:
        case Immediate(bits=int(bits)):
            return Source(i.words(bits))
        case Register() | Constant() if operand.suffix in SWIZZLES:
            swizzle = SWIZZLES[operand.suffix]
            is_f32 = swizzle == FROM_F32
            source = i.f32(without_suffix(operand)) if is_f32 else i.f16x2(operand)
            return replace(source, aux=swizzle << SWIZZLE_SHIFT + 4 * position)
    i.refuse_operand(operand, "a pair of halves")


@reader
def magnitudes(i: Lowering, operand: Operand, position: int) -> Source:
    """`|R0|` with its signs, which go into those of the result."""
    source = halves(i, operand, position)
    if source.mod != F16_ABS:
        i.refuse_operand(operand, "magnitudes")
    return replace(source, mod=0)


def word_of(i: Lowering, high: Immediate, low: Immediate) -> int:
    """Two immediates as the 32 bits of the instruction."""
    return next(
        (x.bits for x in (high, low) if x.bits is not None),
        half_bits(i, high) << 16 | half_bits(i, low),
    )


def half_bits(i: Lowering, operand: Immediate) -> int:
    try:
        if "BF16_V2" in i.modifiers:
            return words_of(operand.number, "f")[0] >> 16
        return words_of(operand.number, "exx")[0]
    except (ValueError, OverflowError):
        i.refuse_operand(operand, "a half-precision number")


@opcode("HADD2", modifiers="FTZ SAT F32 BF16_V2")
def hadd2(i: Lowering) -> None:
    """d, a, b; with .F32, d is the low sum in single precision, to which compilers widen halves."""
    flags = i.flags(FLAGS)
    match operands_of(i):
        case [d, a, b] if flags == TO_F32 and (is_minus_zero(a) or is_minus_zero(b)):
            i.form("d halves", "WIDEN_HALF", operands=(d, a if is_minus_zero(b) else b))
        case [d, a, b]:
            i.form("d halves halves halves", "HFMA2", operands=(d, a, ones(i), b), flags=flags)


@opcode("HMUL2", modifiers="FTZ SAT F32 BF16_V2")
def hmul2(i: Lowering) -> None:
    operands = [*operands_of(i), MINUS_ZEROS]
    i.form("d halves halves halves", "HFMA2", operands=operands, flags=i.flags(FLAGS))


@opcode("HFMA2", modifiers="MMA FTZ SAT RELU BF16_V2")
def hfma2(i: Lowering) -> None:
    operands, flags = operands_of(i), i.flags(FLAGS)
    if loads_constant(i):
        i.form("d halves", "MOV", operands=(operands[0], operands[-1]))
    else:
        i.form("d halves halves halves", operands=operands, flags=flags)


def loads_constant(i: Lowering) -> bool:
    """True for -0 * 0 + c, with which compilers load a constant that is not NaN."""
    match i.operands:
        case [_, a, Register(file="R", index=index, negate=False), *c] if index == RZ:
            given = all(isinstance(x, Immediate) and x.bits is None for x in c)
            return len(c) == 2 and given and is_minus_zero(a) and not i.flags(FLAGS) & ~BF16
    return False


def is_minus_zero(operand: Operand) -> bool:
    match operand:
        case Register(file="R", index=index, negate=True, absolute=False):
            return index == RZ
    return False


@opcode("FHADD", modifiers="BF16 SAT RN RM RP RZ")
def fhadd(i: Lowering) -> None:
    """d = a + b, where a is a half and b and d are single precision."""
    d, a, b = i.operands
    mixed(i, "d half halves f32", (d, a, ones(i), b))


@opcode("FHFMA", modifiers="BF16 SAT RN RM RP RZ")
def fhfma(i: Lowering) -> None:
    """d = a * b + c, where a and b are halves and c and d are single precision."""
    mixed(i, "d half half f32", i.operands)


def mixed(i: Lowering, form: str, operands: Sequence[Operand]) -> None:
    flags = i.choice(ROUNDINGS, 0) | i.flags(FLAGS)
    i.form(form, "FHFMA", operands=operands, flags=flags)


@opcode("HSETP2", modifiers=f"FTZ BF16_V2 {COMPARING}")
def hsetp2(i: Lowering) -> None:
    """predicate of the low halves, of the high ones, a, b, predicate combined with"""
    compared(i, "P P halves halves p")


@opcode("HSET2", modifiers=f"BF FTZ BF16_V2 {COMPARING}")
def hset2(i: Lowering) -> None:
    """d, a, b, predicate combined with"""
    one = 0x3F80 if "BF16_V2" in i.modifiers else 0x3C00
    compared(i, "d halves halves p", imm=one if "BF" in i.modifiers else 0xFFFF)


def compared(i: Lowering, form: str, imm: int = 0) -> None:
    if is_comparison(i):
        flags, how = i.flags(FLAGS), comparison(i)
        i.form(form, operands=operands_of(i), flags=flags, aux=how, imm=imm)


@opcode("HMNMX2", modifiers="FTZ NAN XORSIGN BF16_V2")
def hmnmx2(i: Lowering) -> None:
    """d, a, b, whether the least of them"""
    word = "magnitudes" if "XORSIGN" in i.modifiers else "halves"
    flags = i.flags(FLAGS | EXTREMES)
    i.form(f"d {word} {word} p", operands=operands_of(i), flags=flags)
