"""Decide if counters may depend on the sums of matrix products.

Most kernels only store what they multiply. Then counters are the same whatever the sums are, and an
execution whose outputs nobody asked for need not compute them. The sums are followed along all
paths of the code through registers and predicates: a register that is written anew no longer holds
sums. Uniform registers, which lanes on different paths share, and memory (shared, local or global
as a whole) keep what was ever in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np

from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT
from toolkit.sass.isa.memory import GENERIC, GLOBAL, LOCAL, SHARED, SPACE_SHIFT
from toolkit.sass.isa.registry import Lowered
from toolkit.sass.regions import Flow

# Flags of products whose sums are not computed: GMMA_NO_VALUES of gmma.h, MMA_NO_VALUES of mma.h.
_PRODUCTS_OF_WARPS = ("MMA", "MMA_INTEGER", "MMA_BITS", "MMA_SCALED", "MMA_SCALED_FOURS")
NO_VALUES = {"GMMA": 1 << 8, **dict.fromkeys(_PRODUCTS_OF_WARPS, 1 << 8)}
DATA_SOURCE = 2
# Operations of memory that have an address in sources 0 and 1 and data in source 2 on.
_LOADS = {"LOAD", "MATRIX_LOAD"}
_STORES = {"STORE", "MATRIX_STORE", "STORE_ASYNC"}
_ALL_SPACES = frozenset({SHARED, LOCAL, GLOBAL})
_PREDICATES = [*range(PT), *range(PT + 1, UPT)]


def without_unread_sums(flow: Flow, *, may_decide: bool = True) -> Lowered:
    """The program, in which products have no values if no counter depends on them.

    `may_decide`: False if that is known without looking.
    """
    lowered = flow.lowered
    flags = {core.operations()[name]: flag for name, flag in NO_VALUES.items()}
    products = np.isin(lowered.program["op"], list(flags))
    if not products.any() or (may_decide and _Reach(flow).decides):
        return lowered
    program = lowered.program.copy()
    for operation, flag in flags.items():
        program["flags"][program["op"] == operation] |= flag
    return replace(lowered, program=program)


class _Reach:
    """Values that the sums of a program reach.

    `decides`: they reach a branch, a guard, an address, or printed text.

    Registers and predicates are bits of a number: first the slots, then the predicates.
    """

    def __init__(self, flow: Flow) -> None:
        self._uniform = uniform_bits(flow.lowered)
        self._rows = rows_of(flow)
        self.decides = False
        self._anywhere, self._spaces = 0, set[int]()  # uniform registers, and memory
        before = None
        while not self.decides and before != (known := (self._anywhere, len(self._spaces))):
            before = known
            self._follow_paths(flow.control.paths)

    def _follow_paths(self, paths: Sequence[Sequence[int]]) -> None:
        reached: list[int | None] = [None] * len(self._rows)  # before each instruction
        reached[0], pending = 0, [0]
        while pending and not self.decides:
            pc = heappop(pending)
            found = self._after(self._rows[pc], (reached[pc] or 0) | self._anywhere)
            self._anywhere |= found & self._uniform
            for following in paths[pc]:
                already = reached[following]
                if already is None or found & ~already:
                    reached[following] = found | (already or 0)
                    heappush(pending, following)

    def _after(self, row: DataFlowRow, reached: int) -> int:
        """Return what the sums have reached after an instruction."""
        guarded = bool(row.guard & reached)
        self.decides |= guarded  # lanes whose guard is true are counted
        sources = {k for k, slots in enumerate(row.read) if slots & reached}
        reads = bool(sources) or bool(row.predicates_read & reached)
        if row.name in NO_VALUES:
            self.decides |= row.name == "GMMA" and DATA_SOURCE in sources
            return reached | row.written
        if row.is_control:
            self.decides |= reads or row.name == "CALL_SYSTEM"
            return reached
        if row.is_memory:
            reads = self._through_memory(row, sources)
        if reads:
            return reached | row.written
        return reached & ~row.replaced

    def _through_memory(self, row: DataFlowRow, sources: set[int]) -> bool:
        """True if what an operation of memory returns may depend on sums."""
        stores_data = row.name in _STORES or row.name == "ATOMIC"
        of_address = {k for k in sources if k < DATA_SOURCE or not stores_data}
        self.decides |= bool(of_address)
        if stores_data and sources - of_address:
            self._spaces |= row.spaces
        if row.is_copy and self._spaces & {SHARED, GLOBAL}:
            self._spaces |= {SHARED, GLOBAL}
        return not self._spaces.isdisjoint(row.spaces) and row.name not in _STORES


class DataFlowRow:
    """One instruction of a program, as far as values go through it."""

    def __init__(self, row: Any, address: int, slots: int) -> None:
        self.name = _names()[int(row["op"])]
        self.is_control = int(row["op"]) >= core.operations()["BRANCH"]
        self.guard_slot = int(row["guard"])  #: its predicate, and if that is inverted
        guards = [_predicate(self.guard_slot)]
        read = [_predicate(int(x)) for x in row["ps"]]
        written = [int(x) for x in row["pd"] if int(x) != PREDICATE_DISCARD]
        replaced = written
        if self.name == "R2P":
            written = [*written, *_PREDICATES]
        if self.name == "P2R":
            read += _PREDICATES
        self.guard, self.predicates_read = (
            _bits(slots + x for x in some if x is not None) for some in (guards, read)
        )
        self.read = [_bits(_slots(row, k, address)) for k in range(core.SOURCES)]
        self._predicates_written = frozenset(map(_predicate, written))
        registers = _bits(_written(row, address))
        self.written = registers | _bits(slots + x for x in written)
        # What other lanes or a false guard may leave is not replaced.
        self.replaced = 0 if self.guard else registers | _bits(slots + x for x in replaced)
        self.is_copy = self.name.startswith(("TENSOR_", "BULK_")) or self.name == "COPY_ASYNC"
        self.is_memory = self.is_copy or self.name in (
            *_LOADS, *_STORES, "ATOMIC", "LOAD_CONSTANT", "TEXTURE", "SURFACE_LOAD",
            "SURFACE_STORE", "SURFACE_REDUCE", "MBARRIER_EXCHANGE", "MBARRIER_ARRIVE",
            "MBARRIER_CHECK",
        )  # fmt: skip
        space = int(row["flags"]) >> SPACE_SHIFT & 7
        is_far = self.name.startswith(("TEXTURE", "SURFACE"))
        self.spaces = {GLOBAL} if is_far else _ALL_SPACES if space == GENERIC else {space}
        if self.name.startswith("MATRIX_") or self.name == "STORE_ASYNC":
            self.spaces = {SHARED}
        if self.name.startswith("MBARRIER") or self.name == "LOAD_CONSTANT":
            self.spaces = set()

    def writes_predicate(self, guard_slot: int) -> bool:
        """True if the instruction may change the predicate of a guard."""
        return _predicate(guard_slot) in self._predicates_written


def rows_of(flow: Flow) -> list[DataFlowRow]:
    """Registers and predicates that each instruction of a program reads and writes."""
    program = np.ascontiguousarray(flow.lowered.program)
    return [
        DataFlowRow(row, program[k:].ctypes.data, flow.lowered.slots)
        for k, row in enumerate(program)
    ]


def uniform_bits(lowered: Lowered) -> int:
    """Bits of the uniform registers and predicates of a program."""
    registers = range(lowered.first_uniform, lowered.slots)
    predicates = range(lowered.slots + PT + 1, lowered.slots + UPT)
    return _bits([*registers, *predicates])


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _slots(row: Any, k: int, address: int) -> Iterator[int]:
    first = int(row["s"][k])
    if not first & POOL:
        yield from range(first, first + core.library().core_words_read(address, k))


def _written(row: Any, address: int) -> Iterator[int]:
    library = core.library()
    for first, words in zip(
        row["d"].tolist(),
        (library.core_words_written(address), library.core_words_written_beside(address)),
        strict=True,
    ):
        yield from range(first, first + words)


def _predicate(slot: int) -> int | None:
    slot &= ~PREDICATE_NOT
    return None if slot in (PT, UPT) else slot


@cache
def _names() -> dict[int, str]:
    return {number: name for name, number in core.operations().items()}
