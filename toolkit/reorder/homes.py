"""The registers that values may be given, and when each of them is taken by what stays in it.

Values only go where a multiply-add or a load of the block writes anyway, and only while nothing
else holds a value there. What other instructions do to a register is over where the compiler
let something be written after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolkit.machine_code.instruction import RZ
from toolkit.reorder.banks import Operands
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import OTHER_CLOCKS, Code, clocks_at
from toolkit.reorder.words import waits

FOREVER = 1 << 60

Span = tuple[int, int]  # from the position of a result to that of its last reader


def homes(
    code: Code, block: Block, operands: Mapping[int, Operands], live_after: frozenset[int]
) -> dict[int, list[Span]]:
    """The registers of a block that values may be given, and when what stays in them takes them.

    `code` is as compiled; `operands` are those of the multiply-adds by their new positions.
    """
    found = {}
    for register in sorted(_written(code, block) - {RZ}):
        staying = _Staying(code, block, operands, register)
        taken = staying.taken(is_live_after=register in live_after)
        if taken is not None:
            found[register] = taken
    return found


def _written(code: Code, block: Block) -> set[int]:
    """What multiply-adds and loads of a block write."""
    return {
        register
        for position in range(block.start, block.end)
        if code.moves(position) or not code.has_fixed_latency(position)
        for register in code.written[position]
    }


class _Event(NamedTuple):
    """Something that is read, and until which position, or written, whatever was there."""

    position: int
    until: int
    is_written: bool
    is_sure: bool = True


@dataclass(frozen=True)
class _Staying:
    """What a register holds in a block, beside values that are given one."""

    code: Code
    block: Block
    operands: Mapping[int, Operands]
    register: int

    def taken(self, *, is_live_after: bool) -> list[Span] | None:
        """When the register is taken; None where something is written that nobody reads, which may
        still be under way when it is overwritten."""
        found: list[Span] = []
        begun, last, is_read = -1, self._entered(), True
        for event in self._events():
            if not event.is_written or not event.is_sure:
                last, is_read = max(last, event.until), is_read or not event.is_written
                continue
            if not is_read:
                return None
            found.append((begun, last))
            begun, last, is_read = event.position, event.position, False
        if not is_read and not is_live_after:
            return None
        found.append((begun, FOREVER if is_live_after else last))
        return found

    def _events(self) -> Iterator[_Event]:
        for position in range(self.block.start, self.block.end):
            moves = position in self.operands
            *sources, result = self.operands[position] if moves else (None,)
            is_read = self.register in (sources if moves else self.code.read[position])
            is_written = (
                result == self.register if moves else self.register in self.code.written[position]
            )
            if is_read:
                yield _Event(
                    position, position if moves else self._released(position), is_written=False
                )
            if is_written:
                is_sure = self.code.instructions[position].guard is None
                yield _Event(position, position, is_written=True, is_sure=is_sure)

    def _entered(self) -> int:
        """Last position at which code before the block may still read or write the register."""
        first = next(self._touching(self.block.start))
        if not self.code.has_fixed_latency(first) and self.register in self.code.written[first]:
            return first  # a load, which keeps its order among others
        at = clocks_at(self.code, self.block)
        before = range(self.block.start, first)
        clocks = (k for k in before if at[k - self.block.start] >= OTHER_CLOCKS)
        waiting = [k for k in (*before, first) if waits(self.code.words[k])]
        return max(next(clocks, first), waiting[-1] if waiting else first)

    def _released(self, position: int) -> int:
        """The position from which on an instruction that stays has read the register."""
        if self.code.has_fixed_latency(position):
            return position
        written = self.code.written
        return next(
            (k for k in self._touching(position + 1) if self.register in written[k]), FOREVER
        )

    def _touching(self, start: int) -> Iterator[int]:
        code = self.code
        return (
            k
            for k in range(start, self.block.end)
            if self.register in code.read[k] or self.register in code.written[k]
        )
