"""Origins of the values of an executed block, and the blocks whose counts they prove.

The core traces values (core/origins.h). A block takes the same path as an executed block if its
index is within the `borders` of that block and whole `periods` away from it along each axis.
All its addresses are then shifted by the same amount, except where an instruction depends on data
or on the index in some other way.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core import binding as core

SAME, BLOCK_INDEX, DATA = range(3)  # of origins.h


@dataclass(frozen=True, kw_only=True)
class Origins:
    """Origins of the values of one block.

    `borders` (core.AFFINE): c · d must be between low and high, where d is the distance to the
    block along each axis; where `parts`, the addresses of lanes move apart by c · d. `depends`
    (core.DEPENDENCE): for each instruction, whether its branch, guard or address depends on
    BLOCK_INDEX or DATA. `reach` (core.REACH): of each buffer, how far addresses reach into it.
    """

    borders: NDArray[Any]
    periods: tuple[int, int, int]
    depends: NDArray[Any]
    reach: NDArray[Any]

    def parts(self, varying: tuple[bool, bool, bool]) -> bool:
        """True if lanes move apart between blocks whose index varies along these axes."""
        c = self.borders["c"][self.borders["parts"] > 0]
        return bool(c[:, list(varying)].any())


def origins_of(keeper: int, length: int, buffers: int) -> Origins | None:
    """Origins of the last block that a keeper counted; None if values were not traced."""
    count, periods = ctypes.c_uint32(), (ctypes.c_uint32 * 3)()
    address = core.library().core_affine(keeper, ctypes.byref(count), ctypes.byref(periods))
    if address is None:
        return None
    borders = core.array(address, count.value, core.AFFINE)
    depends = core.array(core.library().core_dependences(keeper), length, core.DEPENDENCE)
    assert borders is not None
    assert depends is not None
    reach = core.array(core.library().core_reaches(keeper), buffers, core.REACH)
    assert reach is not None
    x, y, z = periods
    return Origins(
        borders=borders.copy(), periods=(x, y, z), depends=depends.copy(), reach=reach.copy()
    )


def inside(origins: Origins, at: tuple[int, int, int], grid: tuple[int, int, int]) -> NDArray[Any]:
    """True for each block (in an array [z, y, x]) that is within the borders of the block `at`.

    Periods are not considered.
    """
    distances = [np.arange(n, dtype=np.int64) - here for n, here in zip(grid, at, strict=True)]
    x, y, z = distances
    found = np.ones(grid[::-1], dtype=np.bool_)
    for border in origins.borders:
        c, low, high = border["c"].tolist(), int(border["low"]), int(border["high"])
        reach = [sorted((k * int(d[0]), k * int(d[-1]))) for k, d in zip(c, distances, strict=True)]
        least, most = (sum(ends) for ends in zip(*reach, strict=True))
        if low <= least and most <= high:
            continue
        moved = c[0] * x + (c[1] * y)[:, None] + (c[2] * z)[:, None, None]
        found &= (moved >= low) & (moved <= high)
    return found
