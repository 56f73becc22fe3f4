"""Accesses of executed blocks to global memory, as the core noted them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core import binding as core


@dataclass(frozen=True, kw_only=True)
class Below:
    """Sectors of 32 bytes that blocks request from L2.

    `read` counts each once per block, `written_by_warps` once for each warp that writes it.
    """

    read: int
    written_by_warps: int

    def times(self, blocks: float) -> Below:
        """The sectors of `blocks` equal blocks, or of a part of the blocks."""
        return Below(
            read=round(blocks * self.read), written_by_warps=round(blocks * self.written_by_warps)
        )

    def __add__(self, other: Below) -> Below:
        return Below(
            read=self.read + other.read,
            written_by_warps=self.written_by_warps + other.written_by_warps,
        )


@dataclass(frozen=True, kw_only=True)
class RecordedAccesses:
    """Accesses of some blocks to global memory (`core.ACCESS`), of one of 2^`spread` lines.

    `below` counts those of all lines.
    """

    rows: NDArray[Any]
    spread: int
    below: Below


def recorded_accesses(handles: Sequence[int], most: int) -> RecordedAccesses | None:
    """Copy of the accesses that the workers noted; None if one of them lost some.

    At most `most` accesses; the number of workers does not affect which lines these are.
    """
    found, below, spread = [], Below(read=0, written_by_warps=0), 0
    for handle in handles:
        numbers = (ctypes.c_uint64 * 4)()
        address = core.library().core_accesses(handle, ctypes.byref(numbers))
        if address is None:
            return None
        count, of_worker, read, written = numbers
        found.append(ctypes.string_at(address, count * core.ACCESS.itemsize))
        below += Below(read=read, written_by_warps=written)
        spread = max(spread, of_worker)
    rows = np.frombuffer(b"".join(found), dtype=core.ACCESS)  # one copy of that of one worker
    if len(handles) > 1:  # the same, in the same order, as of one worker
        rows, spread = _thinned(rows, spread, most)
        rows = rows[np.argsort(rows["block"], kind="stable")]
    return RecordedAccesses(rows=rows, spread=spread, below=below)


def _thinned(rows: NDArray[Any], spread: int, most: int) -> tuple[NDArray[Any], int]:
    """At most `most` accesses to one of 2^spread lines, for the smallest such spread."""
    while True:
        chosen = is_recorded(rows["line"], spread)
        if chosen.sum() <= most:
            return rows[chosen], spread
        spread += 1


def is_recorded(lines: NDArray[np.uint64], spread: int) -> NDArray[np.bool_]:
    """True for lines that the core notes if it notes one of 2^spread (trace.c)."""
    sums = sum((lines >> np.uint64(shift) for shift in range(8, 64, 8)), lines)
    chosen: NDArray[np.bool_] = sums & np.uint64((1 << spread) - 1) == 0
    return chosen
