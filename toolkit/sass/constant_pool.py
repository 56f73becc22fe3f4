"""Constants of a launch as vectors of the core: 32 equal words each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core.binding import LANES
from toolkit.sass.isa.slots import ConstantWord, PoolEntry


def pool_of(
    entries: Sequence[PoolEntry], banks: Mapping[int, NDArray[np.uint8]]
) -> NDArray[np.uint32]:
    """The vectors of a program's pool in a launch with these constant banks."""
    values = [_value(entry, banks) for entry in entries]
    return _aligned(np.repeat(np.array(values, dtype=np.uint32), LANES))


def _value(entry: int | ConstantWord, banks: Mapping[int, NDArray[np.uint8]]) -> int:
    """A pool entry's value in this launch; a word beyond its bank reads as zero."""
    if isinstance(entry, int):
        return entry
    bank = banks.get(entry.bank)
    if bank is None or entry.offset + 4 > bank.nbytes:
        return 0
    return int(bank[entry.offset : entry.offset + 4].view("<u4")[0])


def _aligned(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A copy that begins on a cache line."""
    room = np.empty(words.size + 16, dtype=np.uint32)
    start = (-room.ctypes.data % 64) // 4
    copy = room[start : start + words.size]
    copy[:] = words
    return copy
