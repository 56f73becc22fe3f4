"""Recorded values of smooth functions in few bytes: what a parabola through each part leaves."""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

PART = 1 << 13  # values that share a parabola
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "lc": 0, "lp": 0, "pb": 0}]


def packed(values: Words) -> bytes:
    """Words of which a multiple of PART follow one another smoothly, compressed."""
    rows = values.reshape(-1, PART).astype(np.int64)
    ends = rows[:, [0, PART // 2, PART - 1]]
    left = rows - _parabolas(ends)
    narrow = left.astype(np.int8)
    far = np.flatnonzero(narrow != left)
    parts: list[NDArray[Any]] = [
        np.array([len(rows), len(far)], np.int64),
        ends,
        far.astype(np.int64),
        left.ravel()[far],
        narrow,
    ]
    return lzma.compress(
        b"".join(x.tobytes() for x in parts), format=lzma.FORMAT_RAW, filters=_FILTERS
    )


def unpacked(content: bytes) -> Words:
    """The words that `packed` was given."""
    raw = lzma.decompress(content, format=lzma.FORMAT_RAW, filters=_FILTERS)
    count, far_count = np.frombuffer(raw, np.int64, 2)
    wide = np.frombuffer(raw, np.int64, 3 * count + 2 * far_count, offset=16)
    ends, far, values = np.split(wide, [3 * count, 3 * count + far_count])
    left = np.frombuffer(raw, np.int8, offset=16 + wide.nbytes).astype(np.int64)
    left[far] = values
    return (
        (left.reshape(count, PART) + _parabolas(ends.reshape(count, 3))).astype(np.uint32).ravel()
    )


def _parabolas(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers near the parabola through the first, the middle and the last of each part."""
    first, middle, last = (ends[:, [k]] for k in range(3))
    x = np.arange(PART, dtype=np.int64)
    bend = 2 * (first + last - 2 * middle)  # of a parabola over -1 to 1, in quarters
    slope = last - first
    where = 2 * x - PART
    return np.asarray(
        middle + (slope * where * PART + bend * where * where // 2) // (2 * PART * PART)
    )
