"""Atomic operations and stores of executed blocks by line, as the core counted them (`tally.h`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core import binding as core

# If blocks store to more lines, those to which a worker's blocks store more rarely are left out.
FEW_LINES, LEAST_STORES = 1 << 12, 16
SUMS = ("requests", "parts", "wholes", "additions")  # the fields that add up over blocks


@dataclass(frozen=True, kw_only=True)
class Atomics:
    """Atomic operations, or stores, of some blocks on each line (`core.ATOMIC_LINE`), by number.

    `others`: those on lines that were not told apart, because there were too many (one row).
    """

    lines: NDArray[Any]
    others: NDArray[Any]

    def __add__(self, other: Atomics) -> Atomics:
        return summed([self, other])


def recorded_atomics(handles: Sequence[int]) -> Atomics:
    """Atomic operations that the workers counted."""
    return summed(_of_worker(handle, stores=False) for handle in handles)


def recorded_stores(handles: Sequence[int]) -> Atomics:
    """Stores to global memory that the workers counted."""
    return summed(map(_stores_of_worker, handles))


def _stores_of_worker(handle: int) -> Atomics:
    found = _of_worker(handle, stores=True)
    if len(found.lines) <= FEW_LINES:
        return found
    return replace(found, lines=found.lines[found.lines["requests"] >= LEAST_STORES])


def _of_worker(handle: int, *, stores: bool) -> Atomics:
    slots, others = ctypes.c_uint64(), np.zeros(1, dtype=core.ATOMIC_LINE)
    address = core.library().core_tally(handle, stores, ctypes.byref(slots), others.ctypes.data)
    rows = core.array(address, slots.value, core.ATOMIC_LINE)
    if rows is None:
        rows = np.zeros(0, dtype=core.ATOMIC_LINE)
    rows = rows[rows["requests"] > 0]
    return Atomics(lines=rows[np.argsort(rows["line"])], others=others)


def summed(parts: Iterable[Atomics]) -> Atomics:
    """Sum of the operations of several groups of blocks."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    lines = np.concatenate([one.lines for one in found])
    others = np.concatenate([one.others for one in found])
    numbers, which = np.unique(lines["line"], return_inverse=True)
    return Atomics(
        lines=_sums(lines, which, numbers), others=_sums(others, np.zeros(len(others), int), [0])
    )


def _sums(rows: NDArray[Any], which: NDArray[Any], numbers: Any) -> NDArray[Any]:
    """Sums of the rows of each number; `which` is the place of the number of each row."""
    total = np.zeros(len(numbers), dtype=core.ATOMIC_LINE)
    total["line"] = numbers
    for name in SUMS:
        np.add.at(total[name], which, rows[name])
    total["first"] = np.iinfo(np.uint32).max
    np.minimum.at(total["first"], which, rows["first"])
    for name in ("last", "pc"):
        np.maximum.at(total[name], which, rows[name])
    return total
