"""Registers for values that may change theirs, in the bank where their readers want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolkit.reorder.banks import FIRST_VALUE, Operands
from toolkit.reorder.homes import Span


def allocated(
    operands: Mapping[int, Operands],
    homes: Mapping[int, Sequence[Span]],
    wanted: Mapping[int, int],
) -> dict[int, int] | None:
    """A register for each value; None where one finds none.

    `operands` are those of the multiply-adds by their new positions. `wanted` says the bank that a
    value should be in; it gets a register of the other one where there is none.
    """
    taken = {register: list(spans) for register, spans in homes.items()}
    found: dict[int, int] = {}
    for value, (begin, end) in sorted(spans(operands).items(), key=lambda item: item[1]):
        free = [r for r, those in taken.items() if not any(b < end and begin < e for b, e in those)]
        if not free:
            return None
        found[value] = min(free, key=lambda r: r & 1 != wanted.get(value, r & 1))
        taken[found[value]].append((begin, end))
    return found


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
