"""Single precision, packed pairs of it, and the multi-function unit.

Operands are named in SASS order: `d` is written, `a`, `b`, `c` are read, `p` is a predicate.
"""

from __future__ import annotations

from dataclasses import replace

from toolkit.sass.instruction import Constant, Immediate, Instruction, Operand, Register
from toolkit.sass.isa.integer import choice, flag
from toolkit.sass.isa.registry import F32_ABS, Lowering, Source, opcode

# Ins.flags of floating.h
FTZ, SATURATE = 1, 2
ROUNDINGS = {"RN": 0, "RM": 1 << 4, "RP": 2 << 4, "RZ": 3 << 4}
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
# fmt: off
RELATIONS = {
    name: value
    for value, name in enumerate((
        "F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM",
        "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T",
    ))
}
# fmt: on
COMBINATIONS = {"AND": 0, "OR": 1 << 4, "XOR": 2 << 4}
COMPARING = " ".join([*RELATIONS, *COMBINATIONS])

ARITHMETIC = "FTZ SAT RN RM RP RZ"
FUNCTIONS = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H")


def arithmetic_flags(i: Instruction) -> int:
    return choice(i, ROUNDINGS, 0) | flag(i, "FTZ", FTZ) | flag(i, "SAT", SATURATE)


def comparison(i: Instruction) -> int:
    return choice(i, RELATIONS, 0) | choice(i, COMBINATIONS, 0)


def is_comparison(i: Instruction) -> bool:
    return any(name in RELATIONS for name in i.modifiers)


@opcode("FADD", "FMUL", modifiers=ARITHMETIC)
@opcode("UFADD", "UFMUL", modifiers=ARITHMETIC, since=100)
def fadd(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b]:
            arithmetic(i, to, d, a, b)


@opcode("FFMA", modifiers=ARITHMETIC)
@opcode("UFFMA", modifiers=ARITHMETIC, since=100)
def ffma(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            arithmetic(i, to, d, a, b, c)


def arithmetic(i: Instruction, to: Lowering, d: Operand, *sources: Operand) -> None:
    flags = arithmetic_flags(i)
    form = {0: "", FTZ: "_FTZ"}.get(flags, "_MODIFIED")
    operation = i.opcode.removeprefix("U") + form
    to.emit(operation, d=[to.out(d)], s=[to.f32(x) for x in sources], flags=flags)


@opcode("FADD2", "FMUL2", modifiers="FTZ RN RM RP RZ", since=100)
def fadd2(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b]:
            packed(i, to, d, a, b)


@opcode("FFMA2", modifiers="FTZ RN RM RP RZ", since=100)
def ffma2(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            packed(i, to, d, a, b, c)


def packed(i: Instruction, to: Lowering, d: Operand, *sources: Operand) -> None:
    read = [pair(to, x) for x in sources]
    to.emit(
        i.opcode,
        d=[to.out(d)],
        s=[source for source, _ in read],
        flags=arithmetic_flags(i),
        aux=sum(how << 4 * k for k, (_, how) in enumerate(read)),
    )


def pair(to: Lowering, operand: Operand) -> tuple[Source, int]:
    """A pair of registers, or one number for both, and how it is read."""
    if isinstance(operand, Immediate):
        return to.f32(operand), SPREAD
    if not isinstance(operand, Register | Constant) or operand.suffix not in PAIRS:
        to.refuse_operand(operand, "a pair of numbers")
    how = PAIRS[operand.suffix]
    return to.f32(without_suffix(operand), words=1 if how & SPREAD else 2), how


def without_suffix(operand: Register | Constant) -> Register | Constant:
    """The operand as it is read whole."""
    return replace(operand, suffix=())


@opcode("FSETP", modifiers=f"FTZ {COMPARING}")
@opcode("UFSETP", modifiers=f"FTZ {COMPARING}", since=100)
def fsetp(i: Instruction, to: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with"""
    match i.operands:
        case [first, second, a, b, p] if is_comparison(i):
            to.emit(
                "FSETP",
                pd=[to.predicate_out(first), to.predicate_out(second)],
                s=[to.f32(a), to.f32(b)],
                ps=[to.predicate(p)],
                flags=flag(i, "FTZ", FTZ),
                aux=comparison(i),
            )


@opcode("FSET", modifiers=f"BF FTZ {COMPARING}")
@opcode("UFSET", modifiers=f"BF FTZ {COMPARING}", since=100)
def fset(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b, p] if is_comparison(i):
            to.emit(
                "FSET",
                d=[to.out(d)],
                s=[to.f32(a), to.f32(b)],
                ps=[to.predicate(p)],
                flags=flag(i, "FTZ", FTZ),
                aux=comparison(i),
                imm=0x3F800000 if "BF" in i.modifiers else 0xFFFFFFFF,  # 1.0
            )


@opcode("FSEL")
@opcode("UFSEL", since=100)
def fsel(i: Instruction, to: Lowering) -> None:
    match i.operands:
        case [d, a, b, p]:
            to.emit("FSEL", d=[to.out(d)], s=[to.f32(a), to.f32(b)], ps=[to.predicate(p)])


@opcode("FMNMX", modifiers="FTZ NAN XORSIGN")
@opcode("UFMNMX", modifiers="FTZ NAN XORSIGN", since=100)
def fmnmx(i: Instruction, to: Lowering) -> None:
    """d, a, b, whether the least of them"""
    match i.operands:
        case [d, a, b, p]:
            sources = [to.f32(x) for x in (a, b)]
            if "XORSIGN" in i.modifiers:
                sources = [
                    magnitude(to, x, source) for x, source in zip((a, b), sources, strict=True)
                ]
            to.emit(
                "FMNMX",
                d=[to.out(d)],
                s=sources,
                ps=[to.predicate(p)],
                flags=extreme_flags(i),
            )


def magnitude(to: Lowering, operand: Operand, source: Source) -> Source:
    """`|R0|` with its sign, which goes into that of the result."""
    if source.mod != F32_ABS:
        to.refuse_operand(operand, "a magnitude")
    return Source(source.slot)


def extreme_flags(i: Instruction) -> int:
    return flag(i, "FTZ", FTZ) | flag(i, "NAN", NAN_WINS) | flag(i, "XORSIGN", XOR_SIGN)


@opcode("FMNMX3", modifiers="FTZ NAN", since=100)
def fmnmx3(i: Instruction, to: Lowering) -> None:
    """d, a, b, c, whether the least of them"""
    match i.operands:
        case [d, a, b, c, p]:
            to.emit(
                "FMNMX3",
                d=[to.out(d)],
                s=[to.f32(x) for x in (a, b, c)],
                ps=[to.predicate(p)],
                flags=extreme_flags(i),
            )


@opcode("FCHK", modifiers="DIVIDE")
def fchk(i: Instruction, to: Lowering) -> None:
    """whether a / b needs the slow path of division, a, b"""
    match i.operands:
        case [p, a, b]:
            to.emit("FCHK", pd=[to.predicate_out(p)], s=[to.f32(a), to.f32(b)])


@opcode("MUFU", modifiers=f"{' '.join(FUNCTIONS)} F16 BF16")
def mufu(i: Instruction, to: Lowering) -> None:
    match i.operands, [name for name in i.modifiers if name in FUNCTIONS]:
        case [d, a], [function] if not {"F16", "BF16"} & set(i.modifiers):
            source = upper_word(to, a) if function.endswith("64H") else to.f32(a)
            to.emit(f"MUFU_{function}", d=[to.out(d)], s=[source])
        case [d, Register() as a], ["EX2" | "TANH" as function]:
            source, swizzle = half_operand(to, a)
            flags = SOURCE_HALF | flag(i, "BF16", BF16)
            to.emit(f"MUFU_{function}", d=[to.out(d)], s=[source], flags=flags, aux=swizzle)


def upper_word(to: Lowering, operand: Operand) -> Source:
    """The upper word of a double: a number in the instruction is the double itself."""
    if isinstance(operand, Immediate):
        return Source(to.f64(operand).slot + 1)
    return to.f32(operand)


def half_operand(to: Lowering, operand: Register) -> tuple[Source, int]:
    """One half of a register, R4.H1 or by default the low one, and how it is read."""
    halves = {(): 0, ("H0",): 0, ("H1",): LOW_IS_H1, ("H0_H0",): 0, ("H1_H1",): LOW_IS_H1}
    if operand.suffix not in halves or operand.invert:
        to.refuse_operand(operand, "one half of a register")
    return to.f16x2(operand), halves[operand.suffix] << SWIZZLE_SHIFT
