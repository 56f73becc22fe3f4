"""Shuffles, votes, reductions over a warp, special registers, and barriers as values."""

from __future__ import annotations

from toolkit.machine_code.instruction import Immediate, Operand, Register, Special
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import SIGNED
from toolkit.sass.isa.memory import ATOMICS
from toolkit.sass.isa.registry import Lowering, is_predicate, numbered, on_words, opcode
from toolkit.sass.isa.slots import SAVED

# Ins.flags of warp.h
TO_UNIFORM = 1 << 16
MATCH_ALL, MATCH_64 = 1, 2
BARRIER_CLEAR = 1
BARRIER_OF_WARP = 16  # the one that the warp reduced at last

SHUFFLES = numbered("IDX UP DOWN BFLY")
VOTES = numbered("ALL ANY EQ")
REDUCTIONS = {**ATOMICS, "SUM": ATOMICS["ADD"]}
BARRIER_RESULTS = numbered("POPC OR AND")
SPECIALS = numbered(
    "SR_TID.X SR_TID.Y SR_TID.Z SR_CTAID.X SR_CTAID.Y SR_CTAID.Z SR_LANEID SR_EQMASK SR_LTMASK "
    "SR_LEMASK SR_GTMASK SR_GEMASK SR_VIRTID SR_VIRTUALSMID SR_CgaCtaId SR_SWINHI SR_LWINHI "
    "SR_SMEMSZ SR_CLOCKLO SR_CLOCKHI SR_CgaSize"
)
OF_LANES = {"SR_LANEID"} | {x for x in SPECIALS if x.startswith("SR_TID") or x.endswith("MASK")}
# Nanoseconds go as fast as cycles here.
TIMERS = {"SR_GLOBALTIMERLO": "SR_CLOCKLO", "SR_GLOBALTIMERHI": "SR_CLOCKHI"}


@on_words("SHFL", modifiers=" ".join(SHUFFLES))
def shfl(i: Lowering) -> None:
    """predicate out, d, value, lane or distance, segment"""
    i.form("P d u32 u32 u32", aux=i.choice(SHUFFLES))


@on_words("VOTE", "VOTEU", modifiers=" ".join(VOTES))
def vote(i: Lowering) -> None:
    """[ballot,] predicate out, predicate in"""
    form = "P p" if len(i.operands) == 2 else "d P p"
    i.form(form, "VOTE", flags=to_uniform(i.operands[0]), aux=i.choice(VOTES))


def to_uniform(d: Operand) -> int:
    return TO_UNIFORM if isinstance(d, Register) and d.file == "UR" else 0


@on_words("ELECT")
def elect(i: Lowering) -> None:
    """predicate out, number of the lane, predicate in"""
    i.form("P d p", flags=to_uniform(i.operands[1]))


@on_words("MATCH", modifiers="ANY ALL U64")
def match_lanes(i: Lowering) -> None:
    """[predicate out,] d, value"""
    flags = i.flags({"ALL": MATCH_ALL, "U64": MATCH_64})
    form = ("P d " if flags & MATCH_ALL else "d ") + ("u64" if flags & MATCH_64 else "u32")
    match i.operands:
        case [*_, Register(negate=False, invert=False)]:
            i.form(form, flags=flags)


@on_words("REDUX", modifiers="OR XOR SUM MIN MAX S32")
@on_words("CREDUX", modifiers="MIN MAX S32")
def redux(i: Lowering) -> None:
    flags = to_uniform(i.operands[0]) | i.flags({"S32": SIGNED})
    i.form("d u32", "REDUX", flags=flags, aux=i.choice(REDUCTIONS, REDUCTIONS["AND"]))


@on_words("R2UR", modifiers="BROADCAST OR")
def r2ur(i: Lowering) -> None:
    """[predicate out: lanes with a different value,] d, a; .BROADCAST takes one lane's too.

    .OR leaves the predicate true where it is true already: of several words any may differ.
    """
    differs = [x for x in i.operands[:1] if is_predicate(x)]
    before = differs if "OR" in i.modifiers else []
    form = f"{'P' if differs else ''} d u32{' p' if before else ''}"
    if to_uniform(i.operands[-2]) and ("OR" not in i.modifiers or differs):
        i.form(form, operands=(*i.operands, *before), flags=TO_UNIFORM)


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


@opcode("RPCMOV", modifiers="32")
def rpcmov(i: Lowering) -> None:
    """A register to half of a register that keeps values (Rpc.LO), or back"""
    match i.operands:
        case [Special(name=name), Register() as register] if name in SAVED:
            i.emit("MOV", d=i.first_saved + SAVED.index(name), s=[i.u32(register)])
        case [Register() as register, Special(name=name)] if name in SAVED:
            i.emit("MOV", d=register, s=[i.first_saved + SAVED.index(name)])


def emit_special(i: Lowering, d: Operand, name: str) -> None:
    which = SPECIALS.get(TIMERS.get(name, name))
    if which is not None and not (to_uniform(d) and name in OF_LANES):
        i.emit("READ_SPECIAL", d=d, flags=to_uniform(d), aux=which)


@opcode("BMOV", modifiers="32 CLEAR")
def bmov(i: Lowering) -> None:
    """A convergence barrier to a register, the other way round, or one to another"""
    flags = i.flags({"CLEAR": BARRIER_CLEAR})
    match i.operands:
        case [Register(file="B", index=to_barrier), Register(file="B", index=barrier)]:
            i.emit("BARRIER_MOVE", flags=flags, aux=barrier, imm=to_barrier)
        case [Register(file="B", index=barrier), a] if not flags:
            i.emit("BARRIER_WRITE", s=[i.u32(a)], aux=barrier)
        case [d, Register(file="B", index=barrier)]:
            i.emit("BARRIER_READ", d=d, flags=flags, aux=barrier)


@opcode("B2R", modifiers="RESULT")
def b2r(i: Lowering) -> None:
    """d [, predicate]: result of the last BAR.RED, which is right before this instruction"""
    reduction = last_reduction(i)
    if reduction is None or "RESULT" not in i.modifiers:
        return
    barrier, result = reduction
    match i.operands:
        case [_] if result == "POPC":
            form = "d"
        case [Register(index=255), p] if result != "POPC" and is_predicate(p):
            form = "d P"
        case _:
            return
    i.form(form, "BARRIER_RESULT", flags=BARRIER_RESULTS[result], aux=barrier)


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
