"""A block's multiply-adds put in a new order: the problem that a search solves, and its solution
as words."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.patching import Word
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Code
from toolkit.reorder.freedom import Freedom
from toolkit.reorder.schedule import Choice, Gap, Problem, in_slots
from toolkit.reorder.words import (
    RESULT,
    SOURCES,
    is_movable,
    moved,
    register,
    reuse,
    stall_clocks,
    with_register,
    with_reuse,
)
from toolkit.sass.instruction import RZ


def problem(code: Code, free: Freedom) -> Problem:
    """What is known of a block's multiply-adds, for the search."""
    return Problem(
        operands=[code.operands[place] for place in free.places],
        freedom=free,
        gaps=[
            _gap(code, earlier, place)
            for earlier, place in zip([None, *free.places], free.places, strict=False)
        ],
    )


def _gap(code: Code, earlier: int | None, place: int) -> Gap:
    """What lies before a place. Where a warp cannot go on at once another one does, and takes what
    was kept; so does an instruction that is no multiply-add."""
    if earlier is None:
        return Gap(is_break=True, first_clocks=1, reads=())
    clocks = stall_clocks(code.words[earlier])
    between = range(earlier + 1, place)
    return Gap(
        is_break=clocks > 1 or bool(between),
        first_clocks=clocks - 1,
        reads=[(code.reads[k], stall_clocks(code.words[k])) for k in between],
    )


def reordered(
    code: Code,
    block: Block,
    found: Problem,
    choices: Sequence[Choice],
) -> list[Word]:
    """The words of a block with its multiply-adds in the order of the choices."""
    words = list(code.words[block.start : block.end])
    places = found.freedom.places
    for place, (number, is_swapped) in zip(places, choices, strict=True):
        operands = found.operands[number]
        numbers = (*in_slots(operands, is_swapped=is_swapped), operands[3])
        word = code.words[places[number]]
        for at, n in zip((*SOURCES, RESULT), numbers, strict=True):
            word = with_register(word, at, n)
        words[place - block.start] = moved(word, code.words[place])
    return with_reuse_set(words, code.words[block.start : block.end])


def with_reuse_set(words: Sequence[Word], before: Sequence[Word]) -> list[Word]:
    """The words with each operand kept that the next one reads in the same slot.

    What is not a multiply-add keeps only what it kept `before`, and only where the next
    instruction still has it.
    """
    found = []
    for k, word in enumerate(words):
        following = words[k + 1] if k + 1 < len(words) else None
        if following is None or (following == before[k + 1] and word == before[k]):
            found.append(word)
        elif is_movable(word) and is_movable(following):
            found.append(with_reuse(word, shared_slots(word, following)))
        else:
            is_same = is_movable(following) and not is_movable(word)
            found.append(with_reuse(word, reuse(word) & shared_slots(word, following) * is_same))
    return found


def shared_slots(word: Word, following: Word) -> int:
    """The slots of an instruction whose registers the next one reads in the same ones, unchanged.

    Where the warp has to wait another one goes on, and nothing is kept.
    """
    if stall_clocks(word) > 1:
        return 0
    return sum(
        1 << slot
        for slot, at in enumerate(SOURCES)
        if register(word, at) == register(following, at) not in (RZ, register(word, RESULT))
    )
