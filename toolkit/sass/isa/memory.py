"""Loads and stores of global, shared, local and constant memory."""

from __future__ import annotations

from toolkit.sass.core import POOL
from toolkit.sass.instruction import Address, Constant, Instruction, Operand, Register
from toolkit.sass.isa.registry import Lowering, Source, opcode

# Ins.flags of memory.h
ADDRESS_64, UNIFORM_64, ADDRESS_SIGNED, SIGNED_DATA = 1, 2, 4, 8
SPACE_SHIFT, SCALE_SHIFT = 8, 12
GLOBAL, SHARED, LOCAL, CONSTANT, GENERIC = range(5)

WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
# What says where a value may be cached or how it is ordered does not change it.
CACHING = (
    "E CONSTANT STRONG WEAK SYS GPU CTA SM EF EL EU LU NA MMIO PRIVATE CI GPU VC CV "
    "LTC64B LTC128B LTC256B RO"
)
DATA = "U8 S8 U16 S16 64 128 U"
SCALES = {"X4": 2, "X8": 3, "X16": 4}


@opcode("LDG", modifiers=f"{CACHING} {DATA}")
def ldg(i: Instruction, to: Lowering) -> None:
    load(i, to, GLOBAL)


@opcode("STG", modifiers=f"{CACHING} {DATA}")
def stg(i: Instruction, to: Lowering) -> None:
    store(i, to, GLOBAL)


@opcode("LDS", modifiers=DATA)
def lds(i: Instruction, to: Lowering) -> None:
    load(i, to, SHARED)


@opcode("STS", modifiers=DATA)
def sts(i: Instruction, to: Lowering) -> None:
    store(i, to, SHARED)


@opcode("LDL", modifiers=f"{CACHING} {DATA} LU")
def ldl(i: Instruction, to: Lowering) -> None:
    load(i, to, LOCAL)


@opcode("STL", modifiers=f"{CACHING} {DATA}")
def stl(i: Instruction, to: Lowering) -> None:
    store(i, to, LOCAL)


@opcode("LD", modifiers=f"{CACHING} {DATA}")
def ld(i: Instruction, to: Lowering) -> None:
    load(i, to, GENERIC)


@opcode("ST", modifiers=f"{CACHING} {DATA}")
def st(i: Instruction, to: Lowering) -> None:
    store(i, to, GENERIC)


@opcode("LDC", "ULDC", "LDCU", modifiers="64 128 U8 S8 U16 S16 IL IS ISL")
def ldc(i: Instruction, to: Lowering) -> None:
    """register, constant: at a fixed offset it is a move, else a load."""
    d, constant = i.operands
    assert isinstance(constant, Constant)
    words = width(i) // 4
    flags = SIGNED_DATA if {"S8", "S16"} & set(i.modifiers) else 0
    if constant.base is None and words == 1 and constant.bank_register is None:
        to.emit("MOV", d=[to.out(d)], s=[to.u32(constant)])
        return
    base = Source(to.slot(constant.base)) if constant.base else Source(POOL)
    to.emit(
        "LOAD_CONSTANT",
        d=[to.out(d)],
        s=[base],
        width=width(i),
        aux=constant.bank,
        imm=constant.offset,
        flags=flags,
    )


def load(i: Instruction, to: Lowering, space: int) -> None:
    d, address = i.operands[0], i.operands[-1]
    flags, offset, sources = addressing(i, to, address, space)
    flags |= SIGNED_DATA if {"S8", "S16"} & set(i.modifiers) else 0
    to.emit("LOAD", d=[to.out(d)], s=sources, width=width(i), flags=flags, imm=offset)


def store(i: Instruction, to: Lowering, space: int) -> None:
    address, data = i.operands
    flags, offset, sources = addressing(i, to, address, space)
    assert isinstance(data, Register)
    data_slot = Source(to.slot(data))
    to.emit("STORE", s=[*sources, data_slot], width=width(i), flags=flags, imm=offset)


def width(i: Instruction) -> int:
    """Bytes per lane."""
    return next((WIDTHS[name] for name in i.modifiers if name in WIDTHS), 4)


def addressing(
    i: Instruction, to: Lowering, operand: Operand, space: int
) -> tuple[int, int, list[Source]]:
    """Flags, offset and the two address sources: a register or pair, a uniform one or pair.

    In global and generic memory an address has 64 bits. A lane's register is a pair where it says
    .64, and on sm_75 wherever the instruction has .E; beside a 32-bit one (.U32, .S32) or alone,
    a uniform register is the pair.
    """
    assert isinstance(operand, Address)
    wide = space in (GLOBAL, GENERIC)
    flags = space << SPACE_SHIFT
    lane, uniform = Source(POOL), Source(POOL)
    lanes = [register for register in operand.registers if register.file == "R"]
    uniforms = [register for register in operand.registers if register.file == "UR"]
    if len(lanes) > 1 or len(uniforms) > 1:
        to.refuse_operand(operand, "at most one register and one uniform register")
    for register in lanes:
        lane = Source(to.slot(register))
        narrow = {"U32", "S32"} & set(register.suffix)
        if wide and not narrow and ("64" in register.suffix or "E" in i.modifiers):
            flags |= ADDRESS_64
        if "S32" in register.suffix:
            flags |= ADDRESS_SIGNED
        for name in register.suffix:
            flags |= SCALES.get(name, 0) << SCALE_SHIFT
    for register in uniforms:
        uniform = Source(to.slot(register))
        if wide and (not flags & ADDRESS_64 or "64" in register.suffix):
            flags |= UNIFORM_64
    return flags, operand.offset, [lane, uniform]
