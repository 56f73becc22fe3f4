"""Loads and stores of global, shared, local and constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.machine_code.instruction import Address, Constant, Instruction, Operand, Register
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.integer import TRUE
from toolkit.sass.isa.registry import Lowering, is_predicate, numbered, on_words, opcode
from toolkit.sass.isa.slots import Source

# Ins.flags of memory.h
ADDRESS_64, UNIFORM_64, ADDRESS_SIGNED = 1, 2, 4
SIGNED_DATA = {"S8": 8, "S16": 8}
SPACE_SHIFT, SCALE_SHIFT = 8, 12
STRONG = 1 << 18
INDEXED = 1 << 19
GLOBAL, SHARED, LOCAL, CONSTANT, GENERIC = range(5)
SPACES = {"G": GLOBAL, "S": SHARED, "L": LOCAL, "": GENERIC}  # at the end of an opcode

WIDTHS = (
    {
        "U8": 1,
        "S8": 1,
        "U16": 2,
        "S16": 2,
        "64": 8,
        "U64": 8,
        "S64": 8,
        "F64": 8,
        "128": 16,
        "256": 32,
    }
    | {"F32x2": 8, "F16x4": 8, "BF16x4": 8, "F32x4": 16, "F16x8": 16, "BF16x8": 16}  # of atomics
)
# What says where a value may be cached or how it is ordered does not change it.
CACHING = (
    "E CONSTANT STRONG WEAK SYS GPU CTA SM EF EL EU LU NA MMIO PRIVATE CI GPU VC CV "
    "LTC64B LTC128B LTC256B RO"
)
DATA = "U8 S8 U16 S16 64 128 U"
WIDE = "256 ENL2 EFL2 ELL2"  # 256 bits, and how long L2 keeps them (sm_100 and up)
ALL_WORDS = 0xFF
SCALES = {"X4": 2, "X8": 3, "X16": 4}


@opcode("LDC", "ULDC", "LDCU", modifiers="64 128 U8 S8 U16 S16")
def ldc(i: Lowering) -> None:
    """register, constant: at a fixed offset it is a move, else a load."""
    d, constant = i.operands
    assert isinstance(constant, Constant)
    if constant.base is None and width(i) // 4 == 1 and constant.bank_register is None:
        i.form("d u32", "MOV")
        return
    if constant.bank_register is not None:
        i.refuse_operand(constant, "a numbered bank")
    i.emit(
        "LOAD_CONSTANT",
        d=d,
        s=[i.slot(constant.base) if constant.base else POOL],
        width=width(i),
        aux=constant.bank,
        imm=constant.offset,
        flags=i.flags(SIGNED_DATA) | (INDEXED if constant.is_indexed else 0),
    )


ATOMICS = numbered("ADD MIN MAX AND OR XOR INC DEC EXCH CAS CAST")
U32, S32, U64, S64, F32, F64, F16X2, BF16X2, B128 = range(9)
ATOMIC_TYPES = {
    "U32": U32,
    "S32": S32,
    "64": U64,
    "U64": U64,
    "S64": S64,
    "F64": F64,
    "128": B128,
    # several values that lie side by side, each of them atomic
    **dict.fromkeys(("F32", "F32x2", "F32x4"), F32),
    **dict.fromkeys(("F16x2", "F16x4", "F16x8"), F16X2),
    **dict.fromkeys(("BF16x2", "BF16_V2", "BF16x4", "BF16x8"), BF16X2),
}
# what is done to them, where it is not everything: all that the compiler was seen to emit
DONE_TO = {
    **{kind: {"ADD", "MIN", "MAX"} for kind in (F16X2, BF16X2)},
    **{kind: {"ADD"} for kind in (F32, F64)},
    B128: {"EXCH", "CAS"},
}
TYPE_SHIFT, ATOMIC_FTZ, ATOMIC_COUNTS = 8, 1 << 16, 1 << 17  # of atomics.h
ATOMIC_MODIFIERS = f"{CACHING} {' '.join(ATOMICS)} {' '.join(ATOMIC_TYPES)} FTZ RN SPIN"


@opcode("ATOM", "ATOMG", modifiers=ATOMIC_MODIFIERS)
def atom(i: Lowering) -> None:
    """predicate, register, address, data [, new data]

    The predicate of ATOM says whether the address is one that it can work on.
    """
    predicate, d, address, *data = i.operands
    atomic(i, GLOBAL if i.opcode == "ATOMG" else GENERIC, predicate, d, address, data)


@opcode("ATOMS", modifiers=f"{ATOMIC_MODIFIERS} POPC 32 ARRIVE")
def atoms(i: Lowering) -> None:
    """register or predicate, address, data [, new data]; .POPC.INC adds one for each lane

    .ARRIVE counts an arrival at an mbarrier (sm_80 to sm_89).
    """
    d, address, *data = i.operands
    if "ARRIVE" in i.modifiers:
        access(i, "MBARRIER_COUNT", address, SHARED, d=d, width=width(i))
        return
    answers = is_predicate(d) and "POPC" not in i.modifiers
    atomic(i, SHARED, d if answers else None, None if answers else d, address, data)


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
) -> None:
    counts = "POPC" in i.modifiers
    what = "ADD" if counts else next(name for name in i.modifiers if name in ATOMICS)
    kind = S64 if {"64", "S64"} <= set(i.modifiers) else i.first(ATOMIC_TYPES, U32)
    if what not in DONE_TO.get(kind, ATOMICS):
        return
    for operand in () if counts else data:
        check_whole(i, operand)
    access(
        i,
        "ATOMIC",
        address,
        space,
        [i.words(1)] if counts else [i.slot(x) for x in data if isinstance(x, Register)],
        d=d,
        pd=[predicate] if predicate is not None else [],
        width=width(i),
        aux=ATOMICS[what]
        | kind << TYPE_SHIFT
        | i.flags({"FTZ": ATOMIC_FTZ, "POPC": ATOMIC_COUNTS}),
    )


@opcode("QSPC", modifiers="E S L D G")
def qspc(i: Lowering) -> None:
    """predicate, RZ, address: whether it is in shared (.S), local (.L) or another memory"""
    predicate, _, address = i.operands
    sources = [x.slot for x in addressing(i, address, GENERIC)]
    if QUERIES.keys() & set(i.modifiers):
        i.emit(
            "IN_SPACE",
            pd=[predicate],
            s=sources,
            flags=ADDRESS_64,
            imm=offset(address),
            aux=next(space for name, space in QUERIES.items() if name in i.modifiers),
        )


# No block is in another's cluster here: no address is in distributed shared memory (.D).
QUERIES = {"S": SHARED, "L": LOCAL, "G": GLOBAL, "D": CONSTANT}

COPY_PAST_L1, COPY_PARTIAL = 1 << 16, 1 << 17  # of atomics.h


@opcode("LDGSTS", modifiers=f"{CACHING} 64 128 BYPASS ACCESS ZFILL")
def ldgsts(i: Lowering) -> None:
    """shared address, global address [, predicate: false copies zeros]

    With .ZFILL the low bits of the global address say how many bytes at the end are not read but
    become zeros.
    """
    shared, source, *predicates = i.operands
    i.emit(
        "COPY_ASYNC",
        s=[*addressing(i, shared, SHARED), *addressing(i, source, GLOBAL)],
        ps=predicates or [TRUE],
        width=width(i),
        flags=i.flags({"ZFILL": COPY_PARTIAL, "BYPASS": COPY_PAST_L1}),
        imm=offset(source),
        aux=offset(shared) & 0xFFFFFFFF,
    )


@opcode("LD", "LDG", modifiers=f"{CACHING} {DATA} {WIDE}")
@opcode("LDL", modifiers=f"{CACHING} {DATA}")
@opcode("LDS", modifiers=DATA)
def load(i: Lowering) -> None:
    """register, address; of .256: upper and lower registers, address [, mask of words]

    The words of the mask fill the registers of each half one after the other.
    """
    more: dict[str, Any] = {}
    match i.operands:
        case [high, d, Address() as address, *mask] if is_wide(i):
            check_whole(i, high)
            words = i.number(mask[0], ALL_WORDS + 1) if mask else ALL_WORDS
            more = {"d2": high, "aux": words}
        case [d, *_, address]:
            pass
    space = SPACES[i.opcode.removeprefix("LD")]
    check_whole(i, d)
    strong = STRONG if is_strong(i) and space in (GLOBAL, GENERIC) else 0
    flags = i.flags(SIGNED_DATA) | strong
    access(i, "LOAD", address, space, d=d, width=width(i), flags=flags, **more)


def is_strong(i: Instruction | Lowering) -> bool:
    """True if an access is coherent: it sees what other blocks have just written."""
    return "STRONG" in i.modifiers or "MMIO" in i.modifiers


@opcode("ST", "STG", modifiers=f"{CACHING} {DATA} {WIDE}")
@opcode("STL", modifiers=f"{CACHING} {DATA}")
@opcode("STS", modifiers=DATA)
def store(i: Lowering) -> None:
    """address, register; of .256 two: the lower and the upper registers"""
    address, *data = i.operands
    if len(data) != 1 + is_wide(i):
        return
    space = SPACES[i.opcode.removeprefix("ST")]
    access(i, "STORE", address, space, [stored(i, one) for one in data], width=width(i))


def stored(i: Lowering, operand: Operand) -> int:
    """The slot of a register that is stored as it is."""
    check_whole(i, operand)
    assert isinstance(operand, Register)
    return i.slot(operand)


# What an LDSM loads: matrices of 8 x 8 halves, as they are or transposed.
TRANSPOSED, WIDENED_FOURS, WIDENED_SIXES = 16, 32, 64  # of matrix.h
ROW_BYTES = 16
MATRICES = {"M88": 0, "MT88": TRANSPOSED}
# Of sm_100a and sm_120a: elements of 4 and 6 bits that become bytes.
WIDENED = {"U4x16P64TO8": WIDENED_FOURS, "U6x16P32TO8": WIDENED_SIXES}
OF_BYTES = "M816"
MATRIX_MODIFIERS = "16 M88 MT88 2 4"


@opcode("LDSM", modifiers=f"{MATRIX_MODIFIERS} {OF_BYTES} {' '.join(WIDENED)}")
def ldsm(i: Lowering) -> None:
    """register, address of a row: one, two or four matrices from shared memory"""
    d, address = i.operands
    check_whole(i, d)
    matrices(i, "MATRIX_LOAD", address, d=d)


@opcode("STSM", modifiers=MATRIX_MODIFIERS)
def stsm(i: Lowering) -> None:
    """address of a row, register"""
    address, data = i.operands
    check_whole(i, data)
    assert isinstance(data, Register)
    matrices(i, "MATRIX_STORE", address, [i.slot(data)])


def matrices(
    i: Lowering, operation: str, address: Operand, data: Sequence[int] = (), **more: Any
) -> None:
    """Emit an operation on rows of matrices, of which each address names one."""
    if OF_BYTES in i.modifiers:
        flags = i.choice(WIDENED)
    elif "16" in i.modifiers and is_of_matrices(i):
        flags = i.choice(MATRICES)
    else:
        return
    count = width(i) // 4
    access(i, operation, address, SHARED, data, width=ROW_BYTES, flags=flags, aux=count, **more)


def is_of_matrices(i: Instruction | Lowering) -> bool:
    return not {*MATRICES, OF_BYTES}.isdisjoint(i.modifiers)


@on_words("MOVM", modifiers="16 MT88 U4TO8 M832")
def movm(i: Lowering) -> None:
    """d, a: a matrix of 8 x 8 halves, transposed; .U4TO8: one of 8 x 32 elements, widened to 8 bits

    Compilers emit .U4TO8 from sm_100 on, where products of bits are made of bytes. Both factors are
    widened alike, so that their sums do not tell how it places the elements.
    """
    if i.modifiers == ("U4TO8", "M832"):
        i.form("d u32", "MATRIX_WIDEN")
    if i.modifiers == ("16", "MT88"):
        i.form("d u32", "MATRIX_TRANSPOSE")


def check_whole(i: Lowering, operand: Operand) -> None:
    """Refuse data that is anything but a register as it is."""
    match operand:
        case Register(negate=False, absolute=False, invert=False, suffix=()):
            return
    i.refuse_operand(operand, "a whole register")


def is_wide(i: Instruction | Lowering) -> bool:
    """True for 256 bits, in two operands of half of them each."""
    return "256" in i.modifiers


def width(i: Instruction | Lowering) -> int:
    """Bytes per lane; of matrices, those that each lane holds."""
    if is_of_matrices(i):
        return 4 * int(next((name for name in i.modifiers if name in ("2", "4")), "1"))
    return next((WIDTHS[name] for name in i.modifiers if name in WIDTHS), 4)


def access(
    i: Lowering,
    operation: str,
    address: Operand,
    space: int,
    data: Sequence[Source | int] = (),
    **more: Any,
) -> None:
    """Emit an operation that reads `data` and accesses an address; `more` is as of `emit`."""
    i.emit(operation, s=[*addressing(i, address, space), *data], imm=offset(address), **more)


def offset(address: Operand) -> int:
    assert isinstance(address, Address)
    return address.offset


def addressing(i: Lowering, operand: Operand, space: int) -> list[Source]:
    """The two address sources, with their flags: a register or pair, a uniform one or pair.

    In global and generic memory an address has 64 bits. A lane's register is a pair where it says
    .64, and on sm_75 wherever the instruction has .E; a uniform register is always one.
    """
    if not isinstance(operand, Address):
        i.refuse_operand(operand, "an address")
    wide = space in (GLOBAL, GENERIC)
    lane, uniform = Source(POOL, flags=space << SPACE_SHIFT), Source(POOL)
    lanes = [register for register in operand.registers if register.file == "R"]
    uniforms = [register for register in operand.registers if register.file == "UR"]
    if len(lanes) > 1 or len(uniforms) > 1:
        i.refuse_operand(operand, "at most one register and one uniform register")
    for register in lanes:
        names = set(register.suffix)
        is_pair = wide and not {"U32", "S32"} & names and ("64" in names or "E" in i.modifiers)
        flags = (ADDRESS_64 if is_pair else 0) | (ADDRESS_SIGNED if "S32" in names else 0)
        scale = sum(SCALES.get(name, 0) for name in names)
        lane = Source(i.slot(register), flags=lane.flags | flags | scale << SCALE_SHIFT)
    for register in uniforms:
        uniform = Source(i.slot(register), flags=UNIFORM_64 if wide else 0)
    return [lane, uniform]
