"""A kernel's code as the search sees it, and the clocks at which its instructions are issued.

Results of fixed latency are not guarded by scoreboards: the compiler counts clocks. Nothing that
moves may come closer to its producer or its consumer than the latency, or than the compiler put
it. Of other blocks nothing is known: whatever they write may still be under way, and whatever they
read is wanted at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
        changed, read, written = list(self.words), list(self.read), list(self.written)
        changed[start : start + len(words)] = words
        operands = {position: operands_of(changed[position]) for position in self.operands}
        for position, (*sources, result) in operands.items():
            read[position] = frozenset(sources) - {RZ}
            written[position] = frozenset([result]) - {RZ}
        return replace(self, words=changed, operands=operands, read=read, written=written)

    def has_fixed_latency(self, position: int) -> bool:
        return self.units[position] in _FIXED

    def keeps(self, position: int) -> bool:
        """Whether operands that were kept before an instruction are there behind it: compilers
        keep them across loads and stores, which collect their own elsewhere."""
        return self.units[position] == Unit.LSU


def clocks_at(code: Code, block: Block) -> list[int]:
    """When each instruction of a block is issued if nothing waits, and when the next block is."""
    at = [0]
    for position in range(block.start, block.end):
        at.append(at[-1] + stall_clocks(code.words[position]))
    return at
