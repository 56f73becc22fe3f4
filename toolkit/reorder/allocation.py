"""Registers for values that may change theirs, in the bank where their readers want them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from toolkit.reorder.banks import FIRST_VALUE, Operands
from toolkit.reorder.homes import Home, Span, Taken

MOST_WITHOUT = 8  # values without a register: where there are more, too many are wanted at a time
MOST_MOVED = 2  # values that make room for one another, in a row


def allocated(
    operands: Mapping[int, Operands], homes: Mapping[int, Home], wanted: Mapping[int, int]
) -> tuple[dict[int, int], list[int]]:
    """A register for each value, and the values that found none.

    `operands` are those of the multiply-adds by their new positions. `wanted` says the bank that a
    value should be in; it gets a register of the other one where there is none.
    """
    search = _Search(homes, wanted)
    waiting = sorted(spans(operands).items(), key=lambda item: item[1])
    without = (value for value, span in waiting if not search.position(value, span))
    return search.found, list(islice(without, MOST_WITHOUT))


def spans(operands: Mapping[int, Operands]) -> dict[int, Span]:
    """From where to where each value is wanted."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position in sorted(operands):
        *sources, result = operands[position]
        last.update({number: position for number in sources if number >= FIRST_VALUE})
        if result >= FIRST_VALUE:
            first[result] = position
    return {number: (position, last[number]) for number, position in first.items()}


class _Search:
    """Registers for values, one after the other; one that has a register may be given another."""

    def __init__(self, homes: Mapping[int, Home], wanted: Mapping[int, int]) -> None:
        self.homes = {register: Home(list(home.taken)) for register, home in homes.items()}
        self.wanted = wanted
        self.banks = [[r for r in homes if r & 1 == bank] for bank in (0, 1)]
        self.found: dict[int, int] = {}

    def position(self, value: int, span: Span) -> bool:
        """Whether a value gets a register: one of its bank if possible, else any."""
        bank = self.wanted.get(value)
        everywhere = list(self.homes)
        if bank is None:
            return self._placed(value, span, everywhere, MOST_MOVED)
        return self._placed(value, span, self.banks[bank], 1) or self._placed(
            value, span, everywhere, MOST_MOVED
        )

    def _placed(self, value: int, span: Span, registers: Sequence[int], moved: int) -> bool:
        register = self._roomiest(span, registers)
        if register is None:
            return moved > 0 and self._moves_another(value, span, registers, moved)
        self._take(register, value, span)
        return True

    def _roomiest(self, span: Span, registers: Iterable[int]) -> int | None:
        """A register with room, such that the next one follows soonest: long rooms are rare."""
        rooms = ((self.homes[register].room(span), register) for register in registers)
        return min(((room, r) for room, r in rooms if room is not None), default=(0, None))[1]

    def _moves_another(self, value: int, span: Span, registers: Sequence[int], moved: int) -> bool:
        """Whether the only value in the way in some register can go to another one."""
        for register in registers:
            clashes = self.homes[register].clashes(span)
            if len(clashes) != 1 or (other := clashes[0]).value is None:
                continue
            home = self.homes[register]
            home.taken[home.taken.index(other)] = Taken(*span, value)
            if self._placed(other.value, (other.begin, other.end), registers, moved - 1):
                self.found[value] = register
                return True
            home.taken[home.taken.index(Taken(*span, value))] = other
        return False

    def _take(self, register: int, value: int, span: Span) -> None:
        self.homes[register].taken.append(Taken(*span, value))
        self.found[value] = register
