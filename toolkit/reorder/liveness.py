"""The registers whose values are still wanted where a block ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Code

_ALL = frozenset(range(255))


def live_after(code: Code, blocks: Sequence[Block]) -> dict[int, frozenset[int]]:
    """By the start of each block, the registers that are read behind it before they are written."""
    before: dict[int, frozenset[int]] = {block.start: frozenset() for block in blocks}
    is_changing = True
    while is_changing:
        is_changing = False
        for block in reversed(blocks):
            live = _live_before(code, block, _live_behind(block, before))
            if live != before[block.start]:
                before[block.start] = live
                is_changing = True
    return {block.start: _live_behind(block, before) for block in blocks}


def _live_behind(block: Block, before: dict[int, frozenset[int]]) -> frozenset[int]:
    following: Iterable[frozenset[int]] = (before[start] for start in block.following)
    return _ALL if block.is_open else frozenset().union(*following)


def _live_before(code: Code, block: Block, behind: frozenset[int]) -> frozenset[int]:
    live = set(behind)
    for position in reversed(range(block.start, block.end)):
        if code.instructions[position].guard is None:  # else threads may keep what was there
            live -= code.written[position]
        live |= code.read[position]
    return frozenset(live)
