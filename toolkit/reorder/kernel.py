"""A compiled kernel with its multiply-adds in another order: what may change, searched for, and
proved before anything is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from analysis.cycles import Unit
from toolkit.compile import Cubin
from toolkit.patching import Word, changed, rewritten, words
from toolkit.reorder.banks import Reads
from toolkit.reorder.blocks import Block, Loop, blocks, innermost_loops
from toolkit.reorder.flow import Boundary, Code, boundaries
from toolkit.reorder.freedom import freedom
from toolkit.reorder.modelled import LoopClocks, loop_clocks
from toolkit.reorder.place import problem, reordered
from toolkit.reorder.schedule import ordered
from toolkit.reorder.words import is_movable
from toolkit.sass.machine_code import machine_code
from toolkit.sass.program import load_program

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

    before: Cubin
    after: Cubin
    changed_instructions: int
    warps_per_scheduler: int
    loops: tuple[LoopChange, ...]

    @property
    def image(self) -> bytes:
        return self.after.image


def reorder(cubin: Cubin, *, warps_per_scheduler: int = WARPS_PER_SCHEDULER) -> Reordered:
    """The kernel with the multiply-adds of each of its blocks in the best order that was found.

    `warps_per_scheduler` is for the model alone, on which the loops are compared. Raises
    UnsupportedError for code of which something is not known.
    """
    code = code_of(cubin)
    of_kernel = blocks(code.instructions)
    limits = boundaries(code, of_kernel)
    new = list(code.words)
    for block in of_kernel:
        if multiply_adds(code, block) >= FEWEST:
            new[block.start : block.end] = _better(code, block, limits[block.start])
    after = replace(cubin, image=rewritten(cubin.image, {cubin.symbol: lambda _: new}))
    return Reordered(
        before=cubin,
        after=after,
        changed_instructions=len(changed(code.words, new)),
        warps_per_scheduler=warps_per_scheduler,
        loops=tuple(_loop_changes(cubin, after, warps_per_scheduler)),
    )


def code_of(cubin: Cubin) -> Code:
    """The instructions of a kernel with what the model of an SM knows of them."""
    program = load_program(cubin)
    table = machine_code(program)
    return Code(
        instructions=program.instructions,
        words=words(cubin.image, cubin.symbol),
        units=[Unit(unit) for unit in table["unit"]],
        reads=[_reads(row) for row in table["source"]],
    )


def multiply_adds(code: Code, part: Block | Loop) -> int:
    return sum(map(is_movable, code.words[part.start : part.end]))


def _reads(sources: NDArray[Any]) -> Reads:
    registers = {int(r) for r in sources if r >= 0}
    odd = sum(r & 1 for r in registers)
    return len(registers) - odd, odd


def _better(code: Code, block: Block, boundary: Boundary) -> Sequence[Word]:
    free = freedom(code, block, boundary)
    found = ordered(problem(code, free))
    if found is None:
        return code.words[block.start : block.end]
    return reordered(code, block, free, found[1])


def _loop_changes(before: Cubin, after: Cubin, warps: int) -> list[LoopChange]:
    code = code_of(before)
    tables = [machine_code(load_program(cubin)) for cubin in (before, after)]
    loops = [x for x in innermost_loops(code.instructions) if multiply_adds(code, x) >= FEWEST]
    return [_loop_change(code, loop, tables, before.architecture, warps) for loop in loops]


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
