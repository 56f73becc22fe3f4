"""Shuffles, votes, reductions over a warp, special registers, and barriers as values."""

from __future__ import annotations

from toolkit.machine_code.instruction import RZ, Immediate, Operand, Register, Special
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import SIGNED, choice, flag, is_predicate, on_words
from toolkit.sass.isa.registry import Lowering, numbered, opcode

# Ins.flags of warp.h
TO_UNIFORM = 1 << 16
MATCH_ALL, MATCH_64 = 1, 2
BARRIER_CLEAR = 1
BARRIER_OF_WARP = 16  # the one that the warp reduced at last

SHUFFLES = numbered("IDX UP DOWN BFLY")
VOTES = numbered("ALL ANY EQ")
REDUCTIONS = numbered("AND OR XOR SUM MIN MAX")
BARRIER_RESULTS = numbered("POPC OR AND")
SPECIALS = numbered(
    "SR_TID.X SR_TID.Y SR_TID.Z SR_CTAID.X SR_CTAID.Y SR_CTAID.Z SR_LANEID SR_EQMASK SR_LTMASK "
    "SR_LEMASK SR_GTMASK SR_GEMASK SR_VIRTID SR_VIRTUALSMID SR_CgaCtaId SR_SWINHI SR_LWINHI "
    "SR_SMEMSZ SR_CLOCKLO SR_CLOCKHI"
)
OF_LANES = {"SR_LANEID"} | {x for x in SPECIALS if x.startswith("SR_TID") or x.endswith("MASK")}
# Nanoseconds go as fast as cycles here.
TIMERS = {"SR_GLOBALTIMERLO": "SR_CLOCKLO", "SR_GLOBALTIMERHI": "SR_CLOCKHI"}


@on_words("SHFL", modifiers=" ".join(SHUFFLES))
def shfl(i: Lowering) -> None:
    """predicate out, d, value, lane or distance, segment"""
    match i.operands:
        case [p, d, a, b, c]:
            i.emit(
                "SHFL",
                d=d,
                pd=[p],
                s=map(i.u32, (a, b, c)),
                aux=choice(i, SHUFFLES),
            )


@on_words("VOTE", "VOTEU", modifiers=" ".join(VOTES))
def vote(i: Lowering) -> None:
    """[ballot,] predicate out, predicate in"""
    match i.operands:
        case [d, p, q]:
            emit_vote(i, d, p, q)
        case [p, q]:
            emit_vote(i, Register(file="R", index=RZ), p, q)


def emit_vote(i: Lowering, d: Operand, p: Operand, q: Operand) -> None:
    i.emit(
        "VOTE",
        d=d,
        pd=[p],
        ps=[q],
        flags=to_uniform(d),
        aux=choice(i, VOTES),
    )


def to_uniform(d: Operand) -> int:
    return TO_UNIFORM if isinstance(d, Register) and d.file == "UR" else 0


@on_words("ELECT", since=90)
def elect(i: Lowering) -> None:
    """predicate out, number of the lane, predicate in"""
    match i.operands:
        case [p, d, q] if is_predicate(q):
            i.emit(
                "ELECT",
                d=d,
                pd=[p],
                ps=[q],
                flags=to_uniform(d),
            )


@on_words("MATCH", modifiers="ANY ALL U64")
def match_lanes(i: Lowering) -> None:
    """[predicate out,] d, value"""
    predicates = [x for x in i.operands[:1] if is_predicate(x)]
    every = "ALL" in i.modifiers
    match i.operands[len(predicates) :]:
        case [d, Register() as a] if len(predicates) == every and not (a.negate or a.invert):
            wide = "U64" in i.modifiers
            i.emit(
                "MATCH",
                d=d,
                pd=predicates,
                s=[i.slot(a, words=2 if wide else 1)],
                flags=(MATCH_ALL if every else 0) | (MATCH_64 if wide else 0),
            )


@on_words("REDUX", modifiers="OR XOR SUM MIN MAX S32", since=80)
@on_words("CREDUX", modifiers="MIN MAX S32", since=100)
def redux(i: Lowering) -> None:
    match i.operands:
        case [d, a]:
            i.emit(
                "REDUX",
                d=d,
                s=[i.u32(a)],
                flags=to_uniform(d) | flag(i, "S32", SIGNED),
                aux=choice(i, REDUCTIONS, REDUCTIONS["AND"]),
            )


@on_words("R2UR", modifiers="BROADCAST")
def r2ur(i: Lowering) -> None:
    """[predicate out: the lanes whose value is another,] d, a; .BROADCAST takes one lane's too."""
    differs = [x for x in i.operands[:1] if is_predicate(x)]
    match i.operands[len(differs) :]:
        case [d, a] if to_uniform(d):
            i.emit(
                "R2UR",
                d=d,
                pd=differs,
                s=[i.u32(a)],
                flags=TO_UNIFORM,
            )


@opcode("S2R", "S2UR")
def s2r(i: Lowering) -> None:
    match i.operands:
        case [d, Special(name=name)]:
            emit_special(i, d, name)


@opcode("CS2R", "CS2UR", modifiers="32")
def cs2r(i: Lowering) -> None:
    """A register pair, or a register with .32"""
    match i.operands:
        case [d, Special(name="SRZ")] if not to_uniform(d):
            i.emit("MOV" if "32" in i.modifiers else "MOV64", d=d, s=[POOL])
        case [d, Special(name=name)] if "32" in i.modifiers:
            emit_special(i, d, name)
        case [d, Special(name="SR_CLOCKLO" | "SR_GLOBALTIMERLO")]:
            i.emit("CLOCK64", d=d, flags=to_uniform(d))


def emit_special(i: Lowering, d: Operand, name: str) -> None:
    which = SPECIALS.get(TIMERS.get(name, name))
    if which is not None and not (to_uniform(d) and name in OF_LANES):
        i.emit("READ_SPECIAL", d=d, flags=to_uniform(d), aux=which)


@opcode("BMOV", modifiers="32 CLEAR")
def bmov(i: Lowering) -> None:
    """A convergence barrier to a register, the other way round, or one to another"""
    match i.operands:
        case [Register(file="B", index=to_barrier), Register(file="B", index=barrier)]:
            flags = flag(i, "CLEAR", BARRIER_CLEAR)
            i.emit("BARRIER_MOVE", flags=flags, aux=barrier, imm=to_barrier)
        case [Register(file="B", index=barrier), a] if "CLEAR" not in i.modifiers:
            i.emit("BARRIER_WRITE", s=[i.u32(a)], aux=barrier)
        case [d, Register(file="B", index=barrier)]:
            flags = flag(i, "CLEAR", BARRIER_CLEAR)
            i.emit("BARRIER_READ", d=d, flags=flags, aux=barrier)


@opcode("B2R", modifiers="RESULT")
def b2r(i: Lowering) -> None:
    """d [, predicate]: what the last BAR.RED found, which stands right before"""
    if "RESULT" not in i.modifiers:
        return
    reduction = last_reduction(i)
    if reduction is None:
        return
    barrier, result = reduction
    match i.operands:
        case [d] if result == "POPC":
            outputs = []
        case [Register(index=255) as d, p] if result != "POPC" and is_predicate(p):
            outputs = [p]
        case _:
            return
    i.emit(
        "BARRIER_RESULT",
        d=d,
        pd=outputs,
        flags=BARRIER_RESULTS[result],
        aux=barrier,
    )


def last_reduction(i: Lowering) -> tuple[int, str] | None:
    """The barrier and the kind of the last BAR.RED above."""
    for earlier in reversed(i.instructions):
        if (
            earlier.address < i.instruction.address
            and earlier.opcode == "BAR"
            and "RED" in earlier.modifiers
        ):
            kinds = [name for name in earlier.modifiers if name in BARRIER_RESULTS]
            match earlier.operands[0]:
                case Immediate(integer=barrier) if kinds:
                    return barrier, kinds[0]
                case Register() if kinds:
                    return BARRIER_OF_WARP, kinds[0]
            return None
    return None
