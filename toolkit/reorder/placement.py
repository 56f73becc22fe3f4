"""A block's multiply-adds put in a new order: the problem that a search solves, and its solution
as words."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.machine_code.instruction import RZ
from toolkit.machine_code.patching import Word
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Code
from toolkit.reorder.freedom import Freedom
from toolkit.reorder.schedule import Choice, Gap, Problem, in_slots
from toolkit.reorder.words import (
    RESULT_OFFSET,
    SOURCE_OFFSETS,
    moved,
    register,
    reuse,
    stall_clocks,
    with_register,
    with_reuse,
)


def problem(code: Code, free: Freedom) -> Problem:
    """What is known of a block's multiply-adds, for the search."""
    return Problem(
        operands=[code.operands[position] for position in free.positions],
        freedom=free,
        gaps=[
            _gap(code, earlier, position)
            for earlier, position in zip([None, *free.positions], free.positions, strict=False)
        ],
    )


def _gap(code: Code, earlier: int | None, position: int) -> Gap:
    """What lies before a position."""
    if earlier is None:
        return Gap(is_break=True, first_clocks=1, reads=())
    between = range(earlier + 1, position)
    return Gap(
        is_break=not all(code.keeps(k) for k in between) or stall_clocks(code.words[earlier]) > 1,
        first_clocks=stall_clocks(code.words[earlier]) - 1,
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
    positions = found.freedom.positions
    for position, (number, is_swapped) in zip(positions, choices, strict=True):
        operands = found.operands[number]
        numbers = (*in_slots(operands, is_swapped=is_swapped), operands[3])
        word = code.words[positions[number]]
        for at, n in zip((*SOURCE_OFFSETS, RESULT_OFFSET), numbers, strict=True):
            word = with_register(word, at, n)
        words[position - block.start] = moved(word, code.words[position])
    return with_reuse_set(code.with_words(block.start, words), block)


def with_reuse_set(code: Code, block: Block) -> list[Word]:
    """The words of a block, in which operands are kept for multiply-adds, and by them, where the
    next one reads them in the same slot."""
    words = list(code.words[block.start : block.end])
    for position in range(block.start, block.end):
        following = next(
            (k for k in range(position + 1, block.end) if not code.keeps(k)), block.end
        )
        if following < block.end and (code.moves(position) or code.moves(following)):
            kept = _shared_slots(code, position, following) if code.moves(following) else 0
            if not code.moves(position):
                kept &= reuse(words[position - block.start])
            words[position - block.start] = with_reuse(words[position - block.start], kept)
    return words


def _shared_slots(code: Code, position: int, following: int) -> int:
    """The slots whose registers a later instruction reads in the same ones, unchanged.

    Where the warp has to wait another one goes on, and nothing is kept.
    """
    if any(stall_clocks(code.words[k]) > 1 for k in range(position, following)):
        return 0
    changed = frozenset[int]().union(*code.written[position:following])
    words = code.words[position], code.words[following]
    named = ((register(word, at) for word in words) for at in SOURCE_OFFSETS)
    return sum(
        1 << slot
        for slot, (first, second) in enumerate(named)
        if first == second != RZ and first not in changed
    )
