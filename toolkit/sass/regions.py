"""Region of a branch: the instructions between it and the point where its sides meet again.

If a branch depends on data, everything that either side writes depends on data too, whichever side
a block takes. The region ends at the immediate postdominator of the branch: the nearest instruction
that all paths from it pass. Lanes of a warp may stay diverged beyond it until BSYNC or WARPSYNC
reconverges them. All lanes execute the instructions up to there, but some lanes perhaps after the
others, which changes how often a warp issues them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from toolkit.machine_code.instruction import Immediate, Instruction, Register
from toolkit.sass.control_flow import ControlFlow
from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT
from toolkit.sass.isa.memory import GENERIC, LOCAL, SHARED, SPACE_SHIFT
from toolkit.sass.isa.registry import Lowered

OF_PREDICATE, ALL_SHARED, ALL_LOCAL = 0x40000000, 0x50000000, 0x50000001  # of origins.h
ALL_LANES = 0xFFFFFFFF
_ALL_PREDICATES = [*range(PT), *range(PT + 1, UPT)]
_STORES = {
    "STORE",
    "MATRIX_STORE",
    "ATOMIC",
    "COPY_ASYNC",
    "TENSOR_LOAD",
    "BULK_LOAD",
    "BULK_SHARED",
    "STORE_ASYNC",
    "SHARED_ZEROS",
}


@dataclass(frozen=True, kw_only=True)
class Regions:
    """Regions of the branches that depend on data or on the block index, as the core reads them.

    `under`: dependence (data or block index) of whether a block executes each instruction.
    `counts`: dependence of how often, also for instructions at which lanes may still be diverged.
    `ends` and `writes`: storage that the region of each branch writes (origins.h).
    """

    under: NDArray[np.uint8]
    counts: NDArray[np.uint8]
    ends: NDArray[np.uint32]
    writes: NDArray[np.uint32]


@dataclass(frozen=True)
class Flow:
    """Regions of the branches of a kernel. `lowered` was made of `instructions`."""

    instructions: Sequence[Instruction]
    lowered: Lowered

    @cached_property
    def control(self) -> ControlFlow:
        return ControlFlow(self.instructions)

    def regions(self, branches: Mapping[int, int]) -> Regions:
        """Regions of `branches`, which map the number of each branch to its dependence."""
        length = len(self.instructions)
        under, counts = np.zeros((2, length), dtype=np.uint8)
        ends, writes = np.zeros(length + 1, dtype=np.uint32), list[int]()
        for pc in range(length):
            if pc in branches:
                decided, apart = self.region(pc)
                kind = branches[pc]
                under[decided] = np.maximum(under[decided], kind)
                counts[decided + apart] = np.maximum(counts[decided + apart], kind)
                writes += sorted({what for k in decided for what in self._written(k)})
            ends[pc + 1] = len(writes)
        return Regions(
            under=under, counts=counts, ends=ends, writes=np.array([*writes, 0], dtype=np.uint32)
        )

    def region(self, branch: int) -> tuple[list[int], list[int]]:
        """Instructions that a branch decides about, and those up to where lanes are joined."""
        after = self.control.postdominators
        join = after[branch]
        decided = self.control.between(self.control.successors[branch], join)
        apart = set[int]()
        while join != self.control.end and not self._is_uniform(branch):
            apart.add(join)
            if self._joins(join):
                return sorted(decided), sorted(apart - decided)
            apart |= self.control.between(self.control.successors[join], after[join])
            join = after[join]
        if not self._is_uniform(branch):
            apart |= self._after_returns(branch)
        return sorted(decided), sorted(apart - decided)

    def _joins(self, pc: int) -> bool:
        """True if all lanes of a region, or of the warp, go on together after an instruction."""
        one = self.instructions[pc]
        if one.opcode != "WARPSYNC":
            return one.opcode == "BSYNC"
        masks = [x.integer for x in one.operands if isinstance(x, Immediate)]
        return "ALL" in one.modifiers or masks == [ALL_LANES]

    def _after_returns(self, branch: int) -> set[int]:
        """Instructions behind calls of the function that a branch is in, up to where lanes join."""
        found = set[int]()
        pending = [branch]
        seen = set[int]()
        while pending:
            inside = pending.pop()
            for call, entry in self.control.callees.items():
                if call in seen or inside not in self.control.functions[entry]:
                    continue
                seen.add(call)
                behind = [call + 1]
                while behind:
                    pc = behind.pop()
                    if pc in found or pc == self.control.end:
                        continue
                    found.add(pc)
                    if not self._joins(pc):
                        behind += self.control.successors[pc]
                    if self.instructions[pc].opcode == "RET":
                        pending.append(pc)
        return found

    def calls(self, pcs: Sequence[int]) -> set[int]:
        """Entry points of the functions that these instructions call directly."""
        return {self.control.callees[pc] for pc in pcs if pc in self.control.callees}

    def _is_uniform(self, pc: int) -> bool:
        guard, one = self.instructions[pc].guard, self.instructions[pc]
        uniform = [x for x in (guard, *one.operands) if isinstance(x, Register) and x.file == "UP"]
        return one.opcode == "BRA" and bool(uniform or "U" in one.modifiers)

    def _written(self, pc: int) -> Iterator[int]:
        """Storage that an instruction writes, in the numbering of the core."""
        row = self.lowered.program[pc : pc + 1]
        name = _names()[int(row["op"][0])]
        words = core.library().core_words_written(row.ctypes.data)
        first = int(row["d"][0][0])
        yield from range(first, first + words)
        beside, second = (
            core.library().core_words_written_beside(row.ctypes.data),
            int(row["d"][0][1]),
        )
        yield from range(second, second + beside)
        for predicate in row["pd"][0].tolist():
            if predicate & ~PREDICATE_NOT != PREDICATE_DISCARD:
                yield OF_PREDICATE | predicate & ~PREDICATE_NOT
        if name == "R2P":
            yield from (OF_PREDICATE | k for k in _ALL_PREDICATES)
        if name in _STORES:
            space = int(row["flags"][0]) >> SPACE_SHIFT & 7
            if name not in ("STORE", "ATOMIC") or space in (SHARED, GENERIC):
                yield ALL_SHARED
            if space in (LOCAL, GENERIC):
                yield ALL_LOCAL


@cache
def _names() -> dict[int, str]:
    return {number: name for name, number in core.operations().items()}
