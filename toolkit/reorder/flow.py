"""Clocks between instructions of different blocks: what an earlier block still works on, and how
soon a later one wants a result.

Results of fixed latency are not guarded by scoreboards: the compiler counts clocks. Nothing that
moves may come closer to its producer or its consumer than the latency, or than the compiler put
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from analysis.sm import Unit
from toolkit.machine_code.instruction import RZ, Instruction
from toolkit.machine_code.patching import Word
from toolkit.reorder.banks import Operands, Reads
from toolkit.reorder.blocks import Block
from toolkit.reorder.words import operands_of, stall_clocks

MULTIPLY_ADD_CLOCKS = 4  # from an FFMA to one that reads its result, measured (docs/timing.md)
# From or to any other instruction: the most that a compiler was seen to wait for an integer
# result that becomes a predicate. What it kept closer than that is left as close.
OTHER_CLOCKS = 14

_FIXED = {Unit.FMA, Unit.FMA_HEAVY, Unit.FMA_WIDE, Unit.HALF, Unit.ALU}

Clocks = Mapping[int, int]  # by register


@dataclass(frozen=True, kw_only=True)
class Code:
    """A kernel's instructions, as text and as words; of each the unit that executes it, the
    registers that it reads and writes, and how many it reads of each bank.

    `operands` are those of the multiply-adds that may move, by position.
    """

    instructions: Sequence[Instruction]
    words: Sequence[Word]
    units: Sequence[Unit]
    read: Sequence[frozenset[int]]
    written: Sequence[frozenset[int]]
    reads: Sequence[Reads]
    operands: Mapping[int, Operands]

    def moves(self, position: int) -> bool:
        return position in self.operands

    def with_words(self, start: int, words: Sequence[Word]) -> Code:
        """The code with other multiply-adds where there are some, from a position on."""
        changed, operands = list(self.words), dict(self.operands)
        read, written = list(self.read), list(self.written)
        for position, word in enumerate(words, start=start):
            changed[position] = word
            if self.moves(position):
                operands[position] = (*sources, result) = operands_of(word)
                read[position], written[position] = (
                    frozenset(sources) - {RZ},
                    frozenset([result]) - {RZ},
                )
        return replace(self, words=changed, operands=operands, read=read, written=written)

    def has_fixed_latency(self, position: int) -> bool:
        return self.units[position] in _FIXED

    def keeps(self, position: int) -> bool:
        """Whether operands that were kept before an instruction are there behind it: compilers
        keep them across loads and stores, which collect their own elsewhere."""
        return self.units[position] == Unit.LSU

    def latency(self, producer: int, consumer: int) -> int:
        """Clocks from an instruction of fixed latency to one that needs its result."""
        both = self.moves(producer) and self.moves(consumer)
        return MULTIPLY_ADD_CLOCKS if both else OTHER_CLOCKS


def clocks_at(code: Code, block: Block) -> list[int]:
    """When each instruction of a block is issued if nothing waits, and when the next block is."""
    at = [0]
    for position in range(block.start, block.end):
        at.append(at[-1] + stall_clocks(code.words[position]))
    return at


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """Of a block, by register: clocks that a result of before still takes when it begins, and how
    many clocks after its end (or, negative, before) a result must be issued at the latest."""

    pending: Clocks
    latest: Clocks


def boundaries(code: Code, blocks: Sequence[Block]) -> dict[int, Boundary]:
    """The boundaries of all blocks by their start."""
    pending = _pending(code, blocks)
    wanted = _wanted(code, blocks)
    return {
        block.start: Boundary(
            pending=pending[block.start],
            latest=_least([wanted[n] for n in block.following], unknown=block.is_open),
        )
        for block in blocks
    }


_ANY = range(255)


def _pending(code: Code, blocks: Sequence[Block]) -> dict[int, dict[int, int]]:
    """Clocks that results of before each block still take, at most; 0 is left out."""
    unknown = {b.start for a, b in pairwise(blocks) if a.is_open}
    unknown |= {block.start for block in blocks} - {n for b in blocks for n in b.following} - {0}
    entry: dict[int, dict[int, int]] = {
        b.start: dict.fromkeys(_ANY, OTHER_CLOCKS) if b.start in unknown else {} for b in blocks
    }
    is_changing = True
    while is_changing:
        is_changing = False
        for block in blocks:
            leaving = _still_pending(code, block, entry[block.start])
            for following in block.following:
                into = entry[following]
                for register, clocks in leaving.items():
                    if clocks > into.get(register, 0):
                        into[register] = clocks
                        is_changing = True
    return entry


def _still_pending(code: Code, block: Block, entry: Clocks) -> dict[int, int]:
    at = clocks_at(code, block)
    end = at[-1]
    left = {r: clocks - end for r, clocks in entry.items()}
    for position in range(block.start, block.end):
        is_fixed = code.has_fixed_latency(position)
        latency = MULTIPLY_ADD_CLOCKS if code.moves(position) else OTHER_CLOCKS
        for register in code.written[position]:
            left[register] = at[position - block.start] + latency - end if is_fixed else 0
    return {r: clocks for r, clocks in left.items() if clocks > 0}


def _wanted(code: Code, blocks: Sequence[Block]) -> dict[int, dict[int, int]]:
    """How many clocks after each block begins its results of before must be issued: none that is
    left out, and most of them less than 0."""
    found: dict[int, dict[int, int]] = {block.start: {} for block in blocks}
    is_changing = True
    while is_changing:
        is_changing = False
        for block in reversed(blocks):
            after = _least([found[n] for n in block.following], unknown=block.is_open)
            now = _wanted_at_start(code, block, after)
            if now != found[block.start]:
                found[block.start] = now
                is_changing = True
    return found


def _wanted_at_start(code: Code, block: Block, after: Clocks) -> dict[int, int]:
    at = clocks_at(code, block)
    wanted = {r: clocks + at[-1] for r, clocks in after.items()}
    for position in reversed(range(block.start, block.end)):
        latency = MULTIPLY_ADD_CLOCKS if code.moves(position) else OTHER_CLOCKS
        for register in code.written[position] | code.read[position]:
            wanted[register] = at[position - block.start] - latency
    return {r: clocks for r, clocks in wanted.items() if clocks < 0}


def _least(of: Sequence[Clocks], *, unknown: bool) -> dict[int, int]:
    least = dict.fromkeys(_ANY, -OTHER_CLOCKS) if unknown else {}
    for clocks_by_register in of:
        for register, clocks in clocks_by_register.items():
            least[register] = min(clocks, least.get(register, clocks))
    return least
