"""Whether two codes of a kernel compute the same: every value by what it is made of.

This knows nothing of how an order is found. Block by block, both codes are executed on symbols. A
register holds what it held when the block began, or the result of an instruction; that of an FFMA
is what it is made of, so that it is the same wherever it stands. Everything else must stand where
it stood, be the same to the last bit but for what it keeps, and read the same values; where a block
ends, so must all that is read later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from analysis.errors import ToolkitError
from toolkit.machine_code.instruction import RZ, Instruction, Register
from toolkit.machine_code.patching import REUSE, REUSE_BITS, Word, with_field
from toolkit.reorder.blocks import Block
from toolkit.reorder.operands import read, written

Symbol = Hashable


def check_same(
    before: Sequence[Instruction],
    after: Sequence[Instruction],
    words: tuple[Sequence[Word], Sequence[Word]],
    blocks: Sequence[Block],
    live_after: dict[int, frozenset[int]],
) -> None:
    """Raise ToolkitError where the codes of a kernel, and their words, do not do the same."""
    for position, (old, new) in enumerate(zip(*words, strict=True)):
        is_sum = all(_is_sum(code[position]) for code in (before, after))
        if not is_sum and with_field(old, REUSE, REUSE_BITS, 0) != with_field(
            new, REUSE, REUSE_BITS, 0
        ):
            _fail(after[position], "it is not the instruction that was there")
    for block in blocks:
        _check_block(before, after, block, live_after[block.start])


def _check_block(
    before: Sequence[Instruction],
    after: Sequence[Instruction],
    block: Block,
    live: frozenset[int],
) -> None:
    names: dict[Symbol, int] = {}
    old, new = _State(names), _State(names)
    for position in range(block.start, block.end):
        if old.execute(before[position]) != new.execute(after[position]):
            _fail(after[position], "it reads other values than before")
    for register in live:
        if old.value(register) != new.value(register):
            _fail(after[block.end - 1], f"R{register} has another value behind it than before")


def _fail(instruction: Instruction, what: str) -> None:
    raise ToolkitError(
        f"{instruction.located} of the reordered code: {what}: "
        "nothing is changed; please report the kernel"
    )


def _is_sum(instruction: Instruction) -> bool:
    """Whether it is an FFMA of registers that every thread executes."""
    return (
        instruction.opcode == "FFMA"
        and instruction.guard is None
        and all(isinstance(x, Register) and x.file == "R" for x in instruction.operands)
    )


@dataclass
class _State:
    """What the registers hold, as numbers of symbols; both codes share the `names` of these."""

    names: dict[Symbol, int]
    values: dict[int, int] = field(default_factory=dict)

    def value(self, register: int) -> int:
        if register not in self.values:
            self.values[register] = self._number(("before", register))
        return self.values[register]

    def execute(self, instruction: Instruction) -> Symbol:
        """What the instruction reads, which has to be the same in both codes: of an FFMA nothing,
        for it may stand elsewhere."""
        if _is_sum(instruction):
            self._sum(instruction)
            return None
        values = tuple(map(self.value, read(instruction)))
        for register in written(instruction):
            kept = None if instruction.guard is None else self.value(register)
            self.values[register] = self._number((instruction.address, register, kept))
        return values

    def _sum(self, instruction: Instruction) -> None:
        result, *sources = (x for x in instruction.operands if isinstance(x, Register))
        a, b, c = map(self._source, sources)
        factors = frozenset([a, b]) if a != b else (a,)  # a product does not depend on their order
        if result.index != RZ:
            made_of = ("sum", instruction.modifiers, factors, c)
            self.values[result.index] = self._number(made_of)

    def _source(self, operand: Register) -> Symbol:
        held = "zero" if operand.index == RZ else self.value(operand.index)
        return held, operand.negate, operand.absolute, operand.suffix

    def _number(self, symbol: Symbol) -> int:
        return self.names.setdefault(symbol, len(self.names))
