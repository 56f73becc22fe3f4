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

Coefficients = tuple[int, int, int]  # along x, y and z
Interval = tuple[int, int]  # lowest and highest value


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
    slanted, box = dict[Coefficients, Interval](), [(0, n - 1) for n in grid]
    for c, (low, high) in _tightest(origins.borders).items():
        axes = [axis for axis, k in enumerate(c) if k]
        if len(axes) > 1:
            slanted[c] = low, high
        for axis in axes if len(axes) == 1 else ():
            near, far = _quotients(low, high, c[axis])
            first, last = box[axis]
            box[axis] = max(first, at[axis] + near), min(last, at[axis] + far)
    ranges = tuple(slice(first, max(first, last + 1)) for first, last in box)
    x, y, z = (
        np.arange(one.start, one.stop, dtype=np.int64) - here
        for one, here in zip(ranges, at, strict=True)
    )
    found = np.zeros(grid[::-1], dtype=np.bool_)
    part = found[ranges[::-1]]
    part[...] = True
    for c, (low, high) in slanted.items():
        moved = c[0] * x + (c[1] * y)[:, None] + (c[2] * z)[:, None, None]
        part &= (moved >= low) & (moved <= high)
    return found


def _tightest(borders: NDArray[Any]) -> dict[Coefficients, Interval]:
    """The values that all borders of a function c · d of the distance allow, by c."""
    found = dict[Coefficients, Interval]()
    for border in borders:
        x, y, z = border["c"].tolist()
        low, high = int(border["low"]), int(border["high"])
        known = found.get((x, y, z), (low, high))
        found[x, y, z] = max(low, known[0]), min(high, known[1])
    return found


def _quotients(low: int, high: int, c: int) -> Interval:
    """First and last distance d for which c · d is between `low` and `high`."""
    if c < 0:
        low, high, c = -high, -low, -c
    return -(-low // c), high // c
