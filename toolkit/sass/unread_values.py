"""Whether counters may depend on the sums of matrix products.

Most kernels only store what they multiply. Then counters are the same whatever the sums are, and an
execution whose outputs nobody asked for need not compute them. The sums are followed through
registers, predicates and memory, whatever path code takes; memory is shared, local or global as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT
from toolkit.sass.isa.memory import GENERIC, GLOBAL, LOCAL, SHARED, SPACE_SHIFT
from toolkit.sass.isa.registry import Lowered

NO_VALUES = 256  # GMMA_NO_VALUES of gmma.h
PRODUCT, SUMS_SOURCE, DATA_SOURCE = "GMMA", 0, 2
# Operations of memory that have an address in sources 0 and 1 and data in source 2 on.
_LOADS = {"LOAD", "MATRIX_LOAD"}
_STORES = {"STORE", "MATRIX_STORE", "STORE_ASYNC"}
_ALL_SPACES = frozenset({SHARED, LOCAL, GLOBAL})


def without_unread_sums(lowered: Lowered) -> Lowered:
    """The program, in which products have no values if no counter depends on them."""
    products = lowered.program["op"] == core.operations()[PRODUCT]
    if not products.any() or _Reach(lowered).decides:
        return lowered
    program = lowered.program.copy()
    program["flags"][products] |= NO_VALUES
    return replace(lowered, program=program)


class _Reach:
    """What the sums of a program reach; `decides`: a branch, an address, or printed text."""

    def __init__(self, lowered: Lowered) -> None:
        self.slots, self.predicates, self.spaces = set[int](), set[int](), set[int]()
        self.decides = False
        program = np.ascontiguousarray(lowered.program)
        rows = [_Row(row, program[k:].ctypes.data) for k, row in enumerate(program)]
        before = -1
        while not self.decides and before != (size := self._size()):
            before = size
            for row in rows:
                self._follow(row)

    def _size(self) -> int:
        return len(self.slots) + len(self.predicates) + len(self.spaces)

    def _follow(self, row: _Row) -> None:
        guarded = row.guard in self.predicates
        sources = [k for k, slots in enumerate(row.read) if not self.slots.isdisjoint(slots)]
        reads = bool(sources) or not self.predicates.isdisjoint(row.predicates_read)
        if row.name == PRODUCT:
            self.decides |= guarded or DATA_SOURCE in sources
            self._reach(row)
            return
        if row.is_control:
            self.decides |= guarded or reads or row.name == "CALL_SYSTEM"
            return
        if row.is_memory:
            stores_data = row.name in _STORES or row.name == "ATOMIC"
            of_address = {k for k in sources if k < DATA_SOURCE or not stores_data}
            self.decides |= guarded or bool(of_address)
            if stores_data and set(sources) - of_address:
                self.spaces |= row.spaces
            if not self.spaces.isdisjoint(row.spaces) and row.name not in _STORES:
                self._reach(row)
            if row.is_copy and self.spaces & {SHARED, GLOBAL}:
                self.spaces |= {SHARED, GLOBAL}
            return
        if guarded or reads:
            self._reach(row)

    def _reach(self, row: _Row) -> None:
        self.slots.update(row.written)
        self.predicates.update(row.predicates_written)


class _Row:
    """One instruction of a program, as far as values go through it."""

    def __init__(self, row: Any, address: int) -> None:
        self.name = _names()[int(row["op"])]
        self.is_control = int(row["op"]) >= core.operations()["BRANCH"]
        self.guard = _predicate(int(row["guard"]))
        self.read = [set(_slots(row, k, address)) for k in range(core.SOURCES)]
        self.written = set(_written(row, address))
        self.predicates_read = {_predicate(int(x)) for x in row["ps"]} - {None}
        self.predicates_written = {int(x) for x in row["pd"]} - {PREDICATE_DISCARD}
        if self.name == "R2P":
            self.predicates_written |= {*range(PT), *range(PT + 1, UPT)}
        if self.name == "P2R":
            self.predicates_read |= {*range(PT), *range(PT + 1, UPT)}
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
