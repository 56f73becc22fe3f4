"""Single precision, packed pairs of it, and the multi-function unit.

Operands are named in SASS order: `d` is written, `a`, `b`, `c` are read, `p` is a predicate.
"""

from __future__ import annotations

from dataclasses import replace

from toolkit.machine_code.instruction import Constant, Immediate, Modified, Operand, Register
from toolkit.sass.isa.registry import Lowering, numbered, opcode, reader
from toolkit.sass.isa.slots import F32_ABS, Source

# Ins.flags of floating.h
LIMITS = {"FTZ": 1, "SAT": 2}  # FTZ, SATURATE
ROUNDINGS = numbered("RN RM RP RZ", shift=4)
# Ins.imm of FMUL_SCALED: what the product is multiplied by, as a float
SCALES = {
    **{"D2": 0x3F000000, "D4": 0x3E800000, "D8": 0x3E000000},  # 0.5, 0.25, 0.125
    **{"M2": 0x40000000, "M4": 0x40800000, "M8": 0x41000000},  # 2, 4, 8
}
EXTREMES = {"FTZ": 1, "NAN": 0x100, "XORSIGN": 0x200}  # FTZ, NAN_WINS, XOR_SIGN
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

FUNCTIONS = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H")


def comparison(i: Lowering) -> int:
    return i.choice(RELATIONS, 0) | i.choice(COMBINATIONS, 0)


def is_comparison(i: Lowering) -> bool:
    return any(name in RELATIONS for name in i.modifiers)


def arithmetic(i: Lowering, word: str, operation: str, flags: int) -> None:
    """d, a, b, or d, a, b, c of a multiply-add, each as `word` reads it"""
    i.form(f"d {word} {word} {word if 'FMA' in i.opcode else ''}", operation, flags=flags)


@opcode("FADD", "FFMA", modifiers="FTZ SAT RN RM RP RZ", uniform=True)
def fadd(i: Lowering) -> None:
    flags = i.choice(ROUNDINGS, 0) | i.flags(LIMITS)
    form = {0: "", LIMITS["FTZ"]: "_FTZ"}.get(flags, "_MODIFIED")
    arithmetic(i, "f32", i.opcode.removeprefix("U") + form, flags)


@opcode("FMUL", modifiers=f"FTZ SAT RN RM RP RZ {' '.join(SCALES)}", uniform=True)
def fmul(i: Lowering) -> None:
    """d, a, b; D2 to M8 divide the product by 2, 4, 8, or multiply it, before it is rounded"""
    if not any(name in SCALES for name in i.modifiers):
        return fadd(i)
    flags = i.choice(ROUNDINGS, 0) | i.flags(LIMITS)
    i.form("d f32 f32", "FMUL_SCALED", flags=flags, imm=i.choice(SCALES))


@opcode("FADD2", "FMUL2", "FFMA2", modifiers="FTZ RN RM RP RZ")
def fadd2(i: Lowering) -> None:
    arithmetic(i, "pair", i.opcode, i.choice(ROUNDINGS, 0) | i.flags(LIMITS))


@reader
def pair(i: Lowering, operand: Operand, position: int) -> Source:
    """A pair of registers, or one number for both, and how it is read."""
    if isinstance(operand, Immediate):
        return replace(i.f32(operand), aux=SPREAD << 4 * position)
    if not isinstance(operand, Modified) or operand.suffix not in PAIRS:
        i.refuse_operand(operand, "a pair of numbers")
    how = PAIRS[operand.suffix]
    source = i.f32(without_suffix(operand), words=1 if how & SPREAD else 2)
    return replace(source, aux=how << 4 * position)


def without_suffix(operand: Register | Constant) -> Register | Constant:
    """The operand as it is read whole."""
    return replace(operand, suffix=())


@opcode("FSETP", modifiers=f"FTZ {COMPARING}", uniform=True)
def fsetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with"""
    if is_comparison(i):
        i.form("P P f32 f32 p", flags=i.flags(LIMITS), aux=comparison(i))


@opcode("FSET", modifiers=f"BF FTZ {COMPARING}", uniform=True)
def fset(i: Lowering) -> None:
    if is_comparison(i):
        yes = 0x3F800000 if "BF" in i.modifiers else 0xFFFFFFFF  # 1.0
        i.form("d f32 f32 p", flags=i.flags(LIMITS), aux=comparison(i), imm=yes)


@opcode("FSEL", uniform=True)
def fsel(i: Lowering) -> None:
    i.form("d f32 f32 p", "SEL")


@opcode("FMNMX", modifiers="FTZ NAN XORSIGN", uniform=True)
def fmnmx(i: Lowering) -> None:
    """d, a, b, whether the least of them"""
    word = "magnitude" if "XORSIGN" in i.modifiers else "f32"
    i.form(f"d {word} {word} p", flags=i.flags(EXTREMES))


@reader
def magnitude(i: Lowering, operand: Operand, position: int) -> Source:
    """`|R0|` with its sign, which goes into that of the result."""
    source = i.f32(operand)
    if source.mod != F32_ABS:
        i.refuse_operand(operand, "a magnitude")
    return Source(source.slot)


@opcode("FMNMX3", modifiers="FTZ NAN")
def fmnmx3(i: Lowering) -> None:
    """d, a, b, c, whether the least of them"""
    i.form("d f32 f32 f32 p", flags=i.flags(EXTREMES))


@opcode("FCHK", modifiers="DIVIDE")
def fchk(i: Lowering) -> None:
    """whether a / b needs the slow path of division, a, b"""
    i.form("P f32 f32")


@opcode("MUFU", modifiers=f"{' '.join(FUNCTIONS)} F16 BF16")
def mufu(i: Lowering) -> None:
    match [name for name in i.modifiers if name in FUNCTIONS]:
        case [function] if not {"F16", "BF16"} & set(i.modifiers):
            upper = function.endswith("64H")
            i.form("d upper_word" if upper else "d f32", f"MUFU_{function}")
        case ["EX2" | "TANH" as function]:
            i.form("d half", f"MUFU_{function}", flags=SOURCE_HALF | i.flags({"BF16": BF16}))


@reader
def upper_word(i: Lowering, operand: Operand, position: int) -> Source:
    """The upper word of a double: a number in the instruction is the double itself."""
    if isinstance(operand, Immediate):
        return Source(i.f64(operand).slot + 1)
    return i.f32(operand)


@reader
def half(i: Lowering, operand: Operand, position: int) -> Source:
    """One half of a register, R4.H1 or by default the low one, and how it is read."""
    halves = {(): 0, ("H0",): 0, ("H1",): LOW_IS_H1, ("H0_H0",): 0, ("H1_H1",): LOW_IS_H1}
    if not isinstance(operand, Register) or operand.suffix not in halves or operand.invert:
        i.refuse_operand(operand, "one half of a register")
    return replace(i.f16x2(operand), aux=halves[operand.suffix] << SWIZZLE_SHIFT + 4 * position)
