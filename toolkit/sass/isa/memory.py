"""Loads and stores of global, shared, local and constant memory."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.machine_code.instruction import Address, Constant, Instruction, Operand, Register
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import TRUE, is_predicate
from toolkit.sass.isa.registry import Lowering, numbered, opcode
from toolkit.sass.isa.slots import Source

# Ins.flags of memory.h
ADDRESS_64, UNIFORM_64, ADDRESS_SIGNED, SIGNED_DATA = 1, 2, 4, 8
SPACE_SHIFT, SCALE_SHIFT = 8, 12
STRONG = 1 << 18
GLOBAL, SHARED, LOCAL, CONSTANT, GENERIC = range(5)
SPACES = {"G": GLOBAL, "S": SHARED, "L": LOCAL, "": GENERIC}  # at the end of an opcode

WIDTHS = (
    {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "U64": 8, "S64": 8, "F64": 8, "128": 16}
    | {"F32x2": 8, "F16x4": 8, "BF16x4": 8, "F32x4": 16, "F16x8": 16, "BF16x8": 16}  # of atomics
)
# What says where a value may be cached or how it is ordered does not change it.
CACHING = (
    "E CONSTANT STRONG WEAK SYS GPU CTA SM EF EL EU LU NA MMIO PRIVATE CI GPU VC CV "
    "LTC64B LTC128B LTC256B RO"
)
DATA = "U8 S8 U16 S16 64 128 U"
SCALES = {"X4": 2, "X8": 3, "X16": 4}


@opcode("LDC", "ULDC", "LDCU", modifiers="64 128 U8 S8 U16 S16")
def ldc(i: Lowering) -> None:
    """register, constant: at a fixed offset it is a move, else a load."""
    d, constant = i.operands
    assert isinstance(constant, Constant)
    words = width(i) // 4
    flags = SIGNED_DATA if {"S8", "S16"} & set(i.modifiers) else 0
    if constant.base is None and words == 1 and constant.bank_register is None:
        i.emit("MOV", d=d, s=[i.u32(constant)])
        return
    base = Source(i.slot(constant.base)) if constant.base else Source(POOL)
    if constant.bank_register is not None:
        i.refuse_operand(constant, "a numbered bank")
    i.emit(
        "LOAD_CONSTANT",
        d=d,
        s=[base],
        width=width(i),
        aux=constant.bank,
        imm=constant.offset,
        flags=flags,
    )


ATOMICS = numbered("ADD MIN MAX AND OR XOR INC DEC EXCH CAS CAST")
U32, S32, U64, S64, F32, F64, F16X2, BF16X2, B128 = range(9)
ATOMIC_TYPES = {
    "U32": U32,
    "S32": S32,
    "64": U64,
    "U64": U64,
    "S64": S64,
    "F32": F32,
    "F64": F64,
    "F16x2": F16X2,
    "BF16x2": BF16X2,
    "BF16_V2": BF16X2,
    "128": B128,
    # several values that lie side by side, each of them atomic
    "F32x2": F32,
    "F32x4": F32,
    "F16x4": F16X2,
    "F16x8": F16X2,
    "BF16x4": BF16X2,
    "BF16x8": BF16X2,
}
# what is done to them: all that the compiler was seen to emit
OF_HALVES, OF_128 = {"ADD", "MIN", "MAX"}, {"EXCH", "CAS"}
TYPE_SHIFT, ATOMIC_FTZ = 8, 1 << 16  # of atomics.h
ATOMIC_MODIFIERS = f"{CACHING} {' '.join(ATOMICS)} {' '.join(ATOMIC_TYPES)} FTZ RN SPIN"


@opcode("ATOM", "ATOMG", modifiers=ATOMIC_MODIFIERS)
def atom(i: Lowering) -> None:
    """predicate, register, address, data [, new data]

    The predicate of ATOM says whether the address is one that it can work on.
    """
    predicate, d, address, *data = i.operands
    atomic(i, GLOBAL if i.opcode == "ATOMG" else GENERIC, predicate, d, address, data)


@opcode("ATOMS", modifiers=f"{ATOMIC_MODIFIERS} POPC 32")
def atoms(i: Lowering) -> None:
    """register or predicate, address, data [, new data]; .POPC.INC adds one for each lane"""
    d, address, *data = i.operands
    if "POPC" in i.modifiers:
        atomic(i, SHARED, None, d, address, [], constant=1)
    elif is_predicate(d):
        atomic(i, SHARED, d, None, address, data)
    else:
        atomic(i, SHARED, None, d, address, data)


@opcode("RED", "REDG", modifiers=ATOMIC_MODIFIERS)
def red(i: Lowering) -> None:
    address, *data = i.operands
    atomic(i, GLOBAL if i.opcode == "REDG" else GENERIC, None, None, address, data)


def atomic(
    i: Lowering,
    space: int,
    predicate: Operand | None,
    d: Operand | None,
    address: Operand,
    data: Sequence[Operand],
    constant: int | None = None,
) -> None:
    what = "ADD" if constant else next(name for name in i.modifiers if name in ATOMICS)
    kind = next((ATOMIC_TYPES[name] for name in i.modifiers if name in ATOMIC_TYPES), U32)
    if "64" in i.modifiers and "S64" in i.modifiers:
        kind = S64
    if (kind in (F16X2, BF16X2) and what not in OF_HALVES) or (kind == B128 and what not in OF_128):
        return
    if kind in (F32, F64) and what != "ADD":
        return
    flags, offset, sources = addressing(i, address, space)
    for operand in data:
        check_whole(i, operand)
    values = [Source(i.slot(x)) for x in data if isinstance(x, Register)]
    if constant is not None:
        values = [Source(i.word(constant))]
    i.emit(
        "ATOMIC",
        d=d,
        pd=[predicate] if predicate is not None else [],
        s=[*sources, *values],
        width=width(i),
        flags=flags,
        imm=offset,
        aux=ATOMICS[what] | kind << TYPE_SHIFT | (ATOMIC_FTZ if "FTZ" in i.modifiers else 0),
    )


@opcode("QSPC", modifiers="E S L D G")
def qspc(i: Lowering) -> None:
    """predicate, RZ, address: whether it is in shared (.S), local (.L) or another memory"""
    predicate, _, address = i.operands
    _, offset, sources = addressing(i, address, GENERIC)
    space = next((s for name, s in QUERIES.items() if name in i.modifiers), None)
    if space is not None:
        i.emit(
            "IN_SPACE",
            pd=[predicate],
            s=sources,
            flags=ADDRESS_64,
            imm=offset,
            aux=space,
        )


# No block is in another's cluster here: no address is in distributed shared memory (.D).
QUERIES = {"S": SHARED, "L": LOCAL, "G": GLOBAL, "D": CONSTANT}

COPY_PARTIAL = 1 << 17  # of atomics.h


@opcode("LDGSTS", modifiers=f"{CACHING} 64 128 BYPASS ACCESS ZFILL", since=80)
def ldgsts(i: Lowering) -> None:
    """shared address, global address [, predicate: false copies zeros]

    With .ZFILL the low bits of the global address say how many bytes at the end are not read but
    become zeros.
    """
    shared, source, *predicates = i.operands
    flags, shared_offset, shared_sources = addressing(i, shared, SHARED)
    wide, offset, sources = addressing(i, source, GLOBAL)
    i.emit(
        "COPY_ASYNC",
        s=[*shared_sources, *sources],
        ps=predicates or [TRUE],
        width=width(i),
        flags=flags | wide | (COPY_PARTIAL if "ZFILL" in i.modifiers else 0),
        imm=offset,
        aux=shared_offset & 0xFFFFFFFF,
    )


@opcode("LD", "LDG", "LDL", modifiers=f"{CACHING} {DATA}")
@opcode("LDS", modifiers=DATA)
def load(i: Lowering) -> None:
    d, address = i.operands[0], i.operands[-1]
    space = SPACES[i.opcode.removeprefix("LD")]
    check_whole(i, d)
    flags, offset, sources = addressing(i, address, space)
    flags |= SIGNED_DATA if {"S8", "S16"} & set(i.modifiers) else 0
    flags |= STRONG if is_strong(i) and space in (GLOBAL, GENERIC) else 0
    i.emit("LOAD", d=d, s=sources, width=width(i), flags=flags, imm=offset)


def is_strong(i: Instruction | Lowering) -> bool:
    """Whether an access sees what other blocks just did."""
    return "STRONG" in i.modifiers or "MMIO" in i.modifiers


@opcode("ST", "STG", "STL", modifiers=f"{CACHING} {DATA}")
@opcode("STS", modifiers=DATA)
def store(i: Lowering) -> None:
    address, data = i.operands
    space = SPACES[i.opcode.removeprefix("ST")]
    flags, offset, sources = addressing(i, address, space)
    check_whole(i, data)
    assert isinstance(data, Register)
    data_slot = Source(i.slot(data))
    i.emit("STORE", s=[*sources, data_slot], width=width(i), flags=flags, imm=offset)


def check_whole(i: Lowering, operand: Operand) -> None:
    """Refuse data that is anything but a register as it is."""
    match operand:
        case Register(negate=False, absolute=False, invert=False, suffix=()):
            return
    i.refuse_operand(operand, "a whole register")


def width(i: Instruction | Lowering) -> int:
    """Bytes per lane."""
    return next((WIDTHS[name] for name in i.modifiers if name in WIDTHS), 4)


def addressing(i: Lowering, operand: Operand, space: int) -> tuple[int, int, list[Source]]:
    """Flags, offset and the two address sources: a register or pair, a uniform one or pair.

    In global and generic memory an address has 64 bits. A lane's register is a pair where it says
    .64, and on sm_75 wherever the instruction has .E; a uniform register is always one.
    """
    if not isinstance(operand, Address):
        i.refuse_operand(operand, "an address")
    wide = space in (GLOBAL, GENERIC)
    flags = space << SPACE_SHIFT
    lane, uniform = Source(POOL), Source(POOL)
    lanes = [register for register in operand.registers if register.file == "R"]
    uniforms = [register for register in operand.registers if register.file == "UR"]
    if len(lanes) > 1 or len(uniforms) > 1:
        i.refuse_operand(operand, "at most one register and one uniform register")
    for register in lanes:
        lane = Source(i.slot(register))
        narrow = {"U32", "S32"} & set(register.suffix)
        if wide and not narrow and ("64" in register.suffix or "E" in i.modifiers):
            flags |= ADDRESS_64
        if "S32" in register.suffix:
            flags |= ADDRESS_SIGNED
        for name in register.suffix:
            flags |= SCALES.get(name, 0) << SCALE_SHIFT
    for register in uniforms:
        uniform = Source(i.slot(register))
        flags |= UNIFORM_64 if wide else 0
    return flags, operand.offset, [lane, uniform]
