"""Loads whose values decide where a kernel accesses memory, or how often a loop is repeated.

Values are followed along all paths of the code, through registers, predicates, shared and local
memory; each spilled register is a place of its own. A register that is written anew no longer
holds them, in the lanes that write it. Values that are written to global memory and read again are
not followed, nor which side of a branch is taken outside of loops.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from heapq import heappop, heappush
from operator import or_

from toolkit.machine_code.instruction import Address, Instruction
from toolkit.sass.isa.memory import GLOBAL, LOCAL, SHARED
from toolkit.sass.polls import loops_of
from toolkit.sass.regions import Flow
from toolkit.sass.unread_values import DATA_SOURCE, DataFlowRow, rows_of, uniform_bits

Place = int | str  # a space, or the address of a spilled register
STACK_POINTER = ("R", 1)  # CUDA's ABI
_ATOMICS = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")


@dataclass(frozen=True)
class _Reached:
    """Registers and predicates that hold values before an instruction, as bits of a number.

    `clean`, by a guard: those of them that hold none in lanes for which the guard is true.
    """

    bits: int = 0
    clean: Mapping[int, int] = field(default_factory=dict)

    def seen_by(self, row: DataFlowRow) -> int:
        return self.bits & ~self.clean.get(row.guard_slot, 0)

    def joined(self, other: _Reached) -> _Reached:
        """Return what is reached on either of two paths."""
        bits = self.bits | other.bits
        clean = {
            guard: found
            for guard in {*self.clean, *other.clean}
            if (found := bits & self._without(guard) & other._without(guard))
        }
        return _Reached(bits, clean)

    def within(self, written: int) -> _Reached:
        """Return what these registers and predicates hold."""
        clean = {guard: bits & written for guard, bits in self.clean.items() if bits & written}
        return _Reached(self.bits & written, clean)

    def _without(self, guard: int) -> int:
        return self.clean.get(guard, 0) | ~self.bits

    def after(self, row: DataFlowRow, *, gets: bool) -> _Reached:
        """Return what is reached after an instruction, which gets values or replaces them."""
        clean = {
            guard: left
            for guard, bits in self.clean.items()
            if not row.writes_predicate(guard) and (left := bits & ~row.written)
        }
        if gets:
            return _Reached(self.bits | row.written, clean)
        if row.guard and not row.writes_predicate(row.guard_slot):
            clean[row.guard_slot] = clean.get(row.guard_slot, 0) | (row.written & self.bits)
        return _Reached(self.bits & ~row.replaced, clean)


class DecidingLoads:
    """Answers for one kernel whether values of some of its loads decide accesses or loops."""

    def __init__(self, flow: Flow) -> None:
        self._paths = flow.control.paths
        self._rows = rows_of(flow)
        self._uniform = uniform_bits(flow.lowered)
        self._exits = _exits(flow)
        self._returns = _returns(flow, self._rows)
        self._places = _places(flow, self._rows)

    def decide(self, loads: Collection[int]) -> bool:
        """True if a value that these instructions load reaches an address or the end of a loop."""
        # uniform registers and memory that hold such values
        anywhere, holding = 0, set[Place]()
        known = None
        while known != (known := (anywhere, len(holding))):
            reached: list[_Reached | None] = [None] * len(self._rows)
            reached[0], pending = _Reached(), [0]
            while pending:
                pc = heappop(pending)
                row, before = self._rows[pc], reached[pc] or _Reached()
                here = before.seen_by(row) | anywhere
                if self._decides(pc, row, here):
                    return True
                if _stores(row, here, is_source=pc in loads):
                    holding |= {SHARED} if row.is_copy else self._places[pc] - {GLOBAL}
                from_memory = row.is_memory and not holding.isdisjoint(self._places[pc])
                after = before.after(row, gets=pc in loads or from_memory or _reads(row, here))
                anywhere |= after.bits & self._uniform
                if pc in self._returns:  # the other registers are those before the call
                    after = after.within(self._returns[pc])
                for following in self._paths[pc]:
                    already = reached[following]
                    joined = after if already is None else already.joined(after)
                    if joined != already:
                        reached[following] = joined
                        heappush(pending, following)
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


def _stores(row: DataFlowRow, reached: int, *, is_source: bool) -> bool:
    """True for an instruction that stores values, or copies them from global memory."""
    is_copied = row.is_copy and is_source
    return row.is_memory and (is_copied or any(x & reached for x in row.read[DATA_SOURCE:]))


def _places(flow: Flow, rows: Sequence[DataFlowRow]) -> list[set[Place]]:
    """The memory that each instruction accesses: spaces or, of a spilled register, its address.

    In a kernel with an array in local memory, that is one place.
    """
    spilled = list(map(_spilled, rows, flow.instructions))
    has_array = any(
        row.is_memory and row.spaces == {LOCAL} and address is None
        for row, address in zip(rows, spilled, strict=True)
    )
    return [
        set(row.spaces) if address is None or has_array else {address}
        for row, address in zip(rows, spilled, strict=True)
    ]


def _spilled(row: DataFlowRow, instruction: Instruction) -> str | None:
    """Address of an access of local memory at a fixed place of the stack; None of any other."""
    addresses = [x for x in instruction.operands if isinstance(x, Address)]
    if not row.is_memory or row.spaces != {LOCAL} or len(addresses) != 1:
        return None
    registers = [(x.file, x.index) for x in addresses[0].registers]
    return str(addresses[0]) if registers == [STACK_POINTER] else None


def _exits(flow: Flow) -> frozenset[int]:
    """Instructions that may end a loop. A loop that repeats an atomic operation is none here."""
    found = set[int]()
    for body, _ in loops_of(flow):
        if any(flow.instructions[pc].opcode in _ATOMICS for pc in body):
            continue
        found |= {pc for pc in body if not body.issuperset(flow.control.successors[pc])}
    return frozenset(found)


def _returns(flow: Flow, rows: Sequence[DataFlowRow]) -> dict[int, int]:
    """Registers that the function around each return writes, with the functions that it calls."""
    found = dict[int, int]()
    for inside in flow.control.functions.values():
        written = reduce(or_, (rows[pc].written for pc in inside), 0)
        for pc in inside:
            if flow.instructions[pc].opcode == "RET":
                found[pc] = found.get(pc, 0) | written
    return found
