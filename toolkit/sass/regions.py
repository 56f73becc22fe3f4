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
from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT
from toolkit.sass.isa.memory import GENERIC, LOCAL, SHARED, SPACE_SHIFT
from toolkit.sass.isa.registry import Lowered

OF_PREDICATE, ALL_SHARED, ALL_LOCAL = 0x40000000, 0x50000000, 0x50000001  # of origins.h
ALL_LANES = 0xFFFFFFFF
_ALL_PREDICATES = [*range(PT), *range(PT + 1, UPT)]
_INDIRECT = {"BRX", "BRXU", "JMX", "JMXU"}
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
    """Control flow of a kernel. `lowered` was made of `instructions`."""

    instructions: Sequence[Instruction]
    lowered: Lowered

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
        after = self._postdominators
        join = after[branch]
        decided = self._between(self._successors[branch], join)
        apart = set[int]()
        while join != self._end and not self._is_uniform(branch):
            apart.add(join)
            if self._joins(join):
                return sorted(decided), sorted(apart - decided)
            apart |= self._between(self._successors[join], after[join])
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
            for call, entry in self._callees.items():
                if call in seen or inside not in self._functions[entry]:
                    continue
                seen.add(call)
                behind = [call + 1]
                while behind:
                    pc = behind.pop()
                    if pc in found or pc == self._end:
                        continue
                    found.add(pc)
                    if not self._joins(pc):
                        behind += self._successors[pc]
                    if self.instructions[pc].opcode == "RET":
                        pending.append(pc)
        return found

    @cached_property
    def _functions(self) -> dict[int, set[int]]:
        """Instructions of each function that is called directly, by its first one."""
        return {entry: self._between([entry], self._end) for entry in self._callees.values()}

    def calls(self, pcs: Sequence[int]) -> set[int]:
        """Entry points of the functions that these instructions call directly."""
        return {self._callees[pc] for pc in pcs if pc in self._callees}

    @cached_property
    def paths(self) -> list[list[int]]:
        """Instructions that a lane may execute after each one, also in and after functions."""
        after_calls = [pc + 1 for pc, one in enumerate(self.instructions) if one.opcode == "CALL"]
        found = list[list[int]]()
        for pc, one in enumerate(self.instructions):
            following = self._successors[pc]
            if one.opcode == "RET":
                following = [*following, *after_calls]
            elif pc in self._callees:
                following = [*following, self._callees[pc]]
            elif one.opcode == "CALL" or one.opcode in _INDIRECT:
                following = list(range(self._end))
            found.append([after for after in following if after < self._end])
        return found

    @property
    def _end(self) -> int:
        return len(self.instructions)

    def _is_uniform(self, pc: int) -> bool:
        guard, one = self.instructions[pc].guard, self.instructions[pc]
        uniform = [x for x in (guard, *one.operands) if isinstance(x, Register) and x.file == "UP"]
        return one.opcode == "BRA" and bool(uniform or "U" in one.modifiers)

    def _between(self, starts: Sequence[int], stop: int) -> set[int]:
        """Instructions on paths from `starts` before `stop`, those of called functions included."""
        found, pending = set[int](), [pc for pc in starts if pc != stop]
        while pending:
            pc = pending.pop()
            if pc in found or pc == self._end:
                continue
            found.add(pc)
            pending += [after for after in self._successors[pc] if after != stop]
            if pc in self._callees and self._callees[pc] not in found:
                pending.append(self._callees[pc])
        return found

    @cached_property
    def _callees(self) -> dict[int, int]:
        """First instruction of the function that each direct call calls."""
        return {
            pc: target
            for pc, one in enumerate(self.instructions)
            if one.opcode == "CALL" and (target := _target(one)) is not None
        }

    @cached_property
    def _successors(self) -> list[list[int]]:
        """Instructions that may follow each instruction; for a call, the one after its return."""
        return [self._after(pc, one) for pc, one in enumerate(self.instructions)]

    def _after(self, pc: int, one: Instruction) -> list[int]:
        is_conditional = one.guard is not None or any(
            isinstance(x, Register) and x.file in ("P", "UP") for x in one.operands
        )
        following = [pc + 1] if is_conditional else []
        match one.opcode:
            case "BRA" | "JMP":
                if {"DIV", "CONV"} & set(one.modifiers):
                    following = [pc + 1]
                target = _target(one)
                return [*following, target] if target is not None else list(range(self._end + 1))
            case "EXIT" | "RET" | "KILL" | "BPT":
                return [*following, self._end]
            case indirect if indirect in _INDIRECT:
                return [*following, *self._places]
        return [pc + 1]

    @cached_property
    def _places(self) -> list[int]:
        """Possible targets of indirect jumps: instructions after a jump, an exit or a return."""
        leaves = ("BRA", "JMP", "BRX", "BRXU", "EXIT", "RET")
        return [k + 1 for k, one in enumerate(self.instructions) if one.opcode in leaves]

    @cached_property
    def _postdominators(self) -> list[int]:
        """The nearest instruction that all paths from each one pass; the end of the code if none.

        Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph.
        """
        end = self._end
        before: list[list[int]] = [[] for _ in range(end + 1)]
        for pc, following in enumerate(self._successors):
            for after in following:
                before[min(after, end)].append(pc)
        order = _postorder(end, before)
        rank = {pc: k for k, pc in enumerate(order)}
        found = {end: end}
        changed = True
        while changed:
            changed = False
            for pc in reversed(order[:-1]):
                known = [min(x, end) for x in self._successors[pc] if min(x, end) in found]
                join = known[0]
                for other in known[1:]:
                    join = _common(join, other, found, rank)
                if found.get(pc) != join:
                    found[pc], changed = join, True
        return [found.get(pc, end) for pc in range(end)]  # of endless loops: the end

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


def _target(one: Instruction) -> int | None:
    """Number of the instruction that a direct jump names."""
    last = one.operands[-1]
    try:
        return last.integer // 16 if isinstance(last, Immediate) else None
    except ValueError:
        return None


def _postorder(root: int, edges: Sequence[Sequence[int]]) -> list[int]:
    """Nodes that can be reached from the root, each after those that it leads to."""
    found, seen = list[int](), {root}
    pending = [(root, iter(edges[root]))]
    while pending:
        node, rest = pending[-1]
        following = next((x for x in rest if x not in seen), None)
        if following is None:
            pending.pop()
            found.append(node)
        else:
            seen.add(following)
            pending.append((following, iter(edges[following])))
    return found


def _common(a: int, b: int, found: Mapping[int, int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a
