"""Barriers in shared memory, clusters of blocks, and copies past registers and L1."""

from __future__ import annotations

import re

from toolkit.machine_code.instruction import Address, Instruction, Operand, Register, Special
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import flag
from toolkit.sass.isa.memory import (
    ATOMIC_TYPES,
    ATOMICS,
    SHARED,
    TYPE_SHIFT,
    U32,
    addressing,
    check_whole,
    width,
)
from toolkit.sass.isa.registry import Lowering, numbered, opcode
from toolkit.sass.isa.slots import Source

# Ins.aux and Ins.flags of mbarrier.h
ARRIVALS = numbered("0 1 R")
BYTES = numbered("0 1 R X")
BYTES_MODE_SHIFT = 2
LEAVE, TRYWAIT, OF_COPIES = 1 << 17, 1 << 18, 1 << 19
# and of bulk.h
MULTICAST, REDUCES = 1, 2
AXES_BITS = 3

_COUNTED = re.compile(r"A([01R])T([01RX])")
_AXES = {f"{axes}D": axes for axes in range(1, 6)}
_REDUCTIONS = "ADD MIN MAX AND OR XOR INC DEC"


@opcode(
    "SYNCS",
    modifiers="EXCH 64 ARRIVE TRANS64 RED OPTOUT PHASECHK TRYWAIT CCTL IV "
    + " ".join(f"A{arrivals}T{count}" for arrivals in ARRIVALS for count in BYTES),
    since=90,
)
def syncs(i: Lowering) -> None:
    """What is done to a barrier: .EXCH begins it, .CCTL ends it."""
    match i.operands:
        case [_] if "CCTL" in i.modifiers:
            i.emit("NOP")
        case [d, address, value] if "EXCH" in i.modifiers and "64" in i.modifiers:
            flags, offset, sources = addressing(i, address, SHARED)
            sources = [*sources, i.u64(value)]
            i.emit("MBARRIER_EXCHANGE", d=d, s=sources, flags=flags, imm=offset)
        case [d, address, count] if "ARRIVE" in i.modifiers:
            arrive(i, d, address, count)
        case [p, address, parity] if "PHASECHK" in i.modifiers:
            flags, offset, sources = addressing(i, address, SHARED)
            i.emit(
                "MBARRIER_CHECK",
                pd=[p],
                s=[*sources, i.u32(parity)],
                flags=flags | flag(i, "TRYWAIT", TRYWAIT),
                imm=offset,
            )


def arrive(i: Lowering, d: Operand, address: Operand, count: Operand) -> None:
    """d, address, count: of arrivals (.AR), of bytes that are to come (.TR) or came (.TX).

    Without .AnTn it is one arrival that announces bytes.
    """
    found = next(filter(None, map(_COUNTED.fullmatch, i.modifiers)), None)
    arrivals, of_bytes = found.groups() if found else ("1", "R")
    flags, offset, sources = addressing(i, address, SHARED)
    check_whole(i, count)
    i.emit(
        "MBARRIER_ARRIVE",
        d=d,
        s=[*sources, i.u32(count)],
        flags=flags | flag(i, "OPTOUT", LEAVE),
        imm=offset,
        aux=ARRIVALS[arrivals] | BYTES[of_bytes] << BYTES_MODE_SHIFT,
    )


@opcode("ARRIVES", modifiers="LDGSTSBAR 64 ARVCNT TRANSCNT", since=80)
def arrives(i: Lowering) -> None:
    """address: the copies of each lane arrive, which are there already, or what stood for them."""
    (address,) = i.operands
    flags, offset, sources = addressing(i, address, SHARED)
    came = "TRANSCNT" in i.modifiers
    i.emit(
        "MBARRIER_ARRIVE",
        s=[*sources, Source(i.word(1))],
        flags=flags | OF_COPIES,
        imm=offset,
        aux=BYTES["X"] << BYTES_MODE_SHIFT if came else ARRIVALS["1"],
    )


@opcode("UCGABAR_ARV", since=90)
def ucgabar_arv(i: Lowering) -> None:
    i.emit("CLUSTER_ARRIVE")


@opcode("UCGABAR_WAIT", since=90)
def ucgabar_wait(i: Lowering) -> None:
    i.emit("CLUSTER_WAIT")


@opcode("UTMALDG", modifiers=f"{' '.join(_AXES)} MULTICAST", since=90)
def utmaldg(i: Lowering) -> None:
    """[where to, barrier, coordinates], [map] [, blocks of the cluster] [, cache hint]"""
    match without_hint(i):
        case [shared, tensor_map, *blocks] if axes(i) and len(blocks) == (
            "MULTICAST" in i.modifiers
        ):
            i.emit(
                "TENSOR_LOAD",
                s=[uniform(i, x) for x in (shared, tensor_map, *blocks)],
                flags=flag(i, "MULTICAST", MULTICAST),
                aux=axes(i),
            )


@opcode("UTMASTG", modifiers=" ".join(_AXES), since=90)
def utmastg(i: Lowering) -> None:
    """[where from, coordinates], [map] [, cache hint]"""
    match without_hint(i):
        case [shared, tensor_map] if axes(i):
            i.emit("TENSOR_STORE", s=[uniform(i, x) for x in (shared, tensor_map)], aux=axes(i))


@opcode("UTMAREDG", modifiers=f"{' '.join(_AXES)} {_REDUCTIONS}", since=90)
def utmaredg(i: Lowering) -> None:
    """As UTMASTG; the map knows the type of what is added up."""
    match without_hint(i):
        case [shared, tensor_map] if axes(i):
            i.emit(
                "TENSOR_STORE",
                s=[uniform(i, x) for x in (shared, tensor_map)],
                flags=REDUCES,
                aux=axes(i) | reduction(i) << AXES_BITS,
            )


@opcode("UBLKCP", modifiers="S G MULTICAST", since=90)
def ublkcp(i: Lowering) -> None:
    """[where to, barrier], [where from], 16 bytes [, cache hint]; .S and .G say where each is"""
    match without_hint(i):
        case [target, source, size] if direction(i):
            i.emit(
                direction(i),
                s=[uniform(i, x) for x in (target, source, size)],
                flags=flag(i, "MULTICAST", MULTICAST),
            )


@opcode(
    "UBLKRED",
    modifiers=f"S G RN {_REDUCTIONS} {' '.join(ATOMIC_TYPES)}",
    since=90,
)
def ublkred(i: Lowering) -> None:
    """As UBLKCP"""
    kind = next((ATOMIC_TYPES[name] for name in i.modifiers if name in ATOMIC_TYPES), U32)
    match without_hint(i):
        case [target, source, size] if direction(i):
            i.emit(
                direction(i),
                s=[uniform(i, x) for x in (target, source, size)],
                flags=REDUCES,
                aux=(reduction(i) | kind << TYPE_SHIFT) << AXES_BITS,
            )


def direction(i: Instruction | Lowering) -> str:
    """The operation for a target and a source in global (.G) or shared memory (.S)."""
    places = "".join(name for name in i.modifiers if name in ("S", "G"))
    return {"SG": "BULK_LOAD", "GS": "BULK_STORE", "SS": "BULK_SHARED"}.get(places, "")


def reduction(i: Lowering) -> int:
    return next(ATOMICS[name] for name in i.modifiers if name in ATOMICS)


def axes(i: Lowering) -> int:
    return next((_AXES[name] for name in i.modifiers if name in _AXES), 0)


def without_hint(i: Lowering) -> list[Operand]:
    """The operands but for what says how L2 shall keep the data."""
    return [x for x in i.operands if not (isinstance(x, Special) and x.name.startswith("desc["))]


def uniform(i: Lowering, operand: Operand) -> Source:
    """The first of the uniform registers that an operand begins at."""
    match operand:
        case Address(registers=(Register(file="UR") as register,), offset=0):
            return Source(i.slot(register))
        case Register(file="UR"):
            return Source(i.slot(operand))
    i.refuse_operand(operand, "a uniform register")


@opcode("STAS", modifiers="64 128", since=90)
def stas(i: Lowering) -> None:
    """[address and barrier], data"""
    match i.operands:
        case [Address(registers=(Register(file="R") as pair,), offset=offset), data]:
            check_whole(i, data)
            i.emit(
                "STORE_ASYNC",
                s=[Source(i.slot(pair, words=2)), POOL, i.u32(data)],
                width=width(i),
                imm=offset,
            )


@opcode("UTMACMDFLUSH", since=90)
def utmacmdflush(i: Lowering) -> None:
    i.emit("BULK_GROUP")


@opcode("UTMACCTL", modifiers="PF IV IVALL", since=90)
@opcode("UTMAPF", modifiers=f"L2 {' '.join(_AXES)}", since=90)
@opcode("UBLKPF", modifiers="L2", since=90)
def prefetch(i: Lowering) -> None:
    """What is only fetched earlier, or again, is the same."""
    i.emit("NOP")
