"""Where each multiply-add of a block may go without a change of what any instruction reads.

A multiply-add moves among the positions that multiply-adds have in its block; all other
instructions stay. What decides of timing stays with the position: the stall count, and the
scoreboards that are waited for. So other instructions keep their distances, and loads come as early
as before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import OTHER_CLOCKS, Code, clocks_at
from toolkit.reorder.words import waits


@dataclass(frozen=True, kw_only=True)
class Freedom:
    """The positions of a block's multiply-adds, and of each one (by its number) where it may go.

    `positions` are positions in the code, `clocks` when they are issued. Multiply-add n may take
    the positions from `earliest[n]` to `latest[n]` (numbers of positions), after all of `after[n]`,
    and `results[n]` of them as many clocks earlier as a multiply-add takes.
    """

    positions: Sequence[int]
    clocks: Sequence[int]
    earliest: Sequence[int]
    latest: Sequence[int]
    after: Sequence[frozenset[int]]
    results: Sequence[frozenset[int]]


@dataclass
class _Bounds:
    """Of one multiply-add, as they are found: positions in the code, and clocks of the block."""

    first_position: int = 0
    first_clock: int = 0
    last_position: int = 1 << 60
    last_clock: int = 1 << 60
    after: set[int] = field(default_factory=set)
    results: set[int] = field(default_factory=set)


def freedom(code: Code, block: Block, others: int = OTHER_CLOCKS) -> Freedom:
    """What may move where in one block.

    `others` are the clocks that results of other blocks may still take, and that those of this one
    may be wanted before its end.
    """
    search = _Search(code, block, others)
    found = search.bounds()
    positions = sorted(found)
    number = {position: n for n, position in enumerate(positions)}
    clocks = [search.at[position - block.start] for position in positions]
    bounds = [found[position] for position in positions]
    earliest = [
        next(
            n
            for n, p in enumerate(positions)
            if p >= b.first_position and clocks[n] >= b.first_clock
        )
        for b in bounds
    ]
    latest = [
        max(
            n for n, p in enumerate(positions) if p <= b.last_position and clocks[n] <= b.last_clock
        )
        for b in bounds
    ]
    return Freedom(
        positions=positions,
        clocks=clocks,
        earliest=earliest,
        latest=latest,
        after=[frozenset(number[p] for p in b.after) for b in bounds],
        results=[frozenset(number[p] for p in b.results) for b in bounds],
    )


class _Search:
    """Walks a block once, register by register."""

    def __init__(self, code: Code, block: Block, others: int) -> None:
        self.code, self.block, self.others = code, block, others
        self.at = clocks_at(code, block)
        self.found = {
            position: _Bounds()
            for position in range(block.start, block.end)
            if code.moves(position)
        }
        # by register: who wrote it last, and who has read it since
        self.writer: dict[int, int] = {}
        self.readers: dict[int, list[int]] = defaultdict(list)
        self.touching = _touching(code, block)

    def bounds(self) -> dict[int, _Bounds]:
        for position in range(self.block.start, self.block.end):
            sources, results = self.code.read[position], self.code.written[position]
            for register in sources:
                self._reads(position, register)
            for register in results:
                self._writes(position, register)
            for register in sources:
                self.readers[register].append(position)
            for register in results:
                self.writer[register], self.readers[register] = position, []
        for position in self.writer.values():
            self._leaves(position)
        return self.found

    def _reads(self, position: int, register: int) -> None:
        writer = self.writer.get(register)
        if writer is None:
            self._enters(position, register)
        elif writer in self.found and position in self.found:
            self.found[position].results.add(writer)
            self.found[position].after.add(writer)
        elif writer in self.found:
            self._before(writer, position, latency=OTHER_CLOCKS)
        elif position in self.found:
            self._behind(writer, position, register)

    def _writes(self, position: int, register: int) -> None:
        writer = self.writer.get(register)
        earlier = [p for p in self.readers[register] if p != position]
        if writer is None and not earlier:
            self._enters(position, register)
        elif writer is not None:
            earlier.append(writer)
        for other in earlier:
            if other in self.found and position in self.found:
                self.found[position].after.add(other)
            elif other in self.found:
                self._before(other, position, latency=OTHER_CLOCKS if other == writer else 1)
            elif position in self.found:
                self._behind(other, position, register)

    def _enters(self, position: int, register: int) -> None:
        """The register's value is one of before the block."""
        if position not in self.found:
            return
        first = self.touching[register][0]
        bounds = self.found[position]
        bounds.first_clock = max(bounds.first_clock, min(self.others, self._clock(first)))
        bounds.first_position = max(
            bounds.first_position, self._last_wait(self.block.start - 1, first)
        )

    def _leaves(self, position: int) -> None:
        """The value may be wanted behind the block."""
        if position in self.found:
            bounds, wanted = self.found[position], self.at[-1] - self.others
            bounds.last_clock = min(bounds.last_clock, max(wanted, self._clock(position)))

    def _before(self, mover: int, fixed: int, *, latency: int) -> None:
        bounds = self.found[mover]
        bounds.last_position = min(bounds.last_position, fixed)
        last = max(self._clock(fixed) - latency, self._clock(mover))
        bounds.last_clock = min(bounds.last_clock, last)

    def _behind(self, fixed: int, mover: int, register: int) -> None:
        """What an instruction that stays did to a register is over only where it was waited for:
        at the last such position before anything else touched the register."""
        first = next(p for p in self.touching[register] if self._clashes(fixed, p, register))
        position = first if self.code.has_fixed_latency(fixed) else self._last_wait(fixed, first)
        bounds = self.found[mover]
        bounds.first_position = max(bounds.first_position, position)

    def _clashes(self, fixed: int, later: int, register: int) -> bool:
        is_written = any(register in self.code.written[position] for position in (fixed, later))
        return later > fixed and is_written

    def _last_wait(self, after: int, position: int) -> int:
        """The last position up to `position` that waits for a scoreboard, else the next or it."""
        for k in range(position, after, -1):
            if waits(self.code.words[k]):
                return k
        return self.block.start if after < self.block.start else position

    def _clock(self, position: int) -> int:
        return self.at[position - self.block.start]


def _touching(code: Code, block: Block) -> dict[int, list[int]]:
    """By register: the positions that read or write it, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for position in range(block.start, block.end):
        for register in code.read[position] | code.written[position]:
            found[register].append(position)
    return found
