"""Control flow of a kernel: which instructions may follow which, and where paths meet again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from toolkit.machine_code.instruction import Immediate, Instruction, Register

INDIRECT = {"BRX", "BRXU", "JMX", "JMXU"}


@dataclass(frozen=True)
class ControlFlow:
    """Control flow between instructions, which are named by their numbers."""

    instructions: Sequence[Instruction]

    @property
    def end(self) -> int:
        return len(self.instructions)

    @cached_property
    def successors(self) -> list[list[int]]:
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
                return [*following, target] if target is not None else list(range(self.end + 1))
            case "EXIT" | "RET" | "KILL" | "BPT":
                return [*following, self.end]
            case indirect if indirect in INDIRECT:
                return [*following, *self._places]
        return [pc + 1]

    @cached_property
    def _places(self) -> list[int]:
        """Possible targets of indirect jumps: instructions after a jump, an exit or a return."""
        leaves = ("BRA", "JMP", "BRX", "BRXU", "EXIT", "RET")
        return [k + 1 for k, one in enumerate(self.instructions) if one.opcode in leaves]

    @cached_property
    def callees(self) -> dict[int, int]:
        """First instruction of the function that each direct call calls."""
        return {
            pc: target
            for pc, one in enumerate(self.instructions)
            if one.opcode == "CALL" and (target := _target(one)) is not None
        }

    @cached_property
    def functions(self) -> dict[int, set[int]]:
        """Instructions of each function that is called directly, by its first one."""
        return {entry: self.between([entry], self.end) for entry in self.callees.values()}

    @cached_property
    def paths(self) -> list[list[int]]:
        """Instructions that a lane may execute after each one, also in and after functions."""
        after_calls = [pc + 1 for pc, one in enumerate(self.instructions) if one.opcode == "CALL"]
        found = list[list[int]]()
        for pc, one in enumerate(self.instructions):
            following = self.successors[pc]
            if one.opcode == "RET":
                following = [*following, *after_calls]
            elif pc in self.callees:
                following = [*following, self.callees[pc]]
            elif one.opcode == "CALL" or one.opcode in INDIRECT:
                following = list(range(self.end))
            found.append([after for after in following if after < self.end])
        return found

    def between(self, starts: Sequence[int], stop: int) -> set[int]:
        """Instructions on paths from `starts` before `stop`, those of called functions included."""
        found, pending = set[int](), [pc for pc in starts if pc != stop]
        while pending:
            pc = pending.pop()
            if pc in found or pc == self.end:
                continue
            found.add(pc)
            pending += [after for after in self.successors[pc] if after != stop]
            if pc in self.callees and self.callees[pc] not in found:
                pending.append(self.callees[pc])
        return found

    def always_bypasses(self, operation: int, end: int) -> bool:
        """True if a thread that reaches `end` without `operation` must have bypassed it.

        That is, every path to `end` around the operation passes an instruction to which the
        operation always leads. If there is another path, such as the `return` of a loop, a thread
        that took it left before the operation.
        """
        barred, after = set[int](), operation
        while after < self.end:
            barred.add(after)
            after = self.postdominators[after]
        return (
            end in barred or not self._leads(0, operation, set()) or not self._leads(0, end, barred)
        )

    def _leads(self, start: int, target: int, barred: Set[int]) -> bool:
        """True if a path from `start` to `target` avoids `barred`. It enters no function."""
        seen, pending = set(barred), [start]
        while pending:
            pc = pending.pop()
            if pc in seen or pc == self.end:
                continue
            if pc == target:
                return True
            seen.add(pc)
            pending += self.successors[pc]
        return False

    @cached_property
    def postdominators(self) -> list[int]:
        """The nearest instruction that all paths from each one pass; the end of the code if none.

        Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph.
        """
        end = self.end
        before: list[list[int]] = [[] for _ in range(end + 1)]
        for pc, following in enumerate(self.successors):
            for after in following:
                before[min(after, end)].append(pc)
        order = _postorder(end, before)
        rank = {pc: k for k, pc in enumerate(order)}
        found = {end: end}
        changed = True
        while changed:
            changed = False
            for pc in reversed(order[:-1]):
                known = [min(x, end) for x in self.successors[pc] if min(x, end) in found]
                join = known[0]
                for other in known[1:]:
                    join = _common(join, other, found, rank)
                if found.get(pc) != join:
                    found[pc], changed = join, True
        return [found.get(pc, end) for pc in range(end)]  # of endless loops: the end


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
