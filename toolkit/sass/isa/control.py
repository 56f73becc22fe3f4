"""Branches, reconvergence, calls, barriers, and what has no effect on a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.sass.core import PT
from toolkit.sass.instruction import (
    INSTRUCTION_BYTES,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
)
from toolkit.sass.isa.integer import is_predicate
from toolkit.sass.isa.registry import Lowering, Source, opcode

ARRIVE, REDUCE, PACKED = 1, 2, 4  # BARRIER_* of control.h
BSYNC_FIRM, WARPSYNC_APART, BRANCH_ANY = 1, 1, 1  # of control.h
# SYSTEM_* of control.h: what stands for the addresses of functions that are no code of a kernel.
SYSTEM_FUNCTIONS = {"__assertfail": 1, "vprintf": 2}
RETURN_ADDRESS = Register(file="R", index=20)  # where calls leave it
ALL_LANES = 0xFFFFFFFF
NEVER = Register(file="P", index=PT, invert=True)  # the guard @!PT


@opcode("EXIT", modifiers="KEEPREFCOUNT PREEMPTED")
def exit_(i: Instruction, to: Lowering) -> None:
    to.emit("EXIT", ps=[to.predicate(i.operands[0]) if i.operands else PT])


@opcode("BRA", modifiers="U DIV CONV INC DEC ANY")
def bra(i: Instruction, to: Lowering) -> None:
    """[predicate,] target; .DIV and .CONV: a mask of lanes, target. .ANY: all jump if one does."""
    *conditions, target = i.operands
    if "CONV" in i.modifiers and i.guard == NEVER:
        # ptxas inverts the test by its guard where the slow path is the target of this branch alone
        to.begin(replace(i, guard=None))
        to.emit("BRANCH_IF_SPLIT", s=lane_mask(to, conditions), imm=to.target(target))
        return
    if "DIV" in i.modifiers:
        to.emit("BRANCH_IF_SPLIT", s=lane_mask(to, conditions), imm=to.target(target))
        return
    if "CONV" in i.modifiers:
        to.emit("BRANCH_IF_WHOLE", s=lane_mask(to, conditions), imm=to.target(target))
        return
    ps = [to.predicate(condition) for condition in conditions] or [PT]
    flags = BRANCH_ANY if "ANY" in i.modifiers else 0
    to.emit("BRANCH", ps=ps, imm=to.target(target), flags=flags)


def lane_mask(to: Lowering, operands: list[Operand]) -> list[Source]:
    """The lanes that a convergence test asks for: all, where it names none."""
    return [to.u32(x) for x in operands] or [Source(to.word(ALL_LANES))]


@opcode("JMP")
def jmp(i: Instruction, to: Lowering) -> None:
    bra(i, to)


@opcode("CALL", modifiers="REL ABS NOINC")
def call(i: Instruction, to: Lowering) -> None:
    """[register,] target: a jump; where to return to is in registers already.

    A register alone holds the address of a function of the system.
    """
    *registers, target = i.operands
    if isinstance(target, Register):
        to.emit("CALL_SYSTEM", s=[to.u32(target), to.u32(RETURN_ADDRESS)])
    elif registers:
        jump_indirect(to, i.operands)
    elif isinstance(target, Immediate):
        to.emit("BRANCH", ps=[PT], imm=to.target(target))


@opcode("RET", modifiers="REL ABS NODEC")
def ret(i: Instruction, to: Lowering) -> None:
    """[predicate,] register, base of what it is relative to"""
    jump_indirect(to, i.operands)


@opcode("BRX", "BRXU")
def brx(i: Instruction, to: Lowering) -> None:
    """[predicate,] register, base"""
    jump_indirect(to, i.operands)


@opcode("LEPC")
def lepc(i: Instruction, to: Lowering) -> None:
    """register pair [, target]: the address of the target, or of this instruction"""
    d, *target = i.operands
    address = INSTRUCTION_BYTES * to.target(target[0]) if target else i.address
    to.emit("MOV64", d=[to.out(d)], s=[Source(to.words(address, 0))])


def jump_indirect(to: Lowering, operands: Sequence[Operand]) -> None:
    """[predicate,] register, base: lanes for which the predicate is false stay."""
    conditions = 1 if is_predicate(operands[0]) else 0
    register, base, *_ = operands[conditions:]
    ps = [to.predicate(operands[0])] if conditions else [PT]
    to.emit("BRANCH_INDIRECT", ps=ps, s=[to.u32(register)], imm=base_address(to, base))


def base_address(to: Lowering, operand: Operand) -> int:
    """Where an indirect jump counts from: the start of the code, which a symbol names."""
    if isinstance(operand, Special):
        return 0
    return INSTRUCTION_BYTES * to.target(operand)


@opcode("BSSY", modifiers="RELIABLE RECONVERGENT")
def bssy(i: Instruction, to: Lowering) -> None:
    to.emit("BSSY", aux=barrier_index(i.operands[0]))


@opcode("BSYNC", modifiers="RELIABLE RECONVERGENT")
def bsync(i: Instruction, to: Lowering) -> None:
    firm = {"RELIABLE", "RECONVERGENT"} & set(i.modifiers)
    to.emit("BSYNC", aux=barrier_index(i.operands[0]), flags=BSYNC_FIRM if firm else 0)


@opcode("BREAK", modifiers="RELIABLE RECONVERGENT")
def break_(i: Instruction, to: Lowering) -> None:
    """barrier and, before or behind it, the lanes that leave it"""
    (barrier,) = (x for x in i.operands if not is_predicate(x))
    ps = [to.predicate(x) for x in i.operands if is_predicate(x)] or [PT]
    to.emit("BREAK", ps=ps, aux=barrier_index(barrier))


def barrier_index(operand: Operand) -> int:
    assert isinstance(operand, Register)
    assert operand.file == "B"
    return operand.index


@opcode("WARPSYNC", modifiers="ALL COLLECTIVE EXCLUSIVE")
def warpsync(i: Instruction, to: Lowering) -> None:
    """A mask of lanes, none for all of them; .COLLECTIVE also names where they go on.

    Where lanes name different masks, .EXCLUSIVE and .COLLECTIVE run those of each mask apart.
    """
    apart = {"EXCLUSIVE", "COLLECTIVE"} & set(i.modifiers)
    if "ALL" in i.modifiers or not i.operands:
        to.emit("WARPSYNC", s=[to.word(0xFFFFFFFF)])
    else:
        to.emit("WARPSYNC", s=[to.u32(i.operands[0])], flags=WARPSYNC_APART if apart else 0)


@opcode("YIELD")
@opcode("NANOSLEEP", modifiers="SYNCALL SYNCS WARP")
def yield_(i: Instruction, to: Lowering) -> None:
    """Another group of the warp may go on: those who spin wait for it."""
    to.emit("YIELD")


@opcode("BAR", modifiers="SYNC ARV RED POPC AND OR DEFER_BLOCKING")
def bar(i: Instruction, to: Lowering) -> None:
    """barrier [, threads] [, predicate that is reduced]; two registers are one that holds both"""
    numbers = [x for x in i.operands if not is_predicate(x)]
    predicates = [to.predicate(x) for x in i.operands if is_predicate(x)]
    flags = (ARRIVE if "ARV" in i.modifiers else 0) | (REDUCE if "RED" in i.modifiers else 0)
    if len(numbers) == 2 and all(isinstance(x, Register) for x in numbers):
        if numbers[0] != numbers[1]:
            to.refuse_operand(numbers[1], "the barrier's register again")
        flags |= PACKED
    to.emit("BARRIER", s=[to.u32(x) for x in numbers], ps=predicates, flags=flags)


@opcode("BPT", modifiers="TRAP")
def bpt(i: Instruction, to: Lowering) -> None:
    to.emit("TRAP")


@opcode("NOP", modifiers="SYNC")
@opcode("MEMBAR", modifiers="SC ALL CTA GPU SYS VC")
@opcode("ERRBAR")
@opcode("CCTL", modifiers="IVALL E U PF1 PF2 RS IV D C I")
@opcode("CGAERRBAR")
@opcode("LDGDEPBAR")
@opcode("ACQBULK", "PREEXIT", "ENDCOLLECTIVE", "PMTRIG")
@opcode("FENCE", modifiers="VIEW ASYNC S G T")
def nop(i: Instruction, to: Lowering) -> None:
    """Order in memory, sleep and scoreboards: one warp runs at a time here, in order."""
    to.emit("NOP")


@opcode("DEPBAR", modifiers="LE")
def depbar(i: Instruction, to: Lowering) -> None:
    """[scoreboard, how many groups of copies may be left]: bulk stores are made as late as here."""
    left = [x.integer for x in i.operands if isinstance(x, Immediate)]
    to.emit("BULK_WAIT", aux=left[0] if left else 0)
