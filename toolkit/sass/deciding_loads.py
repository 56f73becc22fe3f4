"""Loads whose values decide where a kernel accesses memory, or how often a loop is repeated.

Values are followed along all paths of the code, through registers, predicates, shared and local
memory. A register that is written anew no longer holds them. Values that are written to global
memory and read again are not followed, nor which side of a branch is taken outside of loops.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush

from toolkit.sass.isa.memory import GLOBAL, LOCAL, SHARED
from toolkit.sass.polls import loops_of
from toolkit.sass.regions import Flow
from toolkit.sass.unread_values import DATA_SOURCE, DataFlowRow, rows_of, uniform_bits

_ATOMICS = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")


class DecidingLoads:
    """Answers for one kernel whether values of some of its loads decide accesses or loops."""

    def __init__(self, flow: Flow) -> None:
        self._paths = flow.control.paths
        self._rows = rows_of(flow)
        self._uniform = uniform_bits(flow.lowered)
        self._exits = _exits(flow)

    def decide(self, loads: Collection[int]) -> bool:
        """True if a value that these instructions load reaches an address or the end of a loop."""
        anywhere, spaces = 0, set[int]()  # uniform registers and memory that hold such values
        known = None
        while known != (known := (anywhere, len(spaces))):
            reached: list[int | None] = [None] * len(self._rows)  # before each instruction
            reached[0], pending = 0, [0]
            while pending:
                pc = heappop(pending)
                row, here = self._rows[pc], (reached[pc] or 0) | anywhere
                if self._decides(pc, row, here):
                    return True
                spaces |= _stored(row, here, is_source=pc in loads)
                gets = pc in loads or _reads(row, here) or bool(spaces & row.spaces)
                found = here | row.written if gets else here & ~row.replaced
                anywhere |= found & self._uniform
                for after in self._paths[pc]:
                    already = reached[after]
                    if already is None or found & ~already:
                        reached[after] = found | (already or 0)
                        heappush(pending, after)
        return False

    def _decides(self, pc: int, row: DataFlowRow, reached: int) -> bool:
        if pc in self._exits and (row.guard | row.predicates_read) & reached:
            return True
        if not row.is_memory or row.spaces.isdisjoint({GLOBAL, SHARED}):
            return False
        return any(slots & reached for slots in row.read[:DATA_SOURCE])


def _reads(row: DataFlowRow, reached: int) -> bool:
    """True for an instruction outside of memory that computes with values."""
    if row.is_memory:
        return False
    return bool(row.predicates_read & reached) or any(slots & reached for slots in row.read)


def _stored(row: DataFlowRow, reached: int, *, is_source: bool) -> set[int]:
    """Memory of a block that takes values: of a store, or of a copy from global memory."""
    is_copied = row.is_copy and is_source
    if row.is_memory and (is_copied or any(x & reached for x in row.read[DATA_SOURCE:])):
        return {SHARED} if is_copied else {SHARED, LOCAL} & row.spaces
    return set()


def _exits(flow: Flow) -> frozenset[int]:
    """Instructions that may end a loop. A loop that repeats an atomic operation is none here."""
    found = set[int]()
    for body, _ in loops_of(flow):
        if any(flow.instructions[pc].opcode in _ATOMICS for pc in body):
            continue
        found |= {pc for pc in body if not body.issuperset(flow.control.successors[pc])}
    return frozenset(found)
