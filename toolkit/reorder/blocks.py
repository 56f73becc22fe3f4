"""Straight runs of instructions, where each one leads, and the loops among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from analysis.errors import UnsupportedError
from toolkit.machine_code.instruction import INSTRUCTION_BYTES, Immediate, Instruction

JUMPS = frozenset({"BRA", "JMP"})
# After these the next instruction may not be the next one executed, or threads join that came
# another way.
_ENDS = JUMPS | {"EXIT", "CALL", "RET", "BSYNC", "WARPSYNC", "YIELD", "KILL", "BPT", "BREAK"}
_COMPUTED = frozenset({"BRX", "BRXU", "JMX", "JMXU"})


def refuse(instruction: Instruction, what: str) -> NoReturn:
    raise UnsupportedError(f"{instruction.located}: {what}: this kernel cannot be reordered")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Instructions from `start` up to `end`, by their position in the code.

    `following` are the starts of the blocks that may come next; `is_open` says that others may
    come too: those behind a call, or where a function returns to.
    """

    start: int
    end: int
    following: tuple[int, ...]
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Instructions from `start` up to `end` that a jump at the end leads back to."""

    start: int
    end: int


def blocks(code: Sequence[Instruction]) -> list[Block]:
    """The blocks of a kernel in order of address.

    Raises UnsupportedError for a jump to a computed position.
    """
    starts = sorted(_starts(code))
    return [_block(code, start, end) for start, end in pairwise([*starts, len(code)])]


def loops(code: Sequence[Instruction]) -> list[Loop]:
    """The positions between jumps back and where they lead, those in others included."""
    found = {
        Loop(start=target, end=position + 1)
        for position, instruction in enumerate(code)
        if instruction.opcode in JUMPS and (target := _target(instruction)) < position
    }
    return sorted(found, key=lambda loop: (loop.start, loop.end))


def innermost(found: Sequence[Loop]) -> list[Loop]:
    """Those of some loops that hold no other one of them."""
    return [x for x in found if not any(_holds(x, y) for y in found if y != x)]


def _holds(outer: Loop, inner: Loop) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _starts(code: Sequence[Instruction]) -> set[int]:
    starts = {0}
    for position, instruction in enumerate(code):
        if instruction.opcode in _COMPUTED:
            refuse(instruction, "it jumps to a computed position")
        if instruction.opcode in _ENDS and position + 1 < len(code):
            starts.add(position + 1)
        if instruction.opcode in {*JUMPS, "BSSY", "CALL"}:
            starts.add(_target(instruction))
    return starts


def _block(code: Sequence[Instruction], start: int, end: int) -> Block:
    last = code[end - 1]
    following, is_open = [], last.opcode in ("CALL", "RET")
    if last.opcode in JUMPS:
        following.append(_target(last))
    is_final = last.opcode in {*JUMPS, "EXIT", "RET", "CALL", "KILL"} and last.guard is None
    # a jump may have a second predicate, such as `BRA.U.ANY P0`: then it may not be taken
    is_final = is_final and len(last.operands) <= 1
    if not is_final and end < len(code):
        following.append(end)
    return Block(start=start, end=end, following=tuple(following), is_open=is_open)


def _target(instruction: Instruction) -> int:
    for operand in instruction.operands:
        if isinstance(operand, Immediate):
            return operand.integer // INSTRUCTION_BYTES
    refuse(instruction, "where it leads is not known")
