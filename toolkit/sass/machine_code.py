"""What the timing model needs of each instruction: control bits, unit, registers it reads.

The 128 bits of an instruction hold, from bit 105 on: the stall count (4 bits), the yield bit, the
scoreboard that is released when the result is written and the one when the sources were read
(3 bits each, 7: none), those that it waits for (6 bits), and the operands whose values are kept
for the next instruction (4 bits). They are laid out alike on sm_75 to sm_120.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.cycles import INSTRUCTION, NO_SCOREBOARD, Kind, Unit
from toolkit.sass.instruction import RZ, Instruction, Register, Special
from toolkit.sass.program import Program

_STALL, _YIELD, _WRITE, _READ, _WAIT, _REUSE = 105, 109, 110, 113, 116, 122

_FMA = {"FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "FSWZADD"}
_HEAVY = {"IMAD", "IDP", "HFMA2", "HADD2", "HMUL2", "HSET2", "HSETP2", "HMNMX2"}
_FP64 = {"DFMA", "DADD", "DMUL", "DSETP", "DMNMX"}
_XU = {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "I2I"}
_CONSTANT = {"LDC", "ULDC", "LDCU"}
_CONTROL = {
    *("BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "BSSY", "BSYNC", "BREAK", "BAR", "NOP", "RET"),
    *("WARPSYNC", "DEPBAR", "LDGDEPBAR", "CALL", "YIELD", "KILL", "BPT", "NANOSLEEP", "MEMBAR"),
    *("ERRBAR", "CCTL", "BMOV", "CLMAD"),
}
_KINDS = {
    "LDS": Kind.SHARED_LOAD,
    "LDSM": Kind.SHARED_LOAD,
    "STS": Kind.SHARED_STORE,
    "LDG": Kind.LOAD,
    "LD": Kind.LOAD,
    "LDL": Kind.LOAD,
    "STG": Kind.STORE,
    "ST": Kind.STORE,
    "STL": Kind.STORE,
    "RED": Kind.ATOMIC,
    "REDG": Kind.ATOMIC,
    "ATOM": Kind.ATOMIC,
    "ATOMG": Kind.ATOMIC,
    "ATOMS": Kind.ATOMIC,
    "LDGSTS": Kind.COPY,
    "SHFL": Kind.SHARED_STORE,
    "LDGDEPBAR": Kind.COPY_GROUP,
    "DEPBAR": Kind.WAIT_GROUP,
    "BAR": Kind.BARRIER,
    "BRA": Kind.BRANCH,
    "BRX": Kind.BRANCH,
    "JMP": Kind.BRANCH,
    "CALL": Kind.BRANCH,
    "RET": Kind.BRANCH,
    "EXIT": Kind.EXIT,
}
_OPERAND_SLOTS = 3


def machine_code(program: Program) -> NDArray[Any]:
    """One `analysis.cycles.INSTRUCTION` per instruction; times are those of no device yet."""
    words = np.frombuffer(program.code, dtype="<u8").reshape(-1, 2)[:, 1]
    table = np.zeros(len(program.instructions), dtype=INSTRUCTION)
    high = words[: len(table)]
    table["stall"] = _bits(high, _STALL, 4)
    table["yields"] = 1 - _bits(high, _YIELD, 1)
    table["write_barrier"] = _bits(high, _WRITE, 3)
    table["read_barrier"] = _bits(high, _READ, 3)
    table["wait"] = _bits(high, _WAIT, 6)
    table["reuse"] = _bits(high, _REUSE, 4) & 7
    for row, instruction in zip(table, program.instructions, strict=True):
        row["unit"] = _unit(instruction)
        row["kind"] = _KINDS.get(instruction.opcode, Kind.PLAIN)
        row["registers"] = _written(instruction)
        row["source"] = _sources(instruction)
        if instruction.opcode == "DEPBAR":
            row["argument"] = _left(instruction)
        if instruction.opcode == "BAR" and "ARV" in instruction.modifiers:
            row["kind"] = Kind.PLAIN
    for name in ("write_barrier", "read_barrier"):
        table[name] = np.where(table[name] < 6, table[name], NO_SCOREBOARD)
    return table


def _bits(high: NDArray[np.uint64], first: int, count: int) -> NDArray[np.uint8]:
    shifted = high >> np.uint64(first - 64)
    return (shifted & np.uint64((1 << count) - 1)).astype(np.uint8)


def _unit(instruction: Instruction) -> Unit:
    opcode = instruction.opcode
    for opcodes, unit in (
        (_FMA, Unit.FMA),
        (_HEAVY, Unit.FMA_HEAVY),
        (_FP64, Unit.FP64),
        (_XU, Unit.XU),
        (_CONTROL, Unit.CONTROL),
        (_CONSTANT, Unit.UNIFORM),
    ):
        if opcode in opcodes:
            return unit
    if opcode in _KINDS:
        return Unit.LSU
    if opcode.endswith("MMA"):
        return Unit.TENSOR
    if opcode.startswith("U") or opcode in ("R2UR", "S2UR", "S2R"):
        return Unit.UNIFORM
    return Unit.ALU


def _written(instruction: Instruction) -> int:
    """Registers that a load or a shuffle writes."""
    if instruction.opcode == "SHFL":
        return 1
    if not instruction.opcode.startswith(("LD", "ATOM")) or instruction.opcode in _CONSTANT:
        return 0
    if instruction.opcode in ("LDGSTS", "LDGDEPBAR"):
        return 0
    return next((int(m) // 32 for m in instruction.modifiers if m in ("64", "128")), 1)


def _sources(instruction: Instruction) -> list[int]:
    """The general register of each operand slot, -1 where it reads none of the register file."""
    if _unit(instruction) not in (Unit.FMA, Unit.FMA_HEAVY, Unit.ALU):
        return [-1] * _OPERAND_SLOTS
    registers = [operand for operand in instruction.operands[1:] if not _is_predicate(operand)]
    found = [
        operand.index
        if isinstance(operand, Register) and operand.file == "R" and operand.index != RZ
        else -1
        for operand in registers[:_OPERAND_SLOTS]
    ]
    return found + [-1] * (_OPERAND_SLOTS - len(found))


def _is_predicate(operand: object) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")


def _left(instruction: Instruction) -> int:
    """Of DEPBAR.LE SB0, 0x1: the scoreboard, and how many may be left."""
    scoreboard = count = 0
    for operand in instruction.operands:
        if isinstance(operand, Special) and operand.name.startswith("SB"):
            scoreboard = int(operand.name[2:])
        elif not isinstance(operand, Register) and not isinstance(operand, Special):
            count = getattr(operand, "integer", 0)
    return scoreboard << 4 | min(count, 15)
