"""Pairs of halves: binary16, or with .BF16_V2 bfloat16.

Sums and products are fused multiply-adds of the core: a * 1 + b, a * b + -0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from toolkit.machine_code.instruction import RZ, Constant, Immediate, Operand, Register
from toolkit.sass.isa.floating import (
    BF16,
    COMPARING,
    FTZ,
    LOW_IS_H1,
    ROUNDINGS,
    SATURATE,
    SWIZZLE_SHIFT,
    comparison,
    extreme_flags,
    half_operand,
    is_comparison,
    without_suffix,
)
from toolkit.sass.isa.integer import choice, flag
from toolkit.sass.isa.registry import Lowering, opcode
from toolkit.sass.isa.slots import F16_ABS, Source

# Ins.flags and Ins.aux of half.h
RELU, TO_F32 = 0x800, 0x1000
HIGH_IS_H0, LOW_NEGATED, FROM_F32 = 2, 4, 8
SWIZZLES = {
    (): 0,
    ("H0_H0",): HIGH_IS_H0,
    ("H1_H1",): LOW_IS_H1,
    ("H0_NH1",): HIGH_IS_H0 | LOW_IS_H1 | LOW_NEGATED,
    ("F32",): FROM_F32,
}

MINUS_ZEROS = 0x80008000


@dataclass(frozen=True)
class Halves:
    """An operand of two numbers: a register or constant, or two immediates as one word."""

    source: Source
    swizzle: int = 0


def flags_of(i: Lowering) -> int:
    return (
        flag(i, "FTZ", FTZ)
        | flag(i, "SAT", SATURATE)
        | flag(i, "RELU", RELU)
        | flag(i, "BF16_V2", BF16)
    )


def halves(i: Lowering, operands: list[Operand]) -> list[Halves]:
    """The operands, of which two immediates in a row are one: the high half, the low half."""
    found, rest = [], list(operands)
    while rest:
        match rest:
            case [Immediate() as high, Immediate() as low, *rest]:
                found.append(Halves(Source(i.word(word_of(i, high, low)))))
            case [Register() | Constant() as operand, *rest] if operand.suffix in SWIZZLES:
                found.append(register_halves(i, operand))
            case [operand, *_]:
                i.refuse_operand(operand, "a pair of halves")
    return found


def register_halves(i: Lowering, operand: Register | Constant) -> Halves:
    swizzle = SWIZZLES[operand.suffix]
    if swizzle == FROM_F32:
        return Halves(i.f32(without_suffix(operand)), swizzle)
    return Halves(i.f16x2(operand), swizzle)


def word_of(i: Lowering, high: Immediate, low: Immediate) -> int:
    """Two immediates as the 32 bits of the instruction."""
    return next(
        (x.bits for x in (high, low) if x.bits is not None),
        half_bits(i, high) << 16 | half_bits(i, low),
    )


def half_bits(i: Lowering, operand: Immediate) -> int:
    try:
        if "BF16_V2" in i.modifiers:
            return int(struct.unpack("<I", struct.pack("<f", operand.number))[0]) >> 16
        return int(struct.unpack("<H", struct.pack("<e", operand.number))[0])
    except (ValueError, OverflowError):
        i.refuse_operand(operand, "a half-precision number")


def emit(operation: str, i: Lowering, d: Operand, sources: list[Halves], flags: int) -> None:
    aux = swizzles(sources)
    i.emit(operation, d=d, s=[x.source for x in sources], flags=flags, aux=aux)


def swizzles(sources: list[Halves]) -> int:
    return sum(x.swizzle << (SWIZZLE_SHIFT + 4 * k) for k, x in enumerate(sources))


@opcode("HADD2", modifiers="FTZ SAT F32 BF16_V2")
def hadd2(i: Lowering) -> None:
    """d, a, b; with .F32, d is the low sum in single precision, to which compilers widen halves."""
    d, *operands = i.operands
    match halves(i, operands):
        case [a, b]:
            flags = flags_of(i) | flag(i, "F32", TO_F32)
            others = ((a, operands[1:]), (b, operands[:1]))
            widened = [x for x, other in others if is_minus_zero(other)]
            if flags == TO_F32 and widened:
                emit("WIDEN_HALF", i, d, widened[:1], 0)
                return
            one = 0x3F803F80 if flags & BF16 else 0x3C003C00
            emit("HFMA2", i, d, [a, Halves(Source(i.word(one))), b], flags)


def is_minus_zero(operands: list[Operand]) -> bool:
    match operands:
        case [Register(file="R", index=index, negate=True, absolute=False)]:
            return index == RZ
    return False


@opcode("HMUL2", modifiers="FTZ SAT F32 BF16_V2")
def hmul2(i: Lowering) -> None:
    d, *operands = i.operands
    match halves(i, operands):
        case [a, b]:
            flags = flags_of(i) | flag(i, "F32", TO_F32)
            emit("HFMA2", i, d, [a, b, Halves(Source(i.word(MINUS_ZEROS)))], flags)


@opcode("HFMA2", modifiers="MMA FTZ SAT RELU BF16_V2")
def hfma2(i: Lowering) -> None:
    d, *operands = i.operands
    sources = halves(i, operands)
    if len(sources) != 3:
        return
    if loads_constant(i):
        i.emit("MOV", d=d, s=[sources[2].source])
    else:
        emit("HFMA2", i, d, sources, flags_of(i))


def loads_constant(i: Lowering) -> bool:
    """Whether the instruction is -0 * 0 + c, by which compilers load a constant that is no NaN."""
    match i.operands:
        case [_, a, b, Immediate(bits=None), Immediate(bits=None)]:
            return is_minus_zero([a]) and is_zero(b) and not flags_of(i) & ~BF16
    return False


def is_zero(operand: Operand) -> bool:
    match operand:
        case Register(file="R", index=index, negate=False):
            return index == RZ
    return False


@opcode("FHADD", modifiers="BF16 RN RZ", since=100)
def fhadd(i: Lowering) -> None:
    """d = a + b, where a is a half and b and d are single precision."""
    match i.operands:
        case [d, Register() as a, b]:
            one = 0x3F80 if "BF16" in i.modifiers else 0x3C00
            mixed(i, d, [half_operand(i, a), (Source(i.word(one)), 0)], b)


@opcode("FHFMA", modifiers="BF16 RN RZ", since=100)
def fhfma(i: Lowering) -> None:
    """d = a * b + c, where a and b are halves and c and d are single precision."""
    match i.operands:
        case [d, Register() as a, Register() as b, c]:
            mixed(i, d, [half_operand(i, a), half_operand(i, b)], c)


def mixed(i: Lowering, d: Operand, factors: list[tuple[Source, int]], addend: Operand) -> None:
    i.emit(
        "FHFMA",
        d=d,
        s=[*(source for source, _ in factors), i.f32(addend)],
        flags=choice(i, ROUNDINGS, 0) | flag(i, "BF16", BF16),
        aux=sum(swizzle << 4 * k for k, (_, swizzle) in enumerate(factors)),
    )


@opcode("HSETP2", modifiers=f"FTZ BF16_V2 {COMPARING}")
def hsetp2(i: Lowering) -> None:
    """predicate of the low halves, of the high ones, a, b, predicate combined with"""
    match i.operands:
        case [low, high, *pair, p] if is_comparison(i):
            sources = halves(i, pair)
            if len(sources) == 2:
                i.emit(
                    "HSETP2",
                    pd=[low, high],
                    s=[x.source for x in sources],
                    ps=[p],
                    flags=flags_of(i),
                    aux=swizzles(sources) | comparison(i),
                )


@opcode("HSET2", modifiers=f"BF FTZ BF16_V2 {COMPARING}")
def hset2(i: Lowering) -> None:
    """d, a, b, predicate combined with"""
    one = 0x3F80 if "BF16_V2" in i.modifiers else 0x3C00
    match i.operands:
        case [d, *pair, p] if is_comparison(i):
            sources = halves(i, pair)
            if len(sources) == 2:
                i.emit(
                    "HSET2",
                    d=d,
                    s=[x.source for x in sources],
                    ps=[p],
                    flags=flags_of(i),
                    aux=swizzles(sources) | comparison(i),
                    imm=one if "BF" in i.modifiers else 0xFFFF,
                )


@opcode("HMNMX2", modifiers="FTZ NAN XORSIGN BF16_V2", since=80)
def hmnmx2(i: Lowering) -> None:
    """d, a, b, whether the least of them"""
    match i.operands:
        case [d, *pair, p]:
            sources = halves(i, pair)
            if "XORSIGN" in i.modifiers:
                sources = [magnitude(i, x, pair[0]) for x in sources]
            if len(sources) == 2:
                i.emit(
                    "HMNMX2",
                    d=d,
                    s=[x.source for x in sources],
                    ps=[p],
                    flags=flags_of(i) | extreme_flags(i),
                    aux=swizzles(sources),
                )


def magnitude(i: Lowering, operand: Halves, written: Operand) -> Halves:
    """`|R0|` with its signs, which go into those of the result."""
    if operand.source.mod != F16_ABS:
        i.refuse_operand(written, "magnitudes")
    return replace(operand, source=Source(operand.source.slot))
