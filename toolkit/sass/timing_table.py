"""Inputs of the timing model for each instruction: control bits, unit, registers it reads.

The 128 bits of an instruction hold, from bit 105 on: the stall count (4 bits), the yield bit, the
scoreboard that is released when the result is written and the one that is released when the sources
have been read (3 bits each, 7: none), the scoreboards that it waits for (6 bits), and the operands
that stay in the reuse cache for the next instruction (4 bits). The layout is the same on sm_75 to
sm_120. `with_clocks` and `ModelledSm.machine` of
analysis/timing/modelled_sm.py add the clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import WARP_SIZE
from analysis.sm import (
    BANKS,
    BARRIER_ARRIVES,
    BARRIER_WARPS_SHIFT,
    INSTRUCTION,
    NO_SCOREBOARD,
    PRODUCT_ENDS_GROUP,
    PRODUCT_OF_REGISTERS,
    Kind,
    Unit,
)
from toolkit.machine_code.instruction import (
    RZ,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
)
from toolkit.machine_code.kept import kept
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.isa.bulk import direction
from toolkit.sass.isa.memory import is_of_matrices, is_strong, is_wide, width
from toolkit.sass.isa.registry import is_predicate
from toolkit.sass.isa.slots import matrix_columns
from toolkit.sass.isa.texture import TEXTURES, channels_written

# The first bit of each, and how many they are; only three operands come from registers.
_CONTROL_BITS = {
    "stall": (105, 4),
    "yields": (109, 1),
    "write_barrier": (110, 3),
    "read_barrier": (113, 3),
    "wait": (116, 6),
    "reuse": (122, 3),
}

_FMA = {"FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "FSWZADD"}
# VIADD too: on sm_90 compilers let one issue right before or after ISETP, FSETP, PLOP3, LOP3 or
# IADD3, which wait two clocks for each other, and wait two clocks between it and IMAD or itself.
_HEAVY = {"IMAD", "IDP", "VIADD"}
_HALF = {"HFMA2", "HADD2", "HMUL2", "HSET2", "HSETP2", "HMNMX2"}
_FP64 = {"DFMA", "DADD", "DMUL", "DSETP", "DMNMX"}
# FCHK too: with it, a division of floats takes 12 clocks more of a scheduler than without.
_XU = {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "S2R", "FCHK"}
_CONVERSIONS = {"F2F", "F2I", "I2F", "FRND"}
_CONSTANT = {"LDC", "ULDC", "LDCU"}
_UNIFORM = {*_CONSTANT, "R2UR", "S2UR"}
_TENSOR = {"HMMA", "IMMA", "BMMA", "QMMA", "OMMA"}
# Products whose K has 32 bytes (of 1688, those of TF32); the others take the time of half as much.
_LONG = {"16816", "16832", "168256"}
_PRODUCTS = {"HGMMA", "QGMMA", "IGMMA", "BGMMA"}
_END_OF_GROUP = "gsb0"
# Products of 8x8x4 doubles that an instruction is made of.
_DOUBLES = {"8x8x4": 1, "16x8x4": 2, "16x8x8": 4, "16x8x16": 8}
_READERS = {"R2UR", "IABS", "FCHK"}  # of general registers, though no arithmetic of the units below
_CONTROL = {
    *("BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "BSSY", "BSYNC", "BREAK", "BAR", "NOP", "RET"),
    *("WARPSYNC", "DEPBAR", "LDGDEPBAR", "CALL", "YIELD", "KILL", "BPT", "NANOSLEEP", "MEMBAR"),
    *("ERRBAR", "CCTL", "BMOV", "CLMAD", "WARPGROUP", "FENCE"),
}
_OPCODES = {
    Kind.SHARED_LOAD: "LDS",
    Kind.SHARED_STORE: "STS STSM SHFL MOVM",
    Kind.MATRIX_LOAD: "LDSM",
    Kind.LOAD: "LDG LD LDL TEX TLD TLD4 TXD SULD",
    Kind.STORE: "STG ST STL SUST",
    Kind.ATOMIC: "RED REDG ATOM ATOMG ATOMS SURED",
    Kind.COPY: "LDGSTS",
    Kind.COPY_GROUP: "LDGDEPBAR",
    Kind.WAIT_GROUP: "DEPBAR",
    Kind.BARRIER: "BAR UCGABAR_WAIT",
    Kind.MBARRIER_ARRIVE: "SYNCS ARRIVES",
    Kind.BULK_LOAD: "UTMALDG BULK_LOAD",
    Kind.BULK_STORE: "UTMASTG UTMAREDG BULK_STORE",
    Kind.BULK_GROUP: "UTMACMDFLUSH",
    Kind.BRANCH: "BRA BRX JMP CALL RET",
    Kind.EXIT: "EXIT",
    Kind.PRODUCT: "HGMMA QGMMA IGMMA BGMMA",
    Kind.PRODUCT_WAIT: "WARPGROUP.DEPBAR",
    Kind.PRODUCT_FENCE: "WARPGROUP FENCE",
}
_MOVES = {"SHFL", "MOVM"}  # from lane to lane
_KINDS = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_OF_BARRIERS = {
    "EXCH": Kind.MBARRIER_BEGIN,
    "ARRIVE": Kind.MBARRIER_ARRIVE,
    "PHASECHK": Kind.MBARRIER_WAIT,
}
AFTER_COPIES = 1  # for analysis/sm: arrives when the warp's copies have been made
PAST_L1 = 1  # for analysis/sm: of a copy or a coherent load, which never hits L1
# Of HMMA.16816 with FP32 and FP16 sums, and of IMMA.16832, on an H200 (beside FFMA, FMUL, LOP3).
BANK_CLOCKS_OF_FLOATS, BANK_CLOCKS_OF_HALVES, BANK_CLOCKS_OF_INTEGERS = 5, 3, 6
_UNITS: tuple[tuple[Collection[str], Unit], ...] = (
    (_FMA, Unit.FMA),
    (_HEAVY, Unit.FMA_HEAVY),
    (_HALF, Unit.HALF),
    (_FP64, Unit.FP64),
    (_XU, Unit.XU),
    (_PRODUCTS, Unit.TENSOR),
    ({"DMMA"}, Unit.TENSOR_DOUBLE),
    (_CONTROL, Unit.CONTROL),
    (_UNIFORM, Unit.UNIFORM),
    (_KINDS, Unit.LSU),
)
_OPERAND_SLOTS = 3


def machine_code(kernel: Kernel, counts: NDArray[Any] | None = None) -> NDArray[Any]:
    """One `analysis.sm.INSTRUCTION` per instruction; times are those of no device yet.

    `counts` (core.COUNT) of an execution give the clocks of shared accesses without bank conflicts.
    """
    # `copy` would leave the bytes between fields undefined, and they are hashed
    table = np.frombuffer(bytearray(_timing_table(kernel)), dtype=INSTRUCTION)
    if counts is not None:
        requests = np.maximum(counts["requests"], 1).astype(np.float64)
        table["free_clocks"] = np.ceil(counts["conflict_free"] / requests)
    return table


@lru_cache(maxsize=64)
@kept
def _timing_table(kernel: Kernel) -> bytes:
    instructions = kernel.instructions
    table = np.zeros(len(instructions), dtype=INSTRUCTION)
    high = np.frombuffer(kernel.code, dtype="<u8")[1::2]
    for name, (first, count) in _CONTROL_BITS.items():
        table[name] = high >> np.uint64(first - 64) & np.uint64((1 << count) - 1)
    table["yields"] ^= 1
    operands = [_operands(instruction) for instruction in instructions]
    for name, field_of in _OWN_FIELDS.items():
        table[name] = [field_of(instruction) for instruction in instructions]
    table["operands"] = list(map(len, operands))
    table["banks"] = [sum(r % BANKS << k for k, r in enumerate(those)) for those in operands]
    for name in ("write_barrier", "read_barrier"):
        table[name] = np.where(table[name] < 6, table[name], NO_SCOREBOARD)
    if any(one.opcode == "BAR" and _numbers(one) is None for one in instructions):
        # any other barrier of the code may be the same one: warps meet as at one of all warps
        for pc, one in enumerate(instructions):
            if one.opcode == "BAR":
                table["argument"][pc] = 0
                table["kind"][pc] = Kind.PLAIN if "ARV" in one.modifiers else Kind.BARRIER
    return table.tobytes()


def _argument(instruction: Instruction) -> int:
    """Argument of the model, which means something else for each opcode (`_ARGUMENTS`)."""
    return _ARGUMENTS.get(instruction.opcode, _access)(instruction)


def _access(instruction: Instruction) -> int:
    """Argument of an access of memory: bytes stored per lane, or whether L1 has no part in it."""
    kind = _kind(instruction)
    if kind == Kind.COPY:
        return PAST_L1 * ("BYPASS" in instruction.modifiers)
    if kind == Kind.LOAD:
        beyond_the_sm = {"GPU", "SYS"} & set(instruction.modifiers)
        return PAST_L1 * (is_strong(instruction) and bool(beyond_the_sm))
    return width(instruction) if kind == Kind.STORE else 0


def _product(instruction: Instruction) -> int:
    """Argument of a product of a warpgroup: columns, where A is, whether it ends a group."""
    operands = [one for one in instruction.operands if not is_predicate(one)]
    ends = Special(name=_END_OF_GROUP) in operands
    has_registers = len(operands) - ends > 3  # sums, A, descriptor, sums so far
    columns = matrix_columns(instruction) // 8 - 1
    return columns | PRODUCT_OF_REGISTERS * has_registers | PRODUCT_ENDS_GROUP * ends


def _barrier(instruction: Instruction) -> int:
    """Argument of a barrier of a block: its number, its warps, and whether a warp only arrives.

    0 is barrier 0 of all warps. So is one whose number or threads are in a register (`_numbers`).
    """
    numbers = _numbers(instruction)
    if not numbers:
        return 0
    number, *threads = numbers
    arrives = BARRIER_ARRIVES * ("ARV" in instruction.modifiers)
    return number | sum(threads) // WARP_SIZE << BARRIER_WARPS_SHIFT | arrives


def _numbers(instruction: Instruction) -> list[int] | None:
    """Number and threads of a barrier of a block; None if the code does not say them."""
    operands = [one for one in instruction.operands if not is_predicate(one)]
    values = [one.integer for one in operands if isinstance(one, Immediate)]
    return values if len(values) == len(operands) else None


def _bank_clocks(instruction: Instruction) -> int:
    """Clocks for which a product of a warp needs each register bank."""
    if instruction.opcode == "HMMA":
        return BANK_CLOCKS_OF_FLOATS if "F32" in instruction.modifiers else BANK_CLOCKS_OF_HALVES
    return BANK_CLOCKS_OF_INTEGERS


def _double_products(instruction: Instruction) -> int:
    """Products of 8×8×4 that a DMMA is worth."""
    return next((_DOUBLES[m] for m in instruction.modifiers if m in _DOUBLES), 1)


def _group_left(instruction: Instruction) -> int:
    """Groups of products that WARPGROUP leaves pending; 0 if it waits for all or only arrives."""
    return next((one.integer for one in instruction.operands if isinstance(one, Immediate)), 0)


def _kind(instruction: Instruction) -> Kind:
    opcode, modifiers = instruction.opcode, set(instruction.modifiers)
    if opcode in _CONSTANT:
        constants = (one for one in instruction.operands if isinstance(one, Constant))
        indexed = Kind.CONSTANT if opcode == "LDC" else Kind.UNIFORM_CONSTANT
        return indexed if any(one.is_indexed for one in constants) else Kind.PLAIN
    if opcode == "BAR" and "ARV" in modifiers and not _barrier(instruction):
        return Kind.PLAIN
    if opcode == "MEMBAR":
        return Kind.FENCE if {"GPU", "SYS"} & modifiers else Kind.PLAIN
    if opcode == "SYNCS":
        return next((kind for name, kind in _OF_BARRIERS.items() if name in modifiers), Kind.PLAIN)
    if opcode in ("UBLKCP", "UBLKRED"):
        opcode = "BULK_STORE" if direction(instruction) == "BULK_STORE" else "BULK_LOAD"
    elif opcode == "WARPGROUP" and "DEPBAR" in modifiers:
        opcode = "WARPGROUP.DEPBAR"
    return _KINDS.get(opcode, Kind.PLAIN)


def _unit(instruction: Instruction) -> Unit:
    return _unit_of(instruction.opcode, instruction.modifiers)


@cache
def _unit_of(opcode: str, modifiers: tuple[str, ...]) -> Unit:
    if opcode == "IMAD" and {"WIDE", "HI"} & set(modifiers):
        return Unit.FMA_WIDE
    if opcode in _CONVERSIONS and any("64" in modifier for modifier in modifiers):
        return Unit.CONVERT_64
    if opcode in _TENSOR:
        is_long = opcode == "QMMA" or not _LONG.isdisjoint(modifiers)
        if opcode == "IMMA" and "16816" in modifiers:
            is_long = False
        return Unit.TENSOR if is_long or {"1688", "TF32"} <= set(modifiers) else Unit.TENSOR_SHORT
    if opcode.startswith("U") and opcode not in _CONSTANT:
        return Unit.UNIFORM
    for opcodes, unit in _UNITS:
        if opcode in opcodes:
            return unit
    return Unit.UNIFORM if opcode.startswith("U") else Unit.ALU


def _written(instruction: Instruction) -> int:
    """Registers that a load or a shuffle writes."""
    if instruction.opcode in _MOVES:
        return 2 if "U4TO8" in instruction.modifiers else 1
    if instruction.opcode in TEXTURES:
        return channels_written(instruction)
    writes = instruction.opcode.startswith(("LD", "ATOM", "SULD"))
    if not writes or instruction.opcode in _CONSTANT | {"LDGSTS", "LDGDEPBAR"}:
        return 0
    return width(instruction) // 4 if is_wide(instruction) else _words(instruction)


def _operands(instruction: Instruction) -> list[int]:
    """Registers that a memory request passes on: those of its address and of its stored data."""
    if instruction.opcode not in _KINDS or _unit(instruction) != Unit.LSU:
        return []
    if instruction.opcode in TEXTURES:
        return []  # how many clocks its operands take is part of those that were measured
    found: list[int] = []
    has_result = instruction.opcode.startswith(("LD", "ATOM")) or instruction.opcode in _MOVES
    halves = has_result and is_wide(instruction)
    for operand in instruction.operands[halves:]:
        if isinstance(operand, Address):
            for register in operand.registers:
                if register.file == "R" and register.index != RZ:
                    found += _from(register.index, 2 if "64" in register.suffix else 1)
        elif isinstance(operand, Register) and operand.file == "R":
            if not has_result and operand.index != RZ:
                found += _from(operand.index, _words(instruction))
            has_result = False  # it was the first one, behind a predicate or not
    return found


def _from(register: int, count: int) -> range:
    return range(register, register + count)


def _words(instruction: Instruction) -> int:
    """Registers of one operand."""
    if is_of_matrices(instruction):
        return width(instruction) // 4
    if is_wide(instruction):
        return 4  # two operands have a half each
    return next((int(m) // 32 for m in instruction.modifiers if m in ("64", "128")), 1)


def _sources(instruction: Instruction) -> list[int]:
    """The general register of each operand slot, -1 where it reads none of the register file."""
    # a pair of registers is read as its even one: three pairs take three clocks, two two
    arithmetic = (Unit.FMA, Unit.FMA_HEAVY, Unit.FMA_WIDE, Unit.HALF, Unit.ALU, Unit.FP64)
    if _unit(instruction) not in arithmetic and instruction.opcode not in _READERS:
        return [-1] * _OPERAND_SLOTS
    registers = [operand for operand in instruction.operands if not is_predicate(operand)]
    if instruction.opcode == "HFMA2":
        registers = _without_second_half(registers)
    if "SETP" not in instruction.opcode and instruction.opcode != "FCHK":
        registers = registers[1:]  # the result
    found = [
        operand.index
        if isinstance(operand, Register) and operand.file == "R" and operand.index != RZ
        else -1
        for operand in registers[:_OPERAND_SLOTS]
    ]
    if instruction.opcode in ("MOV", "IABS"):
        found = [-1, *found]  # its source is that of the second slot
    if instruction.opcode == "HADD2":
        found.insert(1, -1)  # it adds what is in the third slot
    return found[:_OPERAND_SLOTS] + [-1] * (_OPERAND_SLOTS - len(found))


def _without_second_half(operands: list[Operand]) -> list[Operand]:
    """Operands of which two halves that are given as numbers are one."""
    is_number = [isinstance(operand, Immediate) for operand in operands]
    return [one for k, one in enumerate(operands) if not (k and is_number[k - 1] and is_number[k])]


def _left(instruction: Instruction) -> int:
    """Scoreboard and pending copies of DEPBAR.LE SB0, 0x1, packed as scoreboard << 4 | count."""
    scoreboard = count = 0
    for operand in instruction.operands:
        if isinstance(operand, Special) and operand.name.startswith("SB"):
            scoreboard = int(operand.name[2:])
        elif not isinstance(operand, Register) and not isinstance(operand, Special):
            count = getattr(operand, "integer", 0)
    return scoreboard << 4 | min(count, 15)


_ARGUMENTS: Mapping[str, Callable[[Instruction], int]] = {
    **dict.fromkeys(_TENSOR, _bank_clocks),
    **dict.fromkeys(_PRODUCTS, _product),
    "ARRIVES": lambda _: AFTER_COPIES,
    "BAR": _barrier,
    "DEPBAR": _left,
    "DMMA": _double_products,
    "FENCE": lambda _: True,  # of a proxy; that of a group of products is WARPGROUP.ARRIVE
    "WARPGROUP": _group_left,
}


# Fields of an instruction that follow from it alone.
_OWN_FIELDS = {
    "unit": _unit,
    "kind": _kind,
    "registers": _written,
    "source": _sources,
    "argument": _argument,
}
