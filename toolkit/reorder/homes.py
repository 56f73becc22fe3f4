"""The registers that values may be given, and when each of them is taken by what stays in it.

Values only go where a multiply-add or a load of the block writes anyway, and only while nothing
else holds a value there. What other instructions do to a register is over where the compiler first
let something be written after it: a scoreboard was waited for by then. Where that is a load, the
register is taken until then: loads and stores keep their order without scoreboards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolkit.machine_code.instruction import RZ
from toolkit.reorder.banks import Operands
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Boundary, Code, clocks_at
from toolkit.reorder.words import waits

FOREVER = 1 << 60

Span = tuple[int, int]  # from the position of a result to that of its last reader


class Taken(NamedTuple):
    """A span of a register, and the value that has it; None for what stays there."""

    begin: int
    end: int
    value: int | None


@dataclass
class Home:
    """A register that values may be given, and when it is taken."""

    taken: list[Taken] = field(default_factory=list)

    def clashes(self, span: Span) -> list[Taken]:
        return [x for x in self.taken if x.begin < span[1] and span[0] < x.end]

    def room(self, span: Span) -> int | None:
        """Places from a span's end to the next one that takes the register, None without room."""
        if self.clashes(span):
            return None
        return min((x.begin for x in self.taken if x.begin >= span[1]), default=FOREVER) - span[1]


def homes(
    code: Code,
    block: Block,
    boundary: Boundary,
    operands: Mapping[int, Operands],
    live_after: frozenset[int],
) -> dict[int, Home]:
    """The registers of a block that values may be given, taken by what stays in them.

    `code` is as compiled; `operands` are those of the multiply-adds by their new positions.
    """
    found = {}
    for register in sorted(_written(code, block) - {RZ}):
        staying = _Staying(code, block, boundary, operands, register)
        taken = staying.taken(is_live_after=register in live_after)
        if taken is not None:
            found[register] = Home(taken)
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
    boundary: Boundary
    operands: Mapping[int, Operands]
    register: int

    def taken(self, *, is_live_after: bool) -> list[Taken] | None:
        """When the register is taken; None where something is written that nobody reads, which may
        still be under way when it is overwritten."""
        found: list[Taken] = []
        begun, last, is_read = -1, self._entered(), True
        for event in self._events():
            if not event.is_written or not event.is_sure:
                last, is_read = max(last, event.until), is_read or not event.is_written
                continue
            if not is_read:
                return None
            found.append(Taken(begun, last, None))
            begun, last, is_read = event.position, event.position, False
        if not is_read and not is_live_after:
            return None
        found.append(Taken(begun, FOREVER if is_live_after else last, None))
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
        if self._is_load(first):
            return first
        at = clocks_at(self.code, self.block)
        pending = self.boundary.pending.get(self.register, 0)
        clocks = (k for k in range(self.block.start, first) if at[k - self.block.start] >= pending)
        return max(next(clocks, first), self._last_wait(self.block.start, first))

    def _released(self, position: int) -> int:
        """The position from which on an instruction that stays has read the register."""
        if self.code.has_fixed_latency(position):
            return position
        writing = (k for k in self._touching(position + 1) if self.register in self.code.written[k])
        first = next(writing, None)
        if first is None:
            return FOREVER
        return first if self._is_load(first) else self._last_wait(position + 1, first)

    def _touching(self, start: int) -> Iterator[int]:
        code = self.code
        return (
            k
            for k in range(start, self.block.end)
            if self.register in code.read[k] or self.register in code.written[k]
        )

    def _is_load(self, position: int) -> bool:
        is_variable = not self.code.has_fixed_latency(position)
        return is_variable and self.register in self.code.written[position]

    def _last_wait(self, start: int, position: int) -> int:
        """The last position up to `position` that waits for a scoreboard, else that itself."""
        waiting = [k for k in range(start, position + 1) if waits(self.code.words[k])]
        return waiting[-1] if waiting else position
