"""Random contents of arrays that are not given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.launch.element_types import is_real

IN_CACHE = 1 << 16  # floats that are made at a time, so that they are not read from memory again
RANDOM_INTEGERS = 100  # 0 to 99: also valid in a byte, and as an index of many a buffer


def random_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> NDArray[np.generic]:
    """Floats in [-1, 1), both parts of complex numbers too, integers from 0 to 99."""
    if dtype.kind == "c":
        wide_type = np.dtype(f"f{dtype.itemsize // 2}")
        return random_array((*shape, 2), wide_type, rng).view(dtype).reshape(shape)
    if not is_real(dtype):
        most = 2 if dtype.kind == "b" else RANDOM_INTEGERS
        return rng.integers(0, most, shape, dtype=dtype)
    wide = np.empty(shape, np.float64 if dtype.itemsize == 8 else np.float32)
    flat = wide.reshape(-1)
    for start in range(0, len(flat), IN_CACHE):
        part = flat[start : start + IN_CACHE]
        rng.random(dtype=wide.dtype, out=part)
        part *= 2
        part -= 1
    return wide.astype(dtype, copy=False)
