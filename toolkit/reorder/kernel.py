"""A compiled kernel with its multiply-adds in another order: what may change, searched for, and
proved before anything is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from analysis.sm import Unit
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.patching import Word, changed, rewritten, words
from toolkit.reorder.banks import reads_of
from toolkit.reorder.blocks import Block, Loop, blocks, innermost, loops
from toolkit.reorder.flow import Code
from toolkit.reorder.freedom import freedom
from toolkit.reorder.modelled import LoopClocks, loop_clocks
from toolkit.reorder.operands import read, written
from toolkit.reorder.placement import problem, reordered
from toolkit.reorder.schedule import late_clocks, ordered
from toolkit.reorder.verify import check, check_understood
from toolkit.reorder.words import is_movable, operands_of
from toolkit.sass.timing_table import machine_code

FEWEST = 16  # multiply-adds of a block that is worth a search
WARPS_PER_SCHEDULER = 2  # as products of matrices have that fill the register file


@dataclass(frozen=True, kw_only=True)
class LoopChange:
    """A loop on the model of an SM, before and after.

    `start` and `end` are addresses; `reused` counts operands that are kept for the next
    instruction.
    """

    start: int
    end: int
    instructions: int
    multiply_adds: int
    before: LoopClocks
    after: LoopClocks
    reused_before: int
    reused_after: int


@dataclass(frozen=True, kw_only=True)
class Reordered:
    """A kernel before and after, and what the model of an SM says of its loops."""

    before: Kernel
    after: Kernel
    changed_instructions: int
    warps_per_scheduler: int
    loops: tuple[LoopChange, ...]

    @property
    def image(self) -> bytes:
        return self.after.image


def reorder(kernel: Kernel, *, warps_per_scheduler: int = WARPS_PER_SCHEDULER) -> Reordered:
    """The kernel with the multiply-adds of each of its blocks in the best order that was found.

    `warps_per_scheduler` is for the model alone, on which the loops are compared. Raises
    UnsupportedError for code of which something is not known.
    """
    code = code_of(kernel)
    check_understood(code)
    of_kernel = blocks(code.instructions)
    of_loops = loops(code.instructions)
    new = list(code.words)
    for block in of_kernel:
        is_repeated = any(x.start <= block.start and block.end <= x.end for x in of_loops)
        if is_repeated and multiply_adds(code, block) >= FEWEST:
            new[block.start : block.end] = _better(code, block)
    after = kernel.with_image(rewritten(kernel.image, {kernel.symbol: lambda _: new}))
    check(code, code_of(after))
    return Reordered(
        before=kernel,
        after=after,
        changed_instructions=len(changed(code.words, new)),
        warps_per_scheduler=warps_per_scheduler,
        loops=tuple(_loop_changes(kernel, after, warps_per_scheduler)),
    )


def code_of(kernel: Kernel) -> Code:
    """The instructions of a kernel with what the model of an SM knows of them."""
    table = machine_code(kernel)
    code = words(kernel.image, kernel.symbol)
    return Code(
        instructions=kernel.instructions,
        words=code,
        units=[Unit(unit) for unit in table["unit"]],
        read=[frozenset(read(i)) for i in kernel.instructions],
        written=[frozenset(written(i)) for i in kernel.instructions],
        reads=[reads_of(int(r) for r in row if r >= 0) for row in table["source"]],
        operands={k: operands_of(word) for k, word in enumerate(code) if is_movable(word)},
    )


def multiply_adds(code: Code, part: Block | Loop) -> int:
    return sum(map(code.moves, range(part.start, part.end)))


def _better(code: Code, block: Block) -> Sequence[Word]:
    """The block in the order that was found, or the compiler's where that loses no more clocks."""
    asked = problem(code, freedom(code, block))
    unmoved, choices = [(n, False) for n in range(len(asked.operands))], ordered(asked)
    if choices is None or late_clocks(asked, choices) >= late_clocks(asked, unmoved):
        return code.words[block.start : block.end]
    return reordered(code, block, asked, choices)


def _loop_changes(before: Kernel, after: Kernel, warps: int) -> list[LoopChange]:
    code = code_of(before)
    tables = [machine_code(kernel) for kernel in (before, after)]
    hot = innermost([x for x in loops(code.instructions) if multiply_adds(code, x) >= FEWEST])
    return [_loop_change(code, loop, tables, before.architecture, warps) for loop in hot]


def _loop_change(
    code: Code, loop: Loop, tables: Sequence[NDArray[Any]], architecture: str, warps: int
) -> LoopChange:
    clocks = [loop_clocks(x, loop, architecture, warps_per_scheduler=warps) for x in tables]
    reused = [
        sum(int(kept).bit_count() for kept in x["reuse"][loop.start : loop.end]) for x in tables
    ]
    return LoopChange(
        start=code.instructions[loop.start].address,
        end=code.instructions[loop.end - 1].address,
        instructions=loop.end - loop.start,
        multiply_adds=multiply_adds(code, loop),
        before=clocks[0],
        after=clocks[1],
        reused_before=reused[0],
        reused_after=reused[1],
    )
