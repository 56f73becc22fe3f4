"""A compiled kernel with its multiply-adds in another order: what may change, searched for, and
proved before anything is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from analysis.sm import Unit
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.patching import Word, changed, rewritten, words
from toolkit.reorder.allocation import allocated
from toolkit.reorder.banks import Reads
from toolkit.reorder.blocks import Block, Loop, blocks, innermost, loops
from toolkit.reorder.flow import Code
from toolkit.reorder.freedom import freedom
from toolkit.reorder.homes import homes
from toolkit.reorder.liveness import live_after
from toolkit.reorder.modelled import LoopClocks, loop_clocks
from toolkit.reorder.operands import read, written
from toolkit.reorder.placement import problem, reordered
from toolkit.reorder.schedule import Choice, Problem, in_places, late_clocks, ordered, wishes
from toolkit.reorder.values import with_registers, with_values
from toolkit.reorder.verify import check, check_understood
from toolkit.reorder.words import is_movable, operands_of
from toolkit.sass.timing_table import machine_code

# Of the multiply-adds: where no more lose a clock, other registers could save little, and take most
# of the time to find.
FEW_LATE = 1 / 16
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
    live, of_loops = live_after(code, of_kernel), loops(code.instructions)
    new = list(code.words)
    for block in of_kernel:
        is_repeated = any(x.start <= block.start and block.end <= x.end for x in of_loops)
        if is_repeated and multiply_adds(code, block) >= FEWEST:
            new[block.start : block.end] = _better(code, block, live[block.start])
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
        reads=[_reads(row) for row in table["source"]],
        operands={k: operands_of(word) for k, word in enumerate(code) if is_movable(word)},
    )


def multiply_adds(code: Code, part: Block | Loop) -> int:
    return sum(map(code.moves, range(part.start, part.end)))


def _reads(sources: NDArray[Any]) -> Reads:
    registers = {int(r) for r in sources if r >= 0}
    odd = sum(r & 1 for r in registers)
    return len(registers) - odd, odd


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A block's words in some order, and the clocks that it loses by conflicts of banks."""

    late_clocks: int
    words: Sequence[Word]


def _better(code: Code, block: Block, live: frozenset[int]) -> Sequence[Word]:
    """The block in the best of the orders that are found, which may be the compiler's."""
    found = [_compiled(code, block), _kept(code, block)]
    if _best(found).late_clocks > FEW_LATE * multiply_adds(code, block):
        found.append(_renamed(code, block, live))
    return _best(found).words


def _best(found: Sequence[_Candidate | None]) -> _Candidate:
    return min(filter(None, found), key=lambda candidate: candidate.late_clocks)


def _compiled(code: Code, block: Block) -> _Candidate:
    """The compiler's order."""
    asked = problem(code, freedom(code, block))
    unmoved = [(number, False) for number in range(len(asked.operands))]
    return _Candidate(
        late_clocks=late_clocks(asked, unmoved), words=code.words[block.start : block.end]
    )


def _kept(code: Code, block: Block) -> _Candidate | None:
    """The best order with all values in the compiler's registers."""
    asked = problem(code, freedom(code, block))
    choices = ordered(asked)
    return None if choices is None else _candidate(code, block, asked, choices, {})


def _renamed(code: Code, block: Block, live: frozenset[int]) -> _Candidate | None:
    """The best order with values in registers that suit it; None where these are too few."""
    free = with_values(code, block, live)
    asked = problem(free, freedom(free, block))
    choices = ordered(asked)
    if choices is None:
        return None
    placed = in_places(asked, choices)
    registers = allocated(placed, homes(code, block, placed, live), wishes(asked, choices))
    return None if registers is None else _candidate(code, block, asked, choices, registers)


def _candidate(
    code: Code,
    block: Block,
    asked: Problem,
    choices: Sequence[Choice],
    registers: Mapping[int, int],
) -> _Candidate:
    named = replace(asked, operands=[with_registers(x, registers) for x in asked.operands])
    return _Candidate(
        late_clocks=late_clocks(named, choices), words=reordered(code, block, named, choices)
    )


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
