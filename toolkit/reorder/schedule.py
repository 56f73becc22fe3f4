"""The order of a block's multiply-adds in which their operands are read with the fewest conflicts.

A beam search fills the positions one after the other: of the partial orders with the fewest clocks
lost so far, `WIDTH` go on. An order that leaves no position for something before its last one is
never begun.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from toolkit.reorder.banks import IDLE, Banks, Operands, dispatched, reads_of
from toolkit.reorder.flow import MULTIPLY_ADD_CLOCKS
from toolkit.reorder.freedom import Freedom

WIDTH = 16  # four times as many save a few percent of the clocks lost, in twice the time
# Clocks that count beside those that the model sees lost: an operand that is left before all who
# wait for it were served has to be read again.
LEFT_BEHIND = 0.2


# Clocks that two reads of one bank count for. By the model they cost nothing where neighbours read
# the other bank; of 36 patterns that were measured one takes longer (docs/timing.md).
OF_ONE_BANK = 0.3


@dataclass(frozen=True, kw_only=True)
class Gap:
    """What lies between two positions of multiply-adds: whether what was kept is lost, and the
    register reads of other instructions, with the clocks from each to the next."""

    is_break: bool
    first_clocks: int
    reads: Sequence[tuple[tuple[int, int], int]]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Multiply-adds by number, where each may go, and what lies before each position."""

    operands: Sequence[Operands]
    freedom: Freedom
    gaps: Sequence[Gap]

    @cached_property
    def deadlines(self) -> list[tuple[int, int]]:
        """(position, multiply-adds that must not come after it), in order."""
        latest = self.latest
        return [
            (position, sum(1 << n for n, last in enumerate(latest) if last <= position))
            for position in sorted(set(latest))
        ]

    @cached_property
    def latest(self) -> list[int]:
        """The last positions, each before those of all that come after it, results in time."""
        free = self.freedom
        latest = list(map(min, free.latest, self._needed))
        for n in reversed(range(len(latest))):
            for other in free.after[n]:
                latest[other] = min(latest[other], latest[n] - 1)
            in_time = bisect_right(free.clocks, free.clocks[latest[n]] - MULTIPLY_ADD_CLOCKS) - 1
            for other in free.results[n]:
                latest[other] = min(latest[other], in_time)
        return latest

    @cached_property
    def _needed(self) -> list[int]:
        """Last position of each: if only as many can come as there are positions, all have to."""
        needed = [len(self.operands)] * len(self.operands)
        for position, may_come in reversed(list(enumerate(self.released, start=1))):
            if may_come.bit_count() == position:
                for n, earliest in enumerate(self.freedom.earliest):
                    needed[n] = position - 1 if earliest < position else needed[n]
        return needed

    @cached_property
    def released(self) -> list[int]:
        """By position: those that may be there or later."""
        masks = [0] * len(self.freedom.positions)
        for n, position in enumerate(self.freedom.earliest):
            masks[position] |= 1 << n
        for position in range(1, len(masks)):
            masks[position] |= masks[position - 1]
        return masks

    @cached_property
    def expired(self) -> list[int]:
        """By position: those that may only be before it."""
        return [
            sum(1 << n for n, latest in enumerate(self.freedom.latest) if latest < position)
            for position in range(len(self.freedom.positions))
        ]

    @cached_property
    def users(self) -> Mapping[int, int]:
        """By register: those that multiply it."""
        users: dict[int, int] = defaultdict(int)
        for n, (a, b, _, _) in enumerate(self.operands):
            for register in (a, b):
                users[register] |= 1 << n
        return users

    @cached_property
    def clean(self) -> Mapping[int, int]:
        """By register: those that read one register of each bank when it is kept."""
        clean: dict[int, int] = defaultdict(int)
        for n, (a, b, c, _) in enumerate(self.operands):
            for kept, other in ((a, b), (b, a)):
                if (other ^ c) & 1:
                    clean[kept] |= 1 << n
        return clean

    @cached_property
    def before(self) -> list[int]:
        return [sum(1 << k for k in after) for after in self.freedom.after]

    @cached_property
    def consumers(self) -> list[int]:
        """Of each: those that read its result."""
        found = [0] * len(self.operands)
        for n, results in enumerate(self.freedom.results):
            for other in results:
                found[other] |= 1 << n
        return found

    @cached_property
    def successors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.operands]
        for n, after in enumerate(self.freedom.after):
            for other in after:
                found[other].append(n)
        return found


Choice = tuple[int, bool]  # number, whether its first two sources change positions
Slots = tuple[int, int, int]


class _Partial(NamedTuple):
    """An order of the first positions: what it lost, who is done and who can go on."""

    cost: float
    done: int
    ready: int
    last: Slots | None  # the registers of each slot that can be kept
    banks: Banks
    recent: tuple[tuple[int, int], ...]  # (number, clock) of those whose results are under way
    chosen: tuple[object, int, bool] | None  # the order before, the number, whether swapped


def in_slots(operands: Operands, *, is_swapped: bool) -> Slots:
    a, b, c, _ = operands
    return (b, a, c) if is_swapped else (a, b, c)


def fresh(slots: Slots, kept: Slots | None) -> list[int]:
    """What has to be read of the register file, beside what each slot has kept."""
    known = kept or (-1, -1, -1)
    return [n for k, n in enumerate(slots) if n != known[k] and n not in slots[:k]]


def kept_after(slots: Slots, result: int) -> Slots:
    """What each slot can keep for the next instruction: nothing that the result replaces."""
    a, b, c = (-1 if n == result else n for n in slots)
    return a, b, c


def late_clocks(problem: Problem, choices: Sequence[Choice]) -> int:
    """Clocks that an order loses to register bank conflicts."""
    total, banks = 0, IDLE
    kept: Slots | None = None
    for gap, (number, is_swapped) in zip(problem.gaps, choices, strict=True):
        operands = problem.operands[number]
        slots = in_slots(operands, is_swapped=is_swapped)
        reads = reads_of(fresh(slots, None if gap.is_break else kept))
        late, banks = dispatched(_behind_gap(gap, banks), reads)
        kept, banks = kept_after(slots, operands[3]), banks.later(1 + late)
        total += late
    return total


def _behind_gap(gap: Gap, banks: Banks) -> Banks:
    banks = banks.later(gap.first_clocks)
    for reads, clocks in gap.reads:
        late, banks = dispatched(banks, reads)
        banks = banks.later(max(clocks, 1 + late))
    return banks


def ordered(problem: Problem) -> list[Choice] | None:
    """The best order found, or None where none was found."""
    count = len(problem.operands)
    ready = sum(1 << n for n, before in enumerate(problem.before) if not before)
    beam = [_Partial(0.0, 0, ready, None, IDLE, (), None)]
    for position in range(count):
        following: dict[tuple[int, object], _Partial] = {}
        for order in beam:
            for extended in _extensions(problem, order, position):
                key = extended.done, extended.last
                if key not in following or extended.cost < following[key].cost:
                    following[key] = extended
        beam = sorted(following.values(), key=lambda p: p.cost)[:WIDTH]
        if not beam:
            return None
    return _choices(beam[0])


def _choices(order: _Partial) -> list[Choice]:
    found: list[Choice] = []
    chosen = order.chosen
    while chosen is not None:
        earlier, number, swapped = chosen
        found.append((number, swapped))
        chosen = earlier  # type: ignore[assignment]
    return found[::-1]


def _extensions(problem: Problem, order: _Partial, position: int) -> Iterator[_Partial]:
    gap, clock = problem.gaps[position], problem.freedom.clocks[position]
    banks = _behind_gap(gap, order.banks)
    last = None if gap.is_break else order.last
    recent = tuple((n, c) for n, c in order.recent if clock - c < MULTIPLY_ADD_CLOCKS)
    allowed = _allowed(problem, order, position, recent)
    for number in _tried(problem, allowed, last):
        under_way = (*recent, (number, clock))
        yield _extended(problem, order, number, last, banks, under_way)


def _allowed(
    problem: Problem, order: _Partial, position: int, recent: Sequence[tuple[int, int]]
) -> int:
    """Those that can take a position: what is due before the others, where none may wait."""
    if problem.expired[position] & ~order.done:
        return 0
    allowed = order.ready & problem.released[position]
    for number, _ in recent:
        allowed &= ~problem.consumers[number]
    for last_position, due in problem.deadlines:
        left = (due & ~order.done).bit_count()
        if left and left > last_position - position:
            return allowed & due
    return allowed


def _tried(problem: Problem, allowed: int, last: Slots | None) -> Iterator[int]:
    """Some that use a register of the last one again, at best without a conflict, and others."""
    tried = 0
    for register in (last or ())[:2]:
        sharing = allowed & problem.users.get(register, 0)
        clean = sharing & problem.clean.get(register, 0)
        for number in _some((clean or sharing) & ~tried):
            tried |= 1 << number
            yield number
    yield from _some(allowed & ~tried)


def _some(mask: int) -> Iterator[int]:
    """The first of a set, the last, and the second."""
    for is_last in (False, True, False):
        if mask:
            number = (mask if is_last else mask & -mask).bit_length() - 1
            mask ^= 1 << number
            yield number


def _extended(
    problem: Problem,
    order: _Partial,
    number: int,
    last: Slots | None,
    banks: Banks,
    recent: tuple[tuple[int, int], ...],
) -> _Partial:
    a, b, _, d = problem.operands[number]
    swapped = False
    if last is not None:
        swapped = (a == last[1]) + (b == last[0]) > (a == last[0]) + (b == last[1])
    slots = in_slots(problem.operands[number], is_swapped=swapped)
    reads = reads_of(fresh(slots, last))
    late, after = dispatched(banks, reads)
    done = order.done | 1 << number
    cost = order.cost + late + OF_ONE_BANK * (max(reads) > 1)
    if last is not None:
        for k in (0, 1):
            if slots[k] != last[k] and problem.users.get(last[k], 0) & order.ready & ~done:
                cost += LEFT_BEHIND / 2
    ready = order.ready & ~(1 << number)
    for successor in problem.successors[number]:
        if not problem.before[successor] & ~done:
            ready |= 1 << successor
    kept = kept_after(slots, d)
    chosen = (order.chosen, number, swapped)
    return _Partial(cost, done, ready, kept, after.later(1 + late), recent, chosen)
