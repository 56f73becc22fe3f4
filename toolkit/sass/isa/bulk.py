"""Barriers in shared memory, clusters of blocks, and copies past registers and L1."""

from __future__ import annotations

import re

from toolkit.machine_code.instruction import Address, Instruction, Operand, Register, Special
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.memory import (
    ATOMIC_TYPES,
    ATOMICS,
    BF16X2,
    F16X2,
    S32,
    S64,
    SHARED,
    TYPE_SHIFT,
    U32,
    U64,
    access,
    check_whole,
    width,
)
from toolkit.sass.isa.registry import Lowering, numbered, opcode, reader
from toolkit.sass.isa.slots import Source

# Ins.aux and Ins.flags of mbarrier.h
ARRIVALS = numbered("0 1 R")
BYTES = numbered("0 1 R X", shift=2)
LEAVE, TRYWAIT, OF_COPIES, TOGETHER = 1 << 17, 1 << 18, 1 << 19, 1 << 20
# and of bulk.h
MULTICAST, REDUCES = 1, 2
AXES_BITS = 3

_COUNTED = re.compile(r"A([01R])T([01RX])")
_AXES = {f"{axes}D": axes for axes in range(1, 6)}
_REDUCTIONS = "ADD MIN MAX AND OR XOR INC DEC"


@opcode(
    "SYNCS",
    modifiers="EXCH 64 ARRIVE TRANS64 RED TMASK OPTOUT PHASECHK TRYWAIT CCTL IV IVALL "
    + " ".join(f"A{arrivals}T{count}" for arrivals in ARRIVALS for count in BYTES),
)
def syncs(i: Lowering) -> None:
    """Operations on an mbarrier: .EXCH initializes it, .CCTL invalidates it."""
    match i.operands:
        case [_] | [] if "CCTL" in i.modifiers:
            i.emit("NOP")
        case [d, address, value] if "EXCH" in i.modifiers and "64" in i.modifiers:
            access(i, "MBARRIER_EXCHANGE", address, SHARED, [i.u64(value)], d=d)
        case [d, address, count] if "ARRIVE" in i.modifiers:
            arrive(i, d, address, count)
        case [p, address, parity] if "PHASECHK" in i.modifiers:
            flags = i.flags({"TRYWAIT": TRYWAIT})
            access(i, "MBARRIER_CHECK", address, SHARED, [i.u32(parity)], pd=[p], flags=flags)


def arrive(i: Lowering, d: Operand, address: Operand, count: Operand) -> None:
    """d, address, count: of arrivals (.AR), of bytes that are to come (.TR) or came (.TX).

    Without .AnTn it is one arrival that announces bytes. With .TMASK lanes arrive together, and
    code that follows tells them apart (`mbarrier.arrive.noComplete`).
    """
    found = next(filter(None, map(_COUNTED.fullmatch, i.modifiers)), None)
    arrivals, of_bytes = found.groups() if found else ("1", "R")
    aux = ARRIVALS[arrivals] | BYTES[of_bytes]
    check_whole(i, count)
    flags = i.flags({"OPTOUT": LEAVE, "TMASK": TOGETHER})
    access(i, "MBARRIER_ARRIVE", address, SHARED, [i.u32(count)], d=d, flags=flags, aux=aux)


@opcode("ARRIVES", modifiers="LDGSTSBAR 64 ARVCNT TRANSCNT")
def arrives(i: Lowering) -> None:
    """address: the copies of each lane arrive; they, or the loads in their place, are complete."""
    (address,) = i.operands
    if not {"ARVCNT", "TRANSCNT"} & set(i.modifiers):  # before sm_90
        access(i, "MBARRIER_COUNT", address, SHARED, width=8, flags=OF_COPIES)
        return
    aux = BYTES["X"] if "TRANSCNT" in i.modifiers else ARRIVALS["1"]
    access(i, "MBARRIER_ARRIVE", address, SHARED, [i.words(1)], flags=OF_COPIES, aux=aux)


# Opcodes without operands that matter, and their operations.
_PLAIN = {
    "UCGABAR_ARV": "CLUSTER_ARRIVE",
    "UCGABAR_WAIT": "CLUSTER_WAIT",
    "UTMACMDFLUSH": "BULK_GROUP",
}


@opcode(*_PLAIN)
def plain(i: Lowering) -> None:
    i.emit(_PLAIN[i.opcode])


@opcode("UTMALDG", modifiers=f"{' '.join(_AXES)} MULTICAST")
def utmaldg(i: Lowering) -> None:
    """[where to, barrier, coordinates], [map] [, blocks of the cluster] [, cache hint]"""
    blocks = " uniform" if "MULTICAST" in i.modifiers else ""
    bulk(i, "TENSOR_LOAD" if axes(i) else "", f"uniform uniform{blocks}", axes(i))


@opcode("UTMASTG", modifiers=" ".join(_AXES))
@opcode("UTMAREDG", modifiers=f"{' '.join(_AXES)} {_REDUCTIONS}")
def utmastg(i: Lowering) -> None:
    """[source, coordinates], [map] [, cache hint]; the map has the type of the added values."""
    bulk(i, "TENSOR_STORE" if axes(i) else "", "uniform uniform", axes(i))


@opcode("UBLKCP", modifiers="S G MULTICAST")
@opcode("UBLKRED", modifiers=f"S G RN {_REDUCTIONS} F16 BF16 {' '.join(ATOMIC_TYPES)}")
def ublkcp(i: Lowering) -> None:
    """[where to, barrier], [where from], 16 bytes [, cache hint]; .S and .G say where each is"""
    halves = {"F16": F16X2, "BF16": BF16X2}  # which lie in pairs
    kind = i.first(ATOMIC_TYPES | halves, U32) << TYPE_SHIFT
    bulk(i, direction(i), "uniform uniform uniform", kind << AXES_BITS)


def bulk(i: Lowering, operation: str, form: str, aux: int) -> None:
    """A copy, or a reduction where the opcode says so; hints for L2 change nothing."""
    flags = i.flags({"MULTICAST": MULTICAST})
    if "RED" in i.opcode:
        flags, aux = REDUCES, aux | i.choice(ATOMICS) << AXES_BITS
    hints = [x for x in i.operands if isinstance(x, Special) and x.name.startswith("desc[")]
    operands = [x for x in i.operands if x not in hints]
    if operation:
        i.form(form, operation, operands=operands, flags=flags, aux=aux)


def direction(i: Instruction | Lowering) -> str:
    """The operation for a target and a source in global (.G) or shared memory (.S)."""
    places = "".join(name for name in i.modifiers if name in ("S", "G"))
    return {"SG": "BULK_LOAD", "GS": "BULK_STORE", "SS": "BULK_SHARED"}.get(places, "")


def axes(i: Lowering) -> int:
    return i.first(_AXES, 0)


@reader
def uniform(i: Lowering, operand: Operand, position: int) -> Source:
    """The first of the uniform registers that an operand begins at."""
    match operand:
        case Address(registers=(Register(file="UR") as register,), offset=0):
            return Source(i.slot(register))
        case Register(file="UR"):
            return Source(i.slot(operand))
    i.refuse_operand(operand, "a uniform register")


@opcode("UMEMSETS", modifiers="64")
def umemsets(i: Lowering) -> None:
    """URZ, [address], words of 64 bits: zeros to shared memory (`st.bulk`)"""
    match i.operands:
        case [Register(file="UR", index=255), address, count] if "64" in i.modifiers:
            i.form("uniform uniform", "SHARED_ZEROS", operands=(address, count))


@opcode("STAS", modifiers="64 128")
@opcode("REDAS", modifiers=f"{_REDUCTIONS} S32 64 U64 S64")
def stas(i: Lowering) -> None:
    """[address and barrier], data; REDAS combines it with the word that is there"""
    reduces = i.opcode == "REDAS"
    kind = i.choice({"S32": S32, "64": U64, "U64": U64, "S64": S64}, U32)
    match i.operands:
        case [Address(registers=(Register(file="R") as pair,), offset=offset), data]:
            check_whole(i, data)
            i.emit(
                "STORE_ASYNC",
                s=[Source(i.slot(pair, words=2)), POOL, i.u32(data)],
                width=width(i),
                imm=offset,
                flags=REDUCES if reduces else 0,
                aux=i.choice(ATOMICS) | kind << TYPE_SHIFT if reduces else 0,
            )


@opcode("UTMACCTL", modifiers="PF IV IVALL")
@opcode("UTMAPF", modifiers=f"L2 {' '.join(_AXES)}")
@opcode("UBLKPF", modifiers="L2")
def prefetch(i: Lowering) -> None:
    """Prefetches and invalidations of caches do nothing here: they change no value."""
    i.emit("NOP")
