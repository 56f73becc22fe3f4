"""Single precision, packed pairs of it, and the multi-function unit.

Operands are named in SASS order: `d` is written, `a`, `b`, `c` are read, `p` is a predicate.
"""

from __future__ import annotations

from dataclasses import replace

from toolkit.machine_code.instruction import Constant, Immediate, Operand, Register
from toolkit.sass.isa.integer import choice, flag
from toolkit.sass.isa.registry import Lowering, numbered, opcode
from toolkit.sass.isa.slots import F32_ABS, Source

# Ins.flags of floating.h
FTZ, SATURATE = 1, 2
ROUNDINGS = numbered("RN RM RP RZ", shift=4)
NAN_WINS, XOR_SIGN = 0x100, 0x200
# Ins.flags and Ins.aux of half.h and convert.h, for operands of MUFU
BF16, SOURCE_HALF = 0x400, 0x4000
LOW_IS_H1 = 1
SWIZZLE_SHIFT = 8
# Ins.aux of packed pairs: what four bits say of a source
SWAP_PAIR, SPREAD, NEGATE_LOW, NEGATE_HIGH = 1, 2, 4, 8
PAIRS = {
    ("F32x2", "HI_LO"): 0,
    ("F32x2", "LO_HI"): SWAP_PAIR,
    ("F32",): SPREAD,
    ("F32x2", "HI_LO", "NP"): NEGATE_HIGH,
    ("F32x2", "HI_LO", "PN"): NEGATE_LOW,
}

# Ins.aux of comparisons: the sum of LESS 1, EQUAL 2, GREATER 4, UNORDERED 8, and COMBINE_*
RELATIONS = numbered("F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T")
COMBINATIONS = numbered("AND OR XOR", shift=4)
COMPARING = " ".join([*RELATIONS, *COMBINATIONS])

ARITHMETIC = "FTZ SAT RN RM RP RZ"
FUNCTIONS = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H")


def arithmetic_flags(i: Lowering) -> int:
    return choice(i, ROUNDINGS, 0) | flag(i, "FTZ", FTZ) | flag(i, "SAT", SATURATE)


def comparison(i: Lowering) -> int:
    return choice(i, RELATIONS, 0) | choice(i, COMBINATIONS, 0)


def is_comparison(i: Lowering) -> bool:
    return any(name in RELATIONS for name in i.modifiers)


@opcode("FADD", "FMUL", modifiers=ARITHMETIC)
@opcode("UFADD", "UFMUL", modifiers=ARITHMETIC, since=100)
def fadd(i: Lowering) -> None:
    match i.operands:
        case [d, a, b]:
            arithmetic(i, d, a, b)


@opcode("FFMA", modifiers=ARITHMETIC)
@opcode("UFFMA", modifiers=ARITHMETIC, since=100)
def ffma(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            arithmetic(i, d, a, b, c)


def arithmetic(i: Lowering, d: Operand, *sources: Operand) -> None:
    flags = arithmetic_flags(i)
    form = {0: "", FTZ: "_FTZ"}.get(flags, "_MODIFIED")
    operation = i.opcode.removeprefix("U") + form
    i.emit(operation, d=d, s=map(i.f32, sources), flags=flags)


@opcode("FADD2", "FMUL2", modifiers="FTZ RN RM RP RZ", since=100)
def fadd2(i: Lowering) -> None:
    match i.operands:
        case [d, a, b]:
            packed(i, d, a, b)


@opcode("FFMA2", modifiers="FTZ RN RM RP RZ", since=100)
def ffma2(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            packed(i, d, a, b, c)


def packed(i: Lowering, d: Operand, *sources: Operand) -> None:
    read = [pair(i, x) for x in sources]
    i.emit(
        i.opcode,
        d=d,
        s=[source for source, _ in read],
        flags=arithmetic_flags(i),
        aux=sum(how << 4 * k for k, (_, how) in enumerate(read)),
    )


def pair(i: Lowering, operand: Operand) -> tuple[Source, int]:
    """A pair of registers, or one number for both, and how it is read."""
    if isinstance(operand, Immediate):
        return i.f32(operand), SPREAD
    if not isinstance(operand, Register | Constant) or operand.suffix not in PAIRS:
        i.refuse_operand(operand, "a pair of numbers")
    how = PAIRS[operand.suffix]
    return i.f32(without_suffix(operand), words=1 if how & SPREAD else 2), how


def without_suffix(operand: Register | Constant) -> Register | Constant:
    """The operand as it is read whole."""
    return replace(operand, suffix=())


@opcode("FSETP", modifiers=f"FTZ {COMPARING}")
@opcode("UFSETP", modifiers=f"FTZ {COMPARING}", since=100)
def fsetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with"""
    match i.operands:
        case [first, second, a, b, p] if is_comparison(i):
            i.emit(
                "FSETP",
                pd=[first, second],
                s=map(i.f32, (a, b)),
                ps=[p],
                flags=flag(i, "FTZ", FTZ),
                aux=comparison(i),
            )


@opcode("FSET", modifiers=f"BF FTZ {COMPARING}")
@opcode("UFSET", modifiers=f"BF FTZ {COMPARING}", since=100)
def fset(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, p] if is_comparison(i):
            i.emit(
                "FSET",
                d=d,
                s=map(i.f32, (a, b)),
                ps=[p],
                flags=flag(i, "FTZ", FTZ),
                aux=comparison(i),
                imm=0x3F800000 if "BF" in i.modifiers else 0xFFFFFFFF,  # 1.0
            )


@opcode("FSEL")
@opcode("UFSEL", since=100)
def fsel(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, p]:
            i.emit("FSEL", d=d, s=map(i.f32, (a, b)), ps=[p])


@opcode("FMNMX", modifiers="FTZ NAN XORSIGN")
@opcode("UFMNMX", modifiers="FTZ NAN XORSIGN", since=100)
def fmnmx(i: Lowering) -> None:
    """d, a, b, whether the least of them"""
    match i.operands:
        case [d, a, b, p]:
            sources = [i.f32(x) for x in (a, b)]
            if "XORSIGN" in i.modifiers:
                sources = [
                    magnitude(i, x, source) for x, source in zip((a, b), sources, strict=True)
                ]
            i.emit(
                "FMNMX",
                d=d,
                s=sources,
                ps=[p],
                flags=extreme_flags(i),
            )


def magnitude(i: Lowering, operand: Operand, source: Source) -> Source:
    """`|R0|` with its sign, which goes into that of the result."""
    if source.mod != F32_ABS:
        i.refuse_operand(operand, "a magnitude")
    return Source(source.slot)


def extreme_flags(i: Lowering) -> int:
    return flag(i, "FTZ", FTZ) | flag(i, "NAN", NAN_WINS) | flag(i, "XORSIGN", XOR_SIGN)


@opcode("FMNMX3", modifiers="FTZ NAN", since=100)
def fmnmx3(i: Lowering) -> None:
    """d, a, b, c, whether the least of them"""
    match i.operands:
        case [d, a, b, c, p]:
            i.emit(
                "FMNMX3",
                d=d,
                s=map(i.f32, (a, b, c)),
                ps=[p],
                flags=extreme_flags(i),
            )


@opcode("FCHK", modifiers="DIVIDE")
def fchk(i: Lowering) -> None:
    """whether a / b needs the slow path of division, a, b"""
    match i.operands:
        case [p, a, b]:
            i.emit("FCHK", pd=[p], s=map(i.f32, (a, b)))


@opcode("MUFU", modifiers=f"{' '.join(FUNCTIONS)} F16 BF16")
def mufu(i: Lowering) -> None:
    match i.operands, [name for name in i.modifiers if name in FUNCTIONS]:
        case [d, a], [function] if not {"F16", "BF16"} & set(i.modifiers):
            source = upper_word(i, a) if function.endswith("64H") else i.f32(a)
            i.emit(f"MUFU_{function}", d=d, s=[source])
        case [d, Register() as a], ["EX2" | "TANH" as function]:
            source, swizzle = half_operand(i, a)
            flags = SOURCE_HALF | flag(i, "BF16", BF16)
            i.emit(f"MUFU_{function}", d=d, s=[source], flags=flags, aux=swizzle)


def upper_word(i: Lowering, operand: Operand) -> Source:
    """The upper word of a double: a number in the instruction is the double itself."""
    if isinstance(operand, Immediate):
        return Source(i.f64(operand).slot + 1)
    return i.f32(operand)


def half_operand(i: Lowering, operand: Register) -> tuple[Source, int]:
    """One half of a register, R4.H1 or by default the low one, and how it is read."""
    halves = {(): 0, ("H0",): 0, ("H1",): LOW_IS_H1, ("H0_H0",): 0, ("H1_H1",): LOW_IS_H1}
    if operand.suffix not in halves or operand.invert:
        i.refuse_operand(operand, "one half of a register")
    return i.f16x2(operand), halves[operand.suffix] << SWIZZLE_SHIFT
