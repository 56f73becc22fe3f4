"""Integers, logic, shifts and moves of registers, and their uniform twins.

Operands are named as in integer.h: `d` is written, `a`, `b`, `c` are read, in SASS order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from toolkit.machine_code.instruction import (
    RZ,
    Immediate,
    Modified,
    Operand,
    Register,
    Special,
)
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PT
from toolkit.sass.isa.floating import COMBINATIONS, RELATIONS
from toolkit.sass.isa.registry import (
    Lowering,
    is_predicate,
    numbered,
    on_words,
    opcode,
    reader,
)
from toolkit.sass.isa.slots import INT_NEG, Source

# Ins.flags of integer.h
SIGNED, UPPER_HALF = 1, 2
FUNNEL = {"R": 2, "HI": 4, "W": 8}  # FUNNEL_RIGHT, FUNNEL_HIGH, FUNNEL_WRAP
LEA = {"HI": 8, "SX32": 16}  # LEA_HIGH, LEA_SIGNED
HIGH_BYTES, MINMAX_SUM, MINMAX_3 = 4, 4, 8
# LOGIC_AND, EXTENDED, WRAP, FLO_SHIFT, MINMAX_RELU, ABSDIFF_SUM, ADD_SATURATES
FLAGS = {"PAND": 1, "EX": 2, "W": 2, "SH": 2, "RELU": 2, "ACC": 2, "ISAT": 4}

TRUE = Register(file="P", index=PT)
PERMUTATIONS = numbered("F4E B4E RC8 ECL ECR RC16", first=1)
BYTES = {"B1": 8, "B2": 16, "B3": 24}  # by the bit that they begin at

# Types of values: bits of one, and whether it has a sign.
TYPES = {
    f"{sign}{suffix}": (bits, signed)
    for sign, signed in (("U", 0), ("S", SIGNED))
    for suffix, bits in (("32", 32), ("64", 64), ("16x2", 16), ("8x4", 8))
}
NIBBLES = {"U2": (2, 0), "S2": (2, SIGNED), "U4": (4, 0), "S4": (4, SIGNED)}
NARROW = {"U8": (8, 0), "S8": (8, SIGNED), "U16": (16, 0), "S16": (16, SIGNED)}


def value_type(i: Lowering) -> tuple[int, int]:
    """Bits of a value and SIGNED or 0, as the modifiers say."""
    return i.first(TYPES, TYPES["S32"])


def signed_unless(i: Lowering, unsigned: str) -> int:
    return 0 if unsigned in i.modifiers else SIGNED


def ends_discarded(i: Lowering, predicates: Iterable[Operand]) -> None:
    """Refuse predicates that are written but have no known meaning."""
    for operand in predicates:
        if i.predicate_out(operand) != PREDICATE_DISCARD:
            i.refuse_operand(operand, "a result that nobody reads")


def is_zero(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.index == RZ and not operand.invert


def is_negative(operand: Operand) -> bool:
    return isinstance(operand, Modified) and operand.negate


@reader
def word(i: Lowering, operand: Operand, position: int) -> Source:
    """A word that has no sign of its own."""
    if isinstance(operand, Modified) and (operand.negate or operand.invert):
        i.refuse_operand(operand, "a word without a sign")
    return i.u32(operand)


def last_word(i: Lowering) -> Operand:
    return [x for x in i.operands if not is_predicate(x)][-1]


# Moves.


@on_words("MOV", "UMOV", modifiers="64")
def mov(i: Lowering) -> None:
    wide = "64" in i.modifiers
    i.form("d u64" if wide else "d u32", "MOV64" if wide else "MOV")


@on_words("SEL", "USEL", modifiers="64")
def sel(i: Lowering) -> None:
    wide = "64" in i.modifiers
    i.form("d u64 u64 p" if wide else "d u32 u32 p", "SEL64" if wide else "SEL")


@on_words("PRMT", "UPRMT", modifiers=" ".join(PERMUTATIONS))
def prmt(i: Lowering) -> None:
    """d, a, selector, b"""
    i.form("d u32 u32 u32", flags=i.choice(PERMUTATIONS, 0))


# Sums.


@reader
def addend(i: Lowering, operand: Operand, position: int) -> Source:
    """An addend and its flag: subtraction adds the complement and one, which the carry sees."""
    return without_sign(i.u32(operand), position)


@reader
def addend64(i: Lowering, operand: Operand, position: int) -> Source:
    return without_sign(i.u64(operand), position)


def without_sign(source: Source, position: int) -> Source:
    """The source as it is before its sign, for which Ins.flags stands (NEGATE_0, ...)."""
    negate = bool(source.mod & INT_NEG)
    return Source(source.slot, source.mod & ~INT_NEG, flags=negate << position)


def add(i: Lowering, addends: int) -> None:
    """d, [carry out, [carry out,]] addends [, carry in, carry in]"""
    wide, carries = "64" in i.modifiers, "p p*" if "X" in i.modifiers else ""
    form = ["d P*", *["addend64" if wide else "addend"] * addends, carries]
    i.form(" ".join(form), "ADD64" if wide else "IADD3")


@on_words("IADD3", "UIADD3", modifiers="X 64")
def iadd3(i: Lowering) -> None:
    c = last_word(i)
    if "64" not in i.modifiers or (is_zero(c) and not is_negative(c)):
        add(i, 3)


@on_words("IADD", modifiers="X 64")
def iadd(i: Lowering) -> None:
    add(i, 2)


@on_words("VIADD", "UVIADD", modifiers="32 S32 16x2 S16x2 U8x4 S8x4 ISAT")
def viadd(i: Lowering) -> None:
    """d, a, b, of which one may be subtracted"""
    bits, signed = i.first(TYPES | {"16x2": (16, 0)}, TYPES["S32"])
    saturates = "ISAT" in i.modifiers
    match i.operands:
        case [_, _, _] if bits == 32 and not saturates:
            i.form("d addend addend", "IADD3")
        case [d, a, b] if not saturates or i.first(TYPES, None):
            operands = (d, b, a) if is_negative(a) else (d, a, b)
            flags = signed | i.flags(FLAGS)
            i.form("d word addend", "ADD_PACKED", operands=operands, flags=flags, aux=bits)


@reader
def shifted(i: Lowering, operand: Operand, position: int) -> Source:
    """Source word whose negation, if any, applies to the shifted word."""
    read = addend if is_negative(operand) else word
    return read(i, operand, position)


@on_words("LEA", "ULEA", modifiers="HI X SX32")
def lea(i: Lowering) -> None:
    """d, [carry out,] a, b, [upper word of a, with .HI,] shift [, carry in]"""
    high, extended = "HI" in i.modifiers, "SX32" in i.modifiers
    a, upper = "word" if high else "shifted", "u32" if high and not extended else ""
    if high or not extended:
        carry = "p" if "X" in i.modifiers else ""
        i.form(f"d P* {a} addend {upper} #32 {carry}", flags=i.flags(LEA))


# Products.


@on_words("IMAD", "UIMAD", modifiers="MOV SHL IADD U32 WIDE HI X")
def imad(i: Lowering) -> None:
    """d, [carry out,] a, b, c [, carry in]; .MOV, .SHL and .IADD are hints for the reader."""
    match i.operands:
        case _ if {"WIDE", "HI"} & set(i.modifiers):
            wide_product(i)
        case [d, a, b, c] if is_zero(a) and is_zero(b) and "X" not in i.modifiers:
            i.form("d u32", "MOV", operands=(d, c))
        case _:
            i.form(f"d u32 u32 u32 {'p' if 'X' in i.modifiers else ''}")


def wide_product(i: Lowering) -> None:
    """IMAD.WIDE and IMAD.HI: a * b + c in 64 bits, or its upper half; c is a register pair."""
    high, signed = "HI" in i.modifiers, signed_unless(i, "U32")
    carries_out, carry_in = any(map(is_predicate, i.operands[1:2])), "X" in i.modifiers
    c = last_word(i)
    if isinstance(c, Immediate) or (high and signed and (carry_in or carries_out)):
        return
    if not (high and carries_out and is_negative(c)):
        i.form(
            f"d P* word word {'addend64' if carries_out else 'u64'} {'p' if carry_in else ''}",
            "IMAD_WIDE",
            flags=signed | UPPER_HALF * high,
        )


@on_words("IDP", modifiers="4A 2A LO HI U8 S8 U16 S16")
def idp(i: Lowering) -> None:
    """The last two modifiers are the types of a and of b."""
    match i.modifiers:
        case ["4A", type_a, type_b] if {type_a, type_b} <= set(NARROW):
            bits, half = 8, 0
        case ["2A", "LO" | "HI" as which, type_a, type_b]:
            bits, half = 16, HIGH_BYTES if which == "HI" else 0
        case _:
            return
    signs = NARROW[type_a][1] | NARROW[type_b][1] << 1
    i.form("d word word u32", "DOT", flags=half | signs, aux=bits)


# Shifts and bits.


@on_words("SHF", "USHF", modifiers="L R W U32 S32 U64 S64 HI")
def shf(i: Lowering) -> None:
    """d, low word, amount, high word; the modifiers say which word of the result is kept."""
    bits, signed = value_type(i)
    for position, operand in enumerate(i.operands[1:]):
        word(i, operand, position)  # also the one that does not matter
    match i.operands, {"R", "HI", "W"} & set(i.modifiers):
        case [d, low, amount, _], kept if not kept:
            i.form("d word word", "SHIFT_LEFT", operands=(d, low, amount))
        case [d, _, amount, high], kept if kept == {"R", "HI"}:
            operation = "SHIFT_RIGHT_SIGNED" if signed else "SHIFT_RIGHT"
            i.form("d word word", operation, operands=(d, high, amount))
        case _:
            i.form("d word word word", "FUNNEL", flags=signed | i.flags(FUNNEL), aux=bits)


@on_words("POPC", "UPOPC", "BREV", "UBREV", "IABS", "UIABS")
def popc(i: Lowering) -> None:
    i.form("d u32")


@on_words("FLO", "UFLO", modifiers="U32 SH")
def flo(i: Lowering) -> None:
    i.form("d u32", flags=signed_unless(i, "U32") | i.flags(FLAGS))


@on_words("BMSK", "UBMSK", modifiers="C W")
def bmsk(i: Lowering) -> None:
    """d, first bit, number of bits"""
    i.form("d word word", flags=i.flags(FLAGS))


@on_words("SGXT", "USGXT", modifiers="U32 C W")
def sgxt(i: Lowering) -> None:
    """d, value, its bits"""
    i.form("d word word", flags=signed_unless(i, "U32") | i.flags(FLAGS))


@on_words("I2I", modifiers="U8 S8 U16 S16 S32 SAT")
def i2i(i: Lowering) -> None:
    match i.modifiers:
        case [narrow, "S32", "SAT"] if narrow in NARROW:
            bits, signed = NARROW[narrow]
            i.form("d u32", "SATURATE", flags=signed, aux=bits)


@opcode("I2IP", modifiers="U2 S2 U4 S4 U8 S8 U16 S16 S32 SAT")
def i2ip(i: Lowering) -> None:
    """d, upper value, lower value, bits above both: of R4.24 the lowest 24"""
    match i.modifiers, i.operands:
        case [narrow, "S32", "SAT"], [d, a, b, c] if narrow in NIBBLES | NARROW:
            bits, signed = (NIBBLES | NARROW)[narrow]
            if isinstance(c, Register) and c.suffix == (str(32 - 2 * bits),):
                c = replace(c, suffix=())
            operands = (d, a, b, c)
            if not any(isinstance(x, Modified) and x.suffix for x in operands):
                i.form(
                    "d word word word", "SATURATE_PACK", operands=operands, flags=signed, aux=bits
                )


# Logic.


@on_words("LOP3", "ULOP3", modifiers="LUT PAND")
def lop3(i: Lowering) -> None:
    """[predicate out,] d, a, b, c, table, predicate in"""
    if "LUT" in i.modifiers:
        i.form("P* d u32 u32 u32 #256 p", flags=i.flags(FLAGS))


@opcode("PLOP3", "UPLOP3", modifiers="LUT")
def plop3(i: Lowering) -> None:
    """predicate out, predicate out, three in (or signs: R4.SIGN), the table of each result"""
    match i.operands:
        case [first, second, *inputs, table, other] if "LUT" in i.modifiers and len(inputs) == 3:
            signs = [is_sign(x) for x in inputs]
            pairs = list(zip(inputs, signs, strict=True))
            i.emit(
                "PLOP3",
                pd=(first, second),
                ps=[TRUE if sign else x for x, sign in pairs],
                s=[i.u32(x) if sign else POOL for x, sign in pairs],
                flags=sum(sign << k for k, sign in enumerate(signs)),
                aux=i.number(table, 256) | i.number(other, 256) << 8,
            )


def is_sign(operand: Operand) -> bool:
    return isinstance(operand, Modified) and operand.suffix == ("SIGN",) and not operand.negate


@on_words("P2R", modifiers=" ".join(BYTES))
@on_words("UP2UR", modifiers=" ".join(BYTES))
def p2r(i: Lowering) -> None:
    """d, [PR,] value of the other bits, mask"""
    i.form(
        "d word word",
        "P2R",
        operands=[x for x in i.operands if x not in (Special(name="PR"), Special(name="UPR"))],
        flags=i.opcode == "UP2UR",  # PREDICATES_UNIFORM
        aux=i.choice(BYTES, 0),
    )


ALL_PREDICATES = Immediate(text="0x7f")


@opcode("R2P", "UR2UP")
def r2p(i: Lowering) -> None:
    """PR, bits [, mask]; the bits may be of a byte: R0.B1"""
    match i.operands:
        case [Special(name="PR" | "UPR"), Register(suffix=suffix) as a, *masks] if len(masks) < 2:
            if len(suffix) > 1 or not set(suffix) <= set(BYTES):
                i.refuse_operand(a, "a word or one of its bytes")
            first_bit = BYTES[suffix[0]] if suffix else 0
            uniform = i.opcode == "UR2UP"  # PREDICATES_UNIFORM
            mask = masks[0] if masks else ALL_PREDICATES
            i.form("word word", "R2P", operands=(a, mask), flags=uniform, aux=first_bit)


# Comparisons.


@on_words("ISETP", "UISETP", modifiers="F LT EQ LE GT NE GE T AND OR XOR U32 U64 S64 EX")
def isetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with [, verdict on the words below]

    That verdict is left out where it is PT.
    """
    bits, signed = value_type(i)
    extended, wide = "EX" in i.modifiers, bits == 64
    if extended and wide:
        return
    operands = list(i.operands)
    if extended and len(operands) == 5:  # without the other verdict, which is then PT
        operands.append(TRUE)
    i.form(
        f"P P {'u64 u64' if wide else 'u32 u32'} p {'p' if extended else ''}",
        "ISETP64" if wide else "ISETP",
        operands=operands,
        flags=signed | i.flags(FLAGS),
        aux=i.choice(RELATIONS) | i.choice(COMBINATIONS),
    )


MINMAX_TYPES = "U32 S32 U16x2 S16x2 U8x4 S8x4 RELU"


@on_words("IMNMX", "UIMNMX", modifiers="U32 U64 S64")
@on_words("VIMNMX", "UVIMNMX", modifiers=MINMAX_TYPES)
def minimum_maximum(i: Lowering) -> None:
    """d, [predicates out,] a, b, predicate: the smaller where it is true. The predicates out say
    which halves are a's; further ones, which sm_120 prints, must be without effect."""
    before = list(takewhile(is_predicate, i.operands))
    d, *rest = i.operands[len(before) :]
    between = list(takewhile(is_predicate, rest))
    bits, signed = value_type(i)
    if bits != 16 or "RELU" in i.modifiers:
        ends_discarded(i, between)
    ends_discarded(i, before)
    match rest[len(between) :]:
        case [a, b, p] | [a, b, p, Register(file="P" | "UP", index=7, invert=True)]:
            if bits == 64:
                i.form("d u64 u64 p", "MINMAX64", operands=(d, a, b, p), flags=signed)
            else:
                minmax(i, "d P* {0} {0} p", operands=(d, *between, a, b, p))


@on_words("VIADDMNMX", "UVIADDMNMX", modifiers=MINMAX_TYPES)
def viaddmnmx(i: Lowering) -> None:
    """d, a, b, c, predicate: the smaller or larger of a + b and c"""
    minmax(i, "d {0} {0} {0} p", MINMAX_SUM)


@on_words("VIMNMX3", "UVIMNMX3", modifiers=MINMAX_TYPES)
def vimnmx3(i: Lowering) -> None:
    minmax(i, "d {0} {0} {0} p", MINMAX_3)


def minmax(
    i: Lowering, form: str, flags: int = 0, operands: Sequence[Operand] | None = None
) -> None:
    bits, signed = value_type(i)
    if signed or "RELU" not in i.modifiers:
        i.form(
            form.format("u32" if bits == 32 else "word"),
            "MINMAX",
            operands=operands,
            flags=flags | signed | i.flags(FLAGS),
            aux=bits,
        )


@on_words("VABSDIFF", modifiers="U32")
def vabsdiff(i: Lowering) -> None:
    flags = signed_unless(i, "U32") | FLAGS["ACC"]
    i.form("d word word u32", "ABSDIFF", flags=flags, aux=32)


@on_words("VABSDIFF4", modifiers="U8 ACC")
def vabsdiff4(i: Lowering) -> None:
    """Bytes apart; with .ACC their sum and c, which is not read else"""
    flags = signed_unless(i, "U8") | i.flags(FLAGS)
    *operands, _ = i.operands
    operands.append(i.operands[-1] if "ACC" in i.modifiers else Register(file="R", index=RZ))
    i.form("d word word u32", "ABSDIFF", operands=operands, flags=flags, aux=8)
