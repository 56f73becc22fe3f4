"""Integers, logic, shifts and moves of registers, and their uniform twins.

Operands are named as in integer.h: `d` is written, `a`, `b`, `c` are read, in SASS order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import takewhile

from toolkit.machine_code.instruction import (
    RZ,
    Constant,
    Immediate,
    Operand,
    Register,
    Special,
)
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PT
from toolkit.sass.isa.registry import LowerFunction, Lowering, numbered, opcode
from toolkit.sass.isa.slots import INT_NEG, Source, refuse

# Ins.flags of integer.h
NEGATE = (1, 2, 4)  # NEGATE_k: source k is subtracted
SIGNED = 1
SIGNED_A, SIGNED_B, HIGH_BYTES = 1, 2, 4
FUNNEL_RIGHT, FUNNEL_HIGH, FUNNEL_WRAP = 2, 4, 8
LEA_HIGH, LEA_SIGNED = 8, 16
LOGIC_AND = 1
COMPARE_SHIFT, BOOLEAN_SHIFT, EXTENDED = 4, 8, 1 << 12
MINMAX_RELU, MINMAX_SUM, MINMAX_3 = 2, 4, 8
ABSDIFF_SUM = 2
FLO_SHIFT = 2
WRAP = 2
PREDICATES_UNIFORM = 1

TRUE = Register(file="P", index=PT)
COMPARISONS = numbered("F LT EQ LE GT NE GE T", shift=COMPARE_SHIFT)
BOOLEANS = numbered("AND OR XOR", shift=BOOLEAN_SHIFT)
PERMUTATIONS = numbered("F4E B4E RC8 ECL ECR RC16", first=1)
BYTES = {"B1": 8, "B2": 16, "B3": 24}  # by the bit that they begin at

# Types of values: bits of one, and whether it has a sign.
TYPES = {
    "U32": (32, 0),
    "S32": (32, SIGNED),
    "U64": (64, 0),
    "S64": (64, SIGNED),
    "U16x2": (16, 0),
    "S16x2": (16, SIGNED),
    "U8x4": (8, 0),
    "S8x4": (8, SIGNED),
}
NARROW = {"U8": (8, 0), "S8": (8, SIGNED), "U16": (16, 0), "S16": (16, SIGNED)}


def on_words(
    *names: str, modifiers: str = "", since: int = 75, until: int = 999
) -> Callable[[LowerFunction], LowerFunction]:
    """`opcode` for functions that read whole words: operands such as R4.H1 are refused."""

    def register(function: LowerFunction) -> LowerFunction:
        @wraps(function)
        def checked(i: Lowering) -> None:
            for operand in i.operands:
                if isinstance(operand, Register | Constant) and operand.suffix:
                    i.refuse_operand(operand, "a whole word")
            function(i)

        return opcode(*names, modifiers=modifiers, since=since, until=until)(checked)

    return register


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")


def choice(i: Lowering, choices: Mapping[str, int], default: int | None = None) -> int:
    """What the one modifier means that is among `choices`; without a default there must be one."""
    found = [name for name in i.modifiers if name in choices]
    if len(found) > 1:
        refuse(i.instruction, f"the simulator does not know .{' .'.join(found)} together")
    if found:
        return choices[found[0]]
    if default is None:
        refuse(i.instruction, f"the simulator wants one of .{' .'.join(choices)}")
    return default


def flag(i: Lowering, modifier: str, value: int) -> int:
    return value if modifier in i.modifiers else 0


def value_type(i: Lowering, default: str = "S32") -> tuple[int, int]:
    """Bits of a value and SIGNED or 0, as the modifiers say."""
    return next((TYPES[name] for name in i.modifiers if name in TYPES), TYPES[default])


def number(i: Lowering, operand: Operand, below: int) -> int:
    """An operand that is part of the opcode: a table, the shift of an address."""
    if not isinstance(operand, Immediate) or not 0 <= operand.integer < below:
        i.refuse_operand(operand, f"a number below {below}")
    return operand.integer


def unsigned_operand(i: Lowering, operand: Operand) -> Source:
    """A word that has no sign of its own."""
    if isinstance(operand, Register | Constant) and (operand.negate or operand.invert):
        i.refuse_operand(operand, "a word without a sign")
    return i.u32(operand)


def ends_discarded(i: Lowering, predicates: Sequence[Operand]) -> None:
    """Refuse predicates that are written but whose meaning is not known."""
    for operand in predicates:
        if i.predicate_out(operand) != PREDICATE_DISCARD:
            i.refuse_operand(operand, "a result that nobody reads")


# Moves.


@on_words("MOV", "UMOV", modifiers="64")
def mov(i: Lowering) -> None:
    match i.operands:
        case [d, a] if "64" in i.modifiers:
            i.emit("MOV64", d=d, s=[i.u64(a)])
        case [d, a]:
            i.emit("MOV", d=d, s=[i.u32(a)])


@on_words("SEL", "USEL", modifiers="64")
def sel(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, p] if "64" in i.modifiers:
            i.emit("SEL64", d=d, s=map(i.u64, (a, b)), ps=[p])
        case [d, a, b, p]:
            i.emit("SEL", d=d, s=map(i.u32, (a, b)), ps=[p])


@on_words("PRMT", "UPRMT", modifiers=" ".join(PERMUTATIONS))
def prmt(i: Lowering) -> None:
    """d, a, selector, b"""
    match i.operands:
        case [d, a, b, c]:
            sources = map(i.u32, (a, b, c))
            i.emit("PRMT", d=d, s=sources, flags=choice(i, PERMUTATIONS, 0))


# Sums.


@on_words("IADD3", "UIADD3", modifiers="X 64")
def iadd3(i: Lowering) -> None:
    """d, [carry out, [carry out,]] a, b, c [, carry in, carry in]"""
    d, *rest = i.operands
    carries_out = list(takewhile(is_predicate, rest))
    addends = rest[len(carries_out) : len(carries_out) + 3]
    carries_in = rest[len(carries_out) + 3 :]
    if len(addends) != 3 or bool(carries_in) != ("X" in i.modifiers):
        return
    pair = "64" in i.modifiers
    if is_zero(addends[2]) and not is_negative(addends[2]):
        operation = "ADD64" if pair else "IADD"
        sum_of(operation, i, d, addends[:2], carries_out, carries_in)
    elif not pair:
        sum_of("IADD3", i, d, addends, carries_out, carries_in)


@on_words("IADD", modifiers="X 64", since=120)
def iadd(i: Lowering) -> None:
    """d, [carry out,] a, b [, carry in]"""
    d, *rest = i.operands
    carries_out = list(takewhile(is_predicate, rest))
    addends = rest[len(carries_out) : len(carries_out) + 2]
    carries_in = rest[len(carries_out) + 2 :]
    if len(addends) != 2 or bool(carries_in) != ("X" in i.modifiers):
        return
    operation = "ADD64" if "64" in i.modifiers else "IADD"
    sum_of(operation, i, d, addends, carries_out, carries_in)


@on_words("VIADD", "UVIADD", modifiers="32 S32 16x2 S16x2 U8x4 S8x4 ISAT", since=90)
def viadd(i: Lowering) -> None:
    match i.operands:
        case [d, a, b] if "ISAT" in i.modifiers:
            saturated_sum(i, d, a, b)
        case [d, a, b]:
            bits = choice(i, {"16x2": 16, "S16x2": 16, "U8x4": 8, "S8x4": 8}, 32)
            if bits == 32:
                sum_of("IADD", i, d, [a, b])
            elif len([x for x in (a, b) if is_negative(x)]) < 2:
                sum_of("ADD_PACKED", i, d, [a, b], aux=bits)


def saturated_sum(i: Lowering, d: Operand, a: Operand, b: Operand) -> None:
    kinds = [name for name in i.modifiers if name in TYPES]
    if not kinds:
        return
    bits, signed = TYPES[kinds[0]]
    if is_negative(a):
        a, b = b, a
    second, negation = addend(i, b, 1)
    i.emit(
        "ADD_SATURATED",
        d=d,
        s=[unsigned_operand(i, a), second],
        flags=signed | negation,
        aux=bits,
    )


def sum_of(
    operation: str,
    i: Lowering,
    d: Operand,
    addends: Sequence[Operand],
    carries_out: Sequence[Operand] = (),
    carries_in: Sequence[Operand] = (),
    aux: int = 0,
) -> None:
    terms = [addend(i, x, k, wide=operation == "ADD64") for k, x in enumerate(addends)]
    i.emit(
        operation,
        d=d,
        pd=carries_out,
        s=[source for source, _ in terms],
        ps=carries_in,
        flags=sum(negation for _, negation in terms),
        aux=aux,
    )


def addend(
    i: Lowering, operand: Operand, position: int, *, wide: bool = False
) -> tuple[Source, int]:
    """An addend and its flag: subtraction adds the complement and one, which the carry sees."""
    source = i.u64(operand) if wide else i.u32(operand)
    if is_negative(operand):
        return Source(source.slot, source.mod & ~INT_NEG), NEGATE[position]
    return source, 0


def is_zero(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.index == RZ and not operand.invert


def is_negative(operand: Operand) -> bool:
    return isinstance(operand, Register | Constant) and operand.negate


@on_words("LEA", "ULEA", modifiers="HI X SX32")
def lea(i: Lowering) -> None:
    """d, [carry out,] a, b, [upper word of a, with .HI,] shift [, carry in]"""
    d, *rest = i.operands
    carries_out = list(takewhile(is_predicate, rest))
    rest = rest[len(carries_out) :]
    carries_in = [rest.pop()] if "X" in i.modifiers else []
    high, extended = "HI" in i.modifiers, "SX32" in i.modifiers
    match rest:
        case [a, b, c, shift] if high and not extended:
            upper = i.u32(c)
        case [a, b, shift] if high == extended:
            upper = Source(i.word(0))
        case _:
            return
    if high or not is_negative(a):
        shifted, negation = unsigned_operand(i, a), 0
    else:  # the sign is that of the shifted word
        shifted, negation = addend(i, a, 0)
    addend_b, negation_b = addend(i, b, 1)
    i.emit(
        "LEA",
        d=d,
        pd=carries_out,
        s=[shifted, addend_b, upper],
        ps=carries_in,
        flags=negation | negation_b | (LEA_HIGH if high else 0) | (LEA_SIGNED if extended else 0),
        aux=number(i, shift, 32),
    )


# Products.


@on_words("IMAD", "UIMAD", modifiers="MOV SHL IADD U32 WIDE HI X")
def imad(i: Lowering) -> None:
    """d, [carry out,] a, b, c [, carry in]; .MOV, .SHL and .IADD are hints for the reader."""
    d, *rest = i.operands
    carries_out = list(takewhile(is_predicate, rest))
    factors = rest[len(carries_out) : len(carries_out) + 2]
    addends = rest[len(carries_out) + 2 :]
    carries_in = addends[1:]
    if len(addends) != 1 + ("X" in i.modifiers):
        return
    if "WIDE" in i.modifiers or "HI" in i.modifiers:
        wide_product(i, d, factors, addends[0], carries_out, carries_in)
    elif not carries_out:
        low_product(i, d, factors, addends[0], carries_in)


def low_product(
    i: Lowering,
    d: Operand,
    factors: Sequence[Operand],
    c: Operand,
    carries_in: Sequence[Operand],
) -> None:
    sources = [i.u32(x) for x in (*factors, c)]
    if carries_in:
        i.emit("IMAD_CARRY", d=d, s=sources, ps=carries_in)
    elif all(is_zero(x) for x in factors):
        i.emit("MOV", d=d, s=sources[2:])
    else:
        i.emit("IMAD", d=d, s=sources)


def wide_product(
    i: Lowering,
    d: Operand,
    factors: Sequence[Operand],
    c: Operand,
    carries_out: Sequence[Operand],
    carries_in: Sequence[Operand],
) -> None:
    """Of 64 bits, all or the upper half; c is a register pair."""
    high, signed = "HI" in i.modifiers, "U32" not in i.modifiers
    if isinstance(c, Immediate) or (high and carries_in and signed):
        return
    if high and carries_out and (signed or is_negative(c)):
        return
    term, negation = addend(i, c, 2, wide=True) if carries_out else (i.u64(c), 0)
    i.emit(
        "IMAD_HI" if high else "IMAD_WIDE",
        d=d,
        pd=carries_out,
        s=[*(unsigned_operand(i, x) for x in factors), term],
        ps=carries_in,
        flags=negation | (SIGNED if signed else 0),
    )


@on_words("IDP", modifiers="4A 2A LO HI U8 S8 U16 S16")
def idp(i: Lowering) -> None:
    """The last two modifiers are the types of a and of b."""
    match i.operands, i.modifiers:
        case [d, a, b, c], ["4A", type_a, type_b] if {type_a, type_b} <= set(NARROW):
            operation, half = "DOT4", 0
        case [d, a, b, c], ["2A", "LO" | "HI" as which, type_a, type_b]:
            operation, half = "DOT2", HIGH_BYTES if which == "HI" else 0
        case _:
            return
    i.emit(
        operation,
        d=d,
        s=[unsigned_operand(i, a), unsigned_operand(i, b), i.u32(c)],
        flags=half
        | (SIGNED_A if NARROW[type_a][1] else 0)
        | (SIGNED_B if NARROW[type_b][1] else 0),
    )


# Shifts and bits.


@on_words("SHF", "USHF", modifiers="L R W U32 S32 U64 S64 HI")
def shf(i: Lowering) -> None:
    """d, low word, amount, high word; the modifiers say which word of the result is kept."""
    match i.operands:
        case [d, low, amount, high]:
            a, b, c = (unsigned_operand(i, x) for x in (low, amount, high))
        case _:
            return
    bits, signed = value_type(i)
    right, upper, wrap = ("R" in i.modifiers, "HI" in i.modifiers, "W" in i.modifiers)
    if not (right or upper or wrap):
        i.emit("SHIFT_LEFT", d=d, s=[a, b])
    elif right and upper and not wrap:
        operation = "SHIFT_RIGHT_SIGNED" if signed else "SHIFT_RIGHT"
        i.emit(operation, d=d, s=[c, b])
    else:
        flags = (
            signed
            | (FUNNEL_RIGHT if right else 0)
            | (FUNNEL_HIGH if upper else 0)
            | (FUNNEL_WRAP if wrap else 0)
        )
        i.emit("FUNNEL", d=d, s=[a, b, c], flags=flags, aux=bits)


@on_words("POPC", "UPOPC", "BREV", "UBREV", "IABS", "UIABS")
def popc(i: Lowering) -> None:
    unary(i.opcode.removeprefix("U"), i)


@on_words("FLO", "UFLO", modifiers="U32 SH")
def flo(i: Lowering) -> None:
    signed = 0 if "U32" in i.modifiers else SIGNED
    unary("FLO", i, flags=signed | flag(i, "SH", FLO_SHIFT))


def unary(operation: str, i: Lowering, *, flags: int = 0, aux: int = 0) -> None:
    match i.operands:
        case [d, a]:
            i.emit(operation, d=d, s=[i.u32(a)], flags=flags, aux=aux)


@on_words("BMSK", "UBMSK", modifiers="C W")
def bmsk(i: Lowering) -> None:
    """d, first bit, number of bits"""
    match i.operands:
        case [d, a, b]:
            sources = [unsigned_operand(i, x) for x in (a, b)]
            i.emit("BMSK", d=d, s=sources, flags=flag(i, "W", WRAP))


@on_words("SGXT", "USGXT", modifiers="U32 C W")
def sgxt(i: Lowering) -> None:
    """d, value, its bits"""
    match i.operands:
        case [d, a, b]:
            signed = 0 if "U32" in i.modifiers else SIGNED
            sources = [unsigned_operand(i, x) for x in (a, b)]
            i.emit("SGXT", d=d, s=sources, flags=signed | flag(i, "W", WRAP))


@on_words("I2I", modifiers="U8 S8 U16 S16 S32 SAT")
def i2i(i: Lowering) -> None:
    match i.modifiers:
        case [narrow, "S32", "SAT"] if narrow in NARROW:
            bits, signed = NARROW[narrow]
            unary("SATURATE", i, flags=signed, aux=bits)


@on_words("I2IP", modifiers="U8 S8 U16 S16 S32 SAT")
def i2ip(i: Lowering) -> None:
    """d, upper value, lower value, what goes above both"""
    match i.operands, i.modifiers:
        case [d, a, b, c], [narrow, "S32", "SAT"] if narrow in NARROW:
            bits, signed = NARROW[narrow]
            sources = [unsigned_operand(i, x) for x in (a, b, c)]
            i.emit("SATURATE_PACK", d=d, s=sources, flags=signed, aux=bits)


# Logic.


@on_words("LOP3", "ULOP3", modifiers="LUT PAND")
def lop3(i: Lowering) -> None:
    """[predicate out,] d, a, b, c, table, predicate in"""
    outputs = list(takewhile(is_predicate, i.operands))
    match i.operands[len(outputs) :]:
        case [d, a, b, c, table, p] if "LUT" in i.modifiers:
            i.emit(
                "LOP3",
                d=d,
                pd=outputs,
                s=map(i.u32, (a, b, c)),
                ps=[p],
                flags=flag(i, "PAND", LOGIC_AND),
                aux=number(i, table, 256),
            )


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
                aux=number(i, table, 256) | number(i, other, 256) << 8,
            )


def is_sign(operand: Operand) -> bool:
    return (
        isinstance(operand, Register | Constant)
        and operand.suffix == ("SIGN",)
        and not operand.negate
    )


@on_words("P2R", modifiers=" ".join(BYTES))
@on_words("UP2UR")
def p2r(i: Lowering) -> None:
    """d, [PR,] what the other bits are, mask"""
    match [x for x in i.operands if x not in (Special(name="PR"), Special(name="UPR"))]:
        case [d, a, mask]:
            i.emit(
                "P2R",
                d=d,
                s=[unsigned_operand(i, a), unsigned_operand(i, mask)],
                flags=PREDICATES_UNIFORM if i.opcode == "UP2UR" else 0,
                aux=choice(i, BYTES, 0),
            )


@opcode("R2P", "UR2UP")
def r2p(i: Lowering) -> None:
    """PR, bits, mask; the bits may be of a byte: R0.B1"""
    match i.operands:
        case [Special(name="PR" | "UPR"), Register(suffix=suffix) as a, mask]:
            if len(suffix) > 1 or not set(suffix) <= set(BYTES):
                i.refuse_operand(a, "a word or one of its bytes")
            i.emit(
                "R2P",
                s=[unsigned_operand(i, a), unsigned_operand(i, mask)],
                flags=PREDICATES_UNIFORM if i.opcode == "UR2UP" else 0,
                aux=BYTES[suffix[0]] if suffix else 0,
            )


# Comparisons.


@on_words("ISETP", "UISETP", modifiers="F LT EQ LE GT NE GE T AND OR XOR U32 U64 S64 EX")
def isetp(i: Lowering) -> None:
    """predicate, of the opposite, a, b, predicate combined with [, verdict on the words below]

    That verdict is left out where it is PT.
    """
    match i.operands:
        case [first, second, a, b, p]:
            inputs = [p, TRUE] if "EX" in i.modifiers else [p]
        case [first, second, a, b, p, below] if "EX" in i.modifiers:
            inputs = [p, below]
        case _:
            return
    bits, signed = value_type(i)
    if bits == 64 and "EX" in i.modifiers:
        return
    i.emit(
        "ISETP" if bits == 32 else "ISETP64",
        pd=[first, second],
        s=[i.u32(x) if bits == 32 else i.u64(x) for x in (a, b)],
        ps=inputs,
        flags=signed | choice(i, COMPARISONS) | choice(i, BOOLEANS) | flag(i, "EX", EXTENDED),
    )


MINMAX_TYPES = "U32 S32 U16x2 S16x2 U8x4 S8x4 RELU"


@on_words("IMNMX", "UIMNMX", modifiers="U32 U64 S64")
@on_words("VIMNMX", "UVIMNMX", modifiers=MINMAX_TYPES, since=90)
def minimum_maximum(i: Lowering) -> None:
    """d, [predicates out,] a, b, predicate: the smaller where it is true. The predicates out say
    which halves are a's; further ones, which sm_120 prints, must be without effect."""
    before = list(takewhile(is_predicate, i.operands))
    d, *rest = i.operands[len(before) :]
    between = list(takewhile(is_predicate, rest))
    bits, _ = value_type(i)
    if bits != 16 or "RELU" in i.modifiers:
        ends_discarded(i, between)
    ends_discarded(i, before)
    match rest[len(between) :]:
        case [a, b, p]:
            pass
        case [a, b, p, Register(file="P" | "UP", index=7, invert=True)]:
            pass
        case _:
            return
    if bits == 64:
        minmax64(i, d, (a, b), p)
    else:
        minmax(i, d, (a, b), p, 0, between)


def minmax64(i: Lowering, d: Operand, values: Sequence[Operand], p: Operand) -> None:
    _, signed = value_type(i)
    sources = map(i.u64, values)
    i.emit("MINMAX64", d=d, s=sources, ps=[p], flags=signed)


@on_words("VIADDMNMX", "UVIADDMNMX", modifiers=MINMAX_TYPES, since=90)
def viaddmnmx(i: Lowering) -> None:
    """d, a, b, c, predicate: the smaller or larger of a + b and c"""
    match i.operands:
        case [d, a, b, c, p]:
            minmax(i, d, (a, b, c), p, MINMAX_SUM)


@on_words("VIMNMX3", "UVIMNMX3", modifiers=MINMAX_TYPES, since=90)
def vimnmx3(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, c, p]:
            minmax(i, d, (a, b, c), p, MINMAX_3)


def minmax(
    i: Lowering,
    d: Operand,
    values: Sequence[Operand],
    p: Operand,
    flags: int,
    outputs: Sequence[Operand] = (),
) -> None:
    bits, signed = value_type(i)
    if "RELU" in i.modifiers and not signed:
        return
    word = i.u32 if bits == 32 else lambda operand: unsigned_operand(i, operand)
    i.emit(
        "MINMAX" if bits == 32 else "MINMAX_PACKED",
        d=d,
        pd=outputs,
        s=[word(x) for x in values],
        ps=[p],
        flags=flags | signed | flag(i, "RELU", MINMAX_RELU),
        aux=bits,
    )


@on_words("VABSDIFF", modifiers="U32", until=100)
def vabsdiff(i: Lowering) -> None:
    match i.operands:
        case [d, a, b, c]:
            _, signed = value_type(i)
            sources = [unsigned_operand(i, a), unsigned_operand(i, b), i.u32(c)]
            i.emit("ABSDIFF", d=d, s=sources, flags=signed)


@on_words("VABSDIFF4", modifiers="U8 ACC", until=100)
def vabsdiff4(i: Lowering) -> None:
    """Bytes apart; with .ACC their sum and c"""
    match i.operands:
        case [d, a, b, c]:
            total = "ACC" in i.modifiers
            if not total and not is_zero(c):
                i.refuse_operand(c, "RZ")
            i.emit(
                "ABSDIFF4",
                d=d,
                s=[unsigned_operand(i, a), unsigned_operand(i, b), i.u32(c)],
                flags=(0 if "U8" in i.modifiers else SIGNED) | (ABSDIFF_SUM if total else 0),
            )
