"""Accesses of executed blocks of a rung: in which matrix, in which line, and in what order.

Two things are known of them. Blocks that do the same on other tiles make the same accesses, moved
by the distance of the tiles (`tile_shifts`). And a block repeats its accesses along K: what a
larger K inserts into them is repeated up to K itself (`extrapolated`). Executed blocks prove both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from analysis.traffic.grid import Indices
from kernels.workspace import row_floats, sums_bytes
from toolkit.rungs.launch import RungLaunch

# Arrays: the matrices, and what the workspace holds: partial sums and copies of A and B. Numbers
# from ARRAYS on are the same arrays: their accesses stand for several repetitions along K.
A, B, C, SUMS, COPY_OF_A, COPY_OF_B = range(6)
ARRAYS, NONE = 6, 255
FLOATS, SECTORS = LINE_BYTES // FLOAT_BYTES, LINE_BYTES // SECTOR_BYTES
ALL_SECTORS = (1 << SECTORS) - 1
# Last float of the last sector of a mask, in a line
_LAST_FLOAT = np.array([mask.bit_length() * FLOATS // SECTORS - 1 for mask in range(1 << SECTORS)])
_OF_KIND = ("array", "mask", "kind")


NOT_REPEATED = "; accesses are not repeated evenly along K, so that nothing was extrapolated"


class UnevenError(Exception):
    """Why the accesses of executed blocks do not say what others access; completes a basis."""


@dataclass(frozen=True, kw_only=True)
class BlockAccesses:
    """Accesses of one block, warp by warp: arrays of one length.

    `line`: number of the line in its array, where rows of A are as long as at the whole K. `mask`:
    its sectors. `step`: instructions that the warp had executed.
    """

    array: NDArray[np.uint8]
    line: Indices
    mask: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    step: Indices
    warp: Indices

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, rows: Any) -> BlockAccesses:
        return BlockAccesses(**{name: values[rows] for name, values in vars(self).items()})

    @property
    def last_float(self) -> Indices:
        """Number of the last float in the last sector of each access, in its array."""
        found: Indices = self.line * FLOATS + _LAST_FLOAT[self.mask]
        return found


def in_arrays(
    rows: NDArray[Any], addresses: Mapping[str, int], launch: RungLaunch, whole_k: int
) -> BlockAccesses:
    """Recorded accesses (ACCESS) of a block at the K of `launch`, except to flags and counts.

    `addresses` of the buffers by their names.
    """
    shape, k = launch.executed, launch.executed.k
    rows = rows[np.argsort(rows["warp"], kind="stable")]
    found = BlockAccesses(
        array=np.full(len(rows), NONE, dtype=np.uint8),
        line=rows["line"].astype(np.int64),
        mask=rows["mask"].copy(),
        kind=rows["kind"].copy(),
        step=rows["step"].astype(np.int64),
        warp=rows["warp"].astype(np.int64),
    )
    floats = {"A": shape.m * k, "B": k * shape.n, "C": shape.m * shape.n}
    for number, (name, length) in enumerate(floats.items()):
        line = found.line - addresses[name] // LINE_BYTES
        own = (line >= 0) & (line < ceil_div(length, FLOATS)) & (found.array == NONE)
        found.array[own], found.line[own] = number, line[own]
    if k != whole_k:
        # A sector with the end of one row and the start of the next one counts as part of the
        # latter. K and the whole K have the same remainder, so that lines stay lines.
        of_a = found.array == A
        found.line[of_a] += found.last_float[of_a] // k * ((whole_k - k) // FLOATS)
    if "workspace" in addresses:
        begin = addresses["workspace"] // LINE_BYTES
        others, line = found.array == NONE, found.line - begin
        for number, offset in _parts_of_workspace(launch):
            own = others & (line >= offset // LINE_BYTES)
            found.array[own], found.line[own] = number, line[own]
    return found[found.array != NONE]


def _parts_of_workspace(launch: RungLaunch) -> list[tuple[int, int]]:
    """Arrays in the workspace, with their offsets in bytes, in ascending order: first flags, then
    sums, then counts (NONE), then copies."""
    flags, *counts = launch.ready_words(is_last=False) or (None,)
    parts = [
        (SUMS, FLOAT_BYTES * flags.count if flags else None),
        *((NONE, words.offset) for words in counts[:1]),
        (COPY_OF_A, launch.copies.a),
        (COPY_OF_B, launch.copies.b),
    ]
    return [(number, offset) for number, offset in parts if offset is not None]


def tile_shifts(launch: RungLaunch) -> Indices:
    """Bytes by which addresses in each array grow from row to row and from column to column of
    tiles, and from block to block."""
    tiling, shape = launch.tiling, launch.executed
    down, across = FLOAT_BYTES * tiling.block_m, FLOAT_BYTES * tiling.block_n
    of_arrays = {
        A: (down * shape.k, 0, 0),
        B: (0, across, 0),
        C: (down * shape.n, across, 0),
        SUMS: (0, 0, sums_bytes(tiling)),
        COPY_OF_A: (down * row_floats(shape.k), 0, 0),
        COPY_OF_B: (0, across, 0),
    }
    found = np.array([of_arrays[number] for number in range(ARRAYS)], dtype=np.int64)
    return np.tile(found, (2, 1))


def is_moved(one: BlockAccesses, other: BlockAccesses, by: Indices) -> bool:
    """True if `other` makes the accesses of `one`, moved by so many bytes in each array.

    Raises UnevenError if these are not whole sectors.
    """
    if (by % SECTOR_BYTES).any():
        raise UnevenError("; tiles do not begin at sectors")
    unit = LINE_BYTES
    if (by % LINE_BYTES).any():
        one, other, unit = by_sector(one), by_sector(other), SECTOR_BYTES
    return is_same(replace(one, line=one.line + (by // unit)[one.array]), other)


def is_same(one: BlockAccesses, other: BlockAccesses) -> bool:
    return all(np.array_equal(values, getattr(other, name)) for name, values in vars(one).items())


def by_sector(found: BlockAccesses) -> BlockAccesses:
    """One access for each sector, with its number in place of that of the line."""
    row, sector = np.nonzero(found.mask[:, None] >> np.arange(SECTORS) & 1)
    apart = found[row]
    apart = replace(apart, line=apart.line * SECTORS + sector, mask=np.ones_like(apart.mask))
    order = (apart.line, apart.array, apart.kind, apart.step, apart.warp)
    return apart[np.lexsort(order)]


def extrapolated(
    low: BlockAccesses, high: BlockAccesses, further: int, *, one_of: int = 1
) -> BlockAccesses:
    """Accesses at a K above that of `high` by `further` times what this is above the K of `low`.

    `one_of` so many repetitions is made, if not all of them are. Raises UnevenError if accesses are
    not repeated along K.
    """
    warps = np.unique(high.warp).tolist()
    if np.setdiff1d(low.warp, high.warp).size:
        raise UnevenError(NOT_REPEATED)
    turns = range(0, further + 1, one_of)
    of_warps = ((low[low.warp == warp], high[high.warp == warp]) for warp in warps)
    return joined([_of_warp(*of_warp, further, turns) for of_warp in of_warps])


def joined(parts: Sequence[BlockAccesses]) -> BlockAccesses:
    names = vars(parts[0])
    return BlockAccesses(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


def _of_warp(low: BlockAccesses, high: BlockAccesses, further: int, turns: range) -> BlockAccesses:
    """Both begin alike; then `high` has a part that repeats the part of this length before it."""
    begin, length = _common(low, high), len(high) - len(low)
    if not 0 <= length <= begin:
        raise UnevenError(NOT_REPEATED)
    end = begin + length
    part, rest = high[begin:end], high[end:]
    to_part = _move(high[begin - length : begin], part)
    to_rest = _move(low[begin:], rest)
    if turns.step > 1:
        part = replace(part, array=part.array + np.uint8(ARRAYS))
    repeated = [_moved(part, to_part, turn) for turn in turns]
    return joined([high[:begin], *repeated, _moved(rest, to_rest, further)])


def _common(low: BlockAccesses, high: BlockAccesses) -> int:
    """Number of accesses with which both begin."""
    length = min(len(low), len(high))
    equal = np.all([a[:length] == getattr(high, n)[:length] for n, a in vars(low).items()], axis=0)
    return length if equal.all() else int(equal.argmin())


def _move(one: BlockAccesses, other: BlockAccesses) -> tuple[Indices, Indices]:
    """Lines and steps from accesses to those that repeat them."""
    if any(not np.array_equal(getattr(one, name), getattr(other, name)) for name in _OF_KIND):
        raise UnevenError(NOT_REPEATED)
    return other.line - one.line, other.step - one.step


def _moved(one: BlockAccesses, by: tuple[Indices, Indices], times: int) -> BlockAccesses:
    lines, steps = by
    return replace(one, line=one.line + times * lines, step=one.step + times * steps)
