"""Accesses to cache lines, divided into accesses to pieces of lines (native code).

A line is one piece if all of its accesses have the same sectors. Otherwise each of its sectors is a
piece, because blocks that read different sectors share nothing.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.block_schedule import Integers
from analysis.traffic.native import call

READ, WRITE, ATOMIC = range(3)  # kinds of accesses, as the core and pieces.c number them

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class PieceAccesses:
    """Accesses to pieces: arrays of one length. An atomic access is a read and a write.

    `row`: access to the line. `piece`: number of the piece, from 0, in the order of addresses.
    `sectors`: sectors that it reads or writes; 0 for an atomic access, which is counted separately.
    `size`: sectors of the piece.
    """

    row: NDArray[np.uint32]
    piece: Integers
    sectors: Bytes
    size: Bytes
    is_write: NDArray[np.bool_]


class _Lines(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("line", "mask", "kind")),
        ("count", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("row", "piece", "sectors", "size", "is_write")),
        ("is_cancelled", ctypes.c_uint32),
    )


def piece_accesses(accesses: NDArray[Any]) -> PieceAccesses:
    """Accesses to pieces by accesses with the fields `line`, `mask` (of sectors) and `kind`.

    Lines that are one piece come first, then the first sectors of other lines, the second ones, and
    so on, in the order of `accesses`; at the end the writes of atomic accesses. Raises MemoryError.
    """
    line, mask, kind = (
        np.ascontiguousarray(accesses[name], dtype=dtype)
        for name, dtype in (("line", np.uint64), ("mask", np.uint8), ("kind", np.uint8))
    )
    most = 2 * LINE_BYTES // SECTOR_BYTES * len(accesses)  # memory that is not used costs nothing
    found = PieceAccesses(
        row=np.empty(most, dtype=np.uint32),
        piece=np.empty(most, dtype=np.int64),
        sectors=np.empty(most, dtype=np.uint8),
        size=np.empty(most, dtype=np.uint8),
        is_write=np.empty(most, dtype=bool),
    )
    inputs = (array.ctypes.data for array in (line, mask, kind))
    outputs = [array.ctypes.data for array in vars(found).values()]
    count = call("divide_lines", _Lines(*inputs, len(line), *outputs))
    return PieceAccesses(**{name: array[:count] for name, array in vars(found).items()})
