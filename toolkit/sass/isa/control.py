"""Branches, reconvergence, calls, barriers, and instructions without effect on a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.machine_code.instruction import (
    INSTRUCTION_BYTES,
    Immediate,
    Operand,
    Register,
    Special,
)
from toolkit.sass.core.binding import PT
from toolkit.sass.isa.integer import TRUE
from toolkit.sass.isa.registry import Lowering, is_predicate, opcode
from toolkit.sass.isa.slots import Source

ARRIVE, REDUCE, PACKED = 1, 2, 4  # BARRIER_* of control.h
BSYNC_FIRM, WARPSYNC_APART, BRANCH_ANY, BRANCH_WAITS = 1, 1, 1, 2  # of control.h
# SYSTEM_* of system.h: what stands for the addresses of functions that are no code of a kernel.
SYSTEM_FUNCTIONS = {"__assertfail": 1, "vprintf": 2, "malloc": 3, "free": 4}
RETURN_ADDRESS = Register(file="R", index=20)  # where calls leave it
FIRST_ARGUMENT = Register(file="R", index=4)  # of a call, and its result
ALL_LANES = 0xFFFFFFFF
NEVER = Register(file="P", index=PT, invert=True)  # the guard @!PT


@opcode("EXIT", modifiers="KEEPREFCOUNT PREEMPTED")
def exit_(i: Lowering) -> None:
    i.emit("EXIT", ps=i.operands[:1] or [TRUE])


@opcode("BRA", modifiers="U DIV CONV INC DEC ANY")
@opcode("JMP")
def bra(i: Lowering) -> None:
    """[predicate,] target; .DIV and .CONV: a mask of lanes, target. .ANY: all jump if one does."""
    *conditions, target = i.operands
    place = i.target(target)
    if "CONV" in i.modifiers and i.instruction.guard == NEVER:
        # ptxas inverts the test by its guard where the slow path is the target of this branch alone
        i.begin(replace(i.instruction, guard=None))
        i.emit("BRANCH_IF_SPLIT", s=lane_mask(i, conditions), imm=place)
    elif {"DIV", "CONV"} & set(i.modifiers):
        operation = "BRANCH_IF_SPLIT" if "DIV" in i.modifiers else "BRANCH_IF_WHOLE"
        i.emit(operation, s=lane_mask(i, conditions), imm=place)
    else:
        i.emit("BRANCH", ps=conditions or [TRUE], imm=place, flags=i.flags({"ANY": BRANCH_ANY}))


def lane_mask(i: Lowering, operands: Sequence[Operand]) -> list[Source]:
    """The lanes that a convergence test asks for: all, where it names none."""
    return [i.u32(x) for x in operands] or [Source(i.words(ALL_LANES))]


@opcode("CALL", modifiers="REL ABS NOINC")
def call(i: Lowering) -> None:
    """[register,] target: a jump; where to return to is in registers already.

    A register alone holds the address of a function of the system.
    """
    *registers, target = i.operands
    if isinstance(target, Register):
        i.emit("CALL_SYSTEM", s=map(i.u32, (target, RETURN_ADDRESS, FIRST_ARGUMENT)))
    elif registers:
        jump_indirect(i)
    elif isinstance(target, Immediate):
        i.emit("BRANCH", ps=[TRUE], imm=i.target(target))


@opcode("LEPC")
def lepc(i: Lowering) -> None:
    """register pair [, target]: the address of the target, or of this instruction"""
    d, *target = i.operands
    address = INSTRUCTION_BYTES * i.target(target[0]) if target else i.instruction.address
    i.emit("MOV64", d=d, s=[Source(i.words(address, 0))])


@opcode("RET", modifiers="REL ABS NODEC")
@opcode("BRX", "BRXU")
def jump_indirect(i: Lowering) -> None:
    """[predicate,] register, base: lanes for which the predicate is false stay."""
    conditions = [x for x in i.operands[:1] if is_predicate(x)]
    register, base, *_ = i.operands[len(conditions) :]
    i.emit(
        "BRANCH_INDIRECT", ps=conditions or [TRUE], s=[i.u32(register)], imm=base_address(i, base)
    )


def base_address(i: Lowering, operand: Operand) -> int:
    """Address that an indirect jump is relative to: the start of the code, which a symbol names."""
    if isinstance(operand, Special):
        return 0
    return INSTRUCTION_BYTES * i.target(operand)


@opcode("BSSY", modifiers="RELIABLE RECONVERGENT")
def bssy(i: Lowering) -> None:
    i.emit("BSSY", aux=barrier_index(i.operands[0]))


@opcode("BSYNC", modifiers="RELIABLE RECONVERGENT")
def bsync(i: Lowering) -> None:
    flags = i.flags({"RELIABLE": BSYNC_FIRM, "RECONVERGENT": BSYNC_FIRM})
    i.emit("BSYNC", aux=barrier_index(i.operands[0]), flags=flags)


@opcode("BREAK", modifiers="RELIABLE RECONVERGENT")
def break_(i: Lowering) -> None:
    """barrier and, before or behind it, the lanes that leave it"""
    (barrier,) = (x for x in i.operands if not is_predicate(x))
    leaving = [x for x in i.operands if is_predicate(x)] or [TRUE]
    i.emit("BREAK", ps=leaving, aux=barrier_index(barrier))


def barrier_index(operand: Operand) -> int:
    assert isinstance(operand, Register)
    assert operand.file == "B"
    return operand.index


@opcode("WARPSYNC", modifiers="ALL COLLECTIVE EXCLUSIVE")
def warpsync(i: Lowering) -> None:
    """A mask of lanes, none for all of them; .COLLECTIVE also names where they go on.

    Where lanes name different masks, .EXCLUSIVE and .COLLECTIVE run those of each mask apart.
    """
    flags = i.flags({"EXCLUSIVE": WARPSYNC_APART, "COLLECTIVE": WARPSYNC_APART})
    if "ALL" in i.modifiers or not i.operands:
        i.emit("WARPSYNC", s=lane_mask(i, ()))
    else:
        i.emit("WARPSYNC", s=lane_mask(i, i.operands[:1]), flags=flags)


@opcode("YIELD")
@opcode("NANOSLEEP", modifiers="SYNCALL SYNCS WARP")
def yield_(i: Lowering) -> None:
    """Let another group of the warp go on: spinning lanes wait for it."""
    i.emit("YIELD")


@opcode("BAR", modifiers="SYNC ARV RED POPC AND OR DEFER_BLOCKING")
def bar(i: Lowering) -> None:
    """barrier [, threads] [, predicate that is reduced]; two registers are one that holds both"""
    numbers = [x for x in i.operands if not is_predicate(x)]
    predicates = [x for x in i.operands if is_predicate(x)]
    flags = i.flags({"ARV": ARRIVE, "RED": REDUCE})
    if len(numbers) == 2 and all(isinstance(x, Register) for x in numbers):
        if numbers[0] != numbers[1]:
            i.refuse_operand(numbers[1], "the barrier's register again")
        flags |= PACKED
    i.emit("BARRIER", s=map(i.u32, numbers), ps=predicates, flags=flags)


@opcode("BPT", modifiers="TRAP")
def bpt(i: Lowering) -> None:
    i.emit("TRAP")


@opcode("NOP", modifiers="SYNC")
@opcode("MEMBAR", modifiers="SC ALL CTA GPU SYS VC")
@opcode("CCTL", modifiers="IVALL E U PF1 PF2 RS IV D C I PML2 RML2 DML2")
@opcode("ERRBAR", "CGAERRBAR", "LDGDEPBAR", "ACQBULK", "PREEXIT", "ENDCOLLECTIVE", "PMTRIG")
@opcode("FENCE", modifiers="VIEW ASYNC S G T")
def nop(i: Lowering) -> None:
    """Order in memory, sleep and scoreboards: one warp runs at a time here, in order."""
    i.emit("NOP")


@opcode("DEPBAR", modifiers="LE")
def depbar(i: Lowering) -> None:
    """[scoreboard, how many groups of copies may be left]: bulk stores are made as late as here."""
    left = [x.integer for x in i.operands if isinstance(x, Immediate)]
    i.emit("BULK_WAIT", aux=left[0] if left else 0)
