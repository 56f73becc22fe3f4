"""Accesses of all blocks of a launch, from those of one block of each class (native code).

Blocks of a class make the same accesses; their addresses shift evenly with the index of the block.
Lines that the same blocks access at the same moments form a group, of which one line is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.layout import dtype_of
from analysis.traffic.native import call, pointer_to

ENTRY = dtype_of("u8 sector; u4 moment; u2 shift; u1 mask kind")
VISIT = dtype_of("u8 line; u4 block moment lines; u1 mask kind; u2 reserved")
_CLASS = dtype_of("u8 first end first_shift shifts; i8 at[3]")
TOO_MANY = -2
MOST_ENTRIES = 1 << 24  # accesses of all blocks that are looked at: above, one of 2, 4, 8 … lines
MOST_SPREAD = 8


@dataclass(frozen=True, kw_only=True)
class BlockClass:
    """Blocks that make the same accesses, as their representative makes them.

    `entries`: ENTRY, whose `shift` numbers a row of `shifts`: bytes by which an address grows per
    step of the block's index along x, y and z; from block to block of the class they are whole
    sectors. `at`: index of the representative.
    """

    entries: NDArray[Any]
    shifts: NDArray[np.int64]
    at: tuple[int, int, int]


_ARRAYS = ("entries", "classes", "shifts", "class_of", "run_ends")


class _LaunchAccesses(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        ("blocks", ctypes.c_uint64),
        ("grid", ctypes.c_uint64 * 3),
        ("most_shifts", ctypes.c_uint64),
        ("spread", ctypes.c_uint32),
        ("is_cancelled", ctypes.c_uint32),
    )


def grouped(
    classes: Sequence[BlockClass],
    class_of: NDArray[np.uint32],
    grid: tuple[int, int, int],
    *,
    most: int,
) -> NDArray[Any] | None:
    """Accesses to one line of each group (VISIT), `lines` of which it stands for.

    `class_of`: class of each block, by its linear index. At most `most` accesses are returned; if
    there are more, or too many to look at, only some of the lines are considered, evenly spread.
    None if even 1 of 256 lines has more. Raises MemoryError.
    """
    per_class = np.array([len(one.entries) for one in classes])
    entries = int(per_class[class_of].sum())
    for spread in range((entries // MOST_ENTRIES).bit_length(), MOST_SPREAD + 1):
        found = _grouped(classes, class_of, grid, spread, most)
        if found is not None:
            found["lines"] <<= spread
            return found
    return None


def _grouped(
    classes: Sequence[BlockClass],
    class_of: NDArray[np.uint32],
    grid: tuple[int, int, int],
    spread: int,
    most: int,
) -> NDArray[Any] | None:
    entries = np.concatenate([one.entries for one in classes])
    shifts = np.ascontiguousarray(np.concatenate([one.shifts for one in classes]))
    table = np.zeros(len(classes), dtype=_CLASS)
    table["end"] = np.cumsum([len(one.entries) for one in classes])
    table["first"] = np.append(0, table["end"][:-1])
    table["shifts"] = [len(one.shifts) for one in classes]
    table["first_shift"] = np.cumsum(table["shifts"]) - table["shifts"]
    table["at"] = [one.at for one in classes]
    class_of = np.ascontiguousarray(class_of, dtype=np.uint32)
    run_ends = _run_ends(entries["shift"], table["end"])
    launch = _LaunchAccesses(
        *(array.ctypes.data for array in (entries, table, shifts, class_of, run_ends)),
        len(class_of),
        grid,
        int(table["shifts"].max()),
        spread,
    )
    visits = np.empty(most, dtype=VISIT)
    count = call("group_accesses", launch, pointer_to(visits), ctypes.c_uint64(most))
    return None if count == TOO_MANY or (spread and not count) else visits[:count].copy()


def _run_ends(shift: NDArray[np.uint16], ends: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each entry, the end of the neighbours in its class that have its shift.

    `ends`: ends of the classes.
    """
    changes = np.flatnonzero(np.diff(shift)) + 1
    borders = np.union1d(changes, ends).astype(np.uint64)
    found: NDArray[np.uint64] = borders[np.searchsorted(borders, np.arange(len(shift)), "right")]
    return found
