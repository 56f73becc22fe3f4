"""Footprint of an executed block of a rung: which parts of the matrices it accesses, and when.

Each executed block records the sectors that it accesses. The registry of rungs says which tiles of
C the block computes, and which part of K. So an access has a place: a row of tiles in A or a column
of tiles in B, and a position along K. Blocks of one region (or kind) have the same footprint,
relative to their tiles.

A block that is executed at a small K does the same in each period of K. For a larger K, further
periods are inserted in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.geometry import ceil_div
from analysis.layout import dtype_of
from analysis.problem import FLOAT_BYTES
from analysis.traffic.grid import Indices, Pieces
from analysis.traffic.pieces import READ
from kernels.closed_forms import pieces_of_c
from kernels.workspace import row_floats
from toolkit.execution.rung_plan import period
from toolkit.rungs.launch import RungLaunch
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.space import Buffer

BIN_FLOATS = 32  # length of a position along K: the floats of a line

LINE_FLOATS, SECTOR_FLOATS = LINE_BYTES // FLOAT_BYTES, SECTOR_BYTES // FLOAT_BYTES
_RECORDED = ("line", "mask", "step", "kind")  # columns of `core.ACCESS`
_SECTORS = np.array([mask.bit_count() for mask in range(16)])
_FIRST = np.array([0, *((mask & -mask).bit_length() - 1 for mask in range(1, 16))])


class Data(IntEnum):
    """Data that blocks access."""

    A = 0
    B = 1
    C = 2
    SUMS = 3  #: partial sums in the workspace


# Accesses of one block to one of `Data`. `own`: number of the tile among those of the block.
# `slot`: of partial sums, from the block's number on. `bin`: position along K. `sectors`, and
# `bytes` of them in the tile. `step`: number of the instruction of a warp: on average, of written
# sums the last.
_ENTRY = dtype_of("u1 data kind; i4 own slot bin; f8 sectors bytes step", align=True)


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Accesses of one executed block, and the steps of its last access and of its last read."""

    entries: NDArray[Any]  # _ENTRY
    last: float
    last_read: float

    def same_accesses(self, other: Footprint) -> bool:
        """True if both have the same sectors at the same places."""
        return np.array_equal(self._sorted, other._sorted)

    @property
    def _sorted(self) -> NDArray[Any]:
        names = [name for name in _ENTRY.names or () if name != "step"]
        found: NDArray[Any] = np.sort(self.entries[names], order=names)
        return found


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """Accesses to runs of sectors, as arrays."""

    first: Indices  # first float, from the begin of a region
    row: Indices  # its row and column there
    column: Indices
    sectors: Indices
    step: Indices
    kind: Indices


class Recorder:
    """Reader of the recorded accesses of blocks of a rung, at one K."""

    def __init__(self, launch: RungLaunch, bound: BoundLaunch) -> None:
        self.launch = launch
        self.pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
        self.regions = list(_regions(launch, bound))

    def footprint(self, block: int, rows: NDArray[Any]) -> Footprint:
        """Accesses of a block. `rows`: as recorded (`core.ACCESS`).

        Those of a block without a tile, which copies A and B or exits, are left out.
        """
        line, mask, step, kind = (rows[name].astype(np.int64) for name in _RECORDED)
        own = np.flatnonzero(self.pieces.block == block)
        floats = LINE_FLOATS * line + SECTOR_FLOATS * _FIRST[mask]
        parts = [np.zeros(0, _ENTRY)]
        for region in self.regions if len(own) else ():
            here = region.holds(floats)
            if len(here):
                first = floats[here] - region.address // FLOAT_BYTES
                row, column = region.row_and_column(first)
                runs = _Runs(
                    first=first,
                    row=row,
                    column=column,
                    sectors=_SECTORS[mask[here]],
                    step=step[here],
                    kind=kind[here],
                )
                parts.append(self._entries(region, block, own, runs))
        return Footprint(
            entries=np.concatenate(parts),
            last=float(step.max(initial=0)),
            last_read=float(step[kind == READ].max(initial=0)),
        )

    def _entries(self, region: _Region, block: int, own: Indices, runs: _Runs) -> NDArray[Any]:
        """Accesses of a block to one region. `own`: its parts of tiles among all pieces."""
        which = slot = np.zeros_like(runs.first)
        inside = SECTOR_FLOATS * runs.sectors
        if region.data is Data.SUMS:
            slot = runs.row - block
        else:
            which, inside = self._own_tile(region, own, runs)
        columns = {"kind": runs.kind, "own": which, "slot": slot, "bin": region.bins(runs)}
        values, group = _grouped(list(columns.values()))
        found = np.zeros(len(values[0]), dtype=_ENTRY)
        found["data"] = region.data
        for name, value in zip(columns, values, strict=True):
            found[name] = value
        found["sectors"] = np.bincount(group, runs.sectors)
        found["bytes"] = FLOAT_BYTES * np.bincount(group, inside)
        found["step"] = np.bincount(group, runs.sectors * runs.step) / found["sectors"]
        if region.data is Data.SUMS:  # others wait for the last write
            writes = np.flatnonzero(runs.kind != READ)
            np.maximum.at(found["step"], group[writes], runs.step[writes])
        return found

    def _own_tile(self, region: _Region, own: Indices, runs: _Runs) -> tuple[Indices, Indices]:
        """Number of the block's own tile that each run is in, and the floats of it in there."""
        lines = region.lines(self.pieces)[own].tolist()
        if len(own) == 1:
            return np.zeros_like(runs.first), region.inside(lines[0], runs)
        inside = np.array([region.inside(line, runs) for line in lines])
        if region.data is Data.C:  # no position along K, but a row
            is_own = runs.row // self.launch.tiling.block_m == self.pieces.row[own][:, None]
        else:
            is_own = self._along(own, region.bins(runs))
        which = (inside * is_own).argmax(axis=0)
        return which, np.take_along_axis(inside, which[None], axis=0)[0]

    def _along(self, own: Indices, bins: Indices) -> NDArray[np.bool_]:
        """True where a position along K is in the range of one of the parts of tiles `own`."""
        bins_of_k = self.launch.executed.k / BIN_FLOATS
        begins, ends = (x[own][:, None] * bins_of_k for x in (self.pieces.begins, self.pieces.ends))
        found: NDArray[np.bool_] = (bins + 1 > begins) & (bins < ends)
        return found


def _grouped(columns: Sequence[Indices]) -> tuple[list[Indices], Indices]:
    """Distinct rows of small numbers, and the number of each row among them."""
    least = [int(column.min()) for column in columns]
    sizes = [int(column.max()) + 1 - low for column, low in zip(columns, least, strict=True)]
    key = np.ravel_multi_index([c - low for c, low in zip(columns, least, strict=True)], sizes)
    is_some = np.bincount(key) > 0
    some = np.unravel_index(np.flatnonzero(is_some), sizes)
    values = [one + low for one, low in zip(some, least, strict=True)]
    return values, (np.cumsum(is_some) - 1)[key]


@dataclass(frozen=True, kw_only=True)
class _Region:
    """Memory that holds one of `Data`: a matrix in memory, or the partial sums.

    A tile of A is `tile` rows, one of B or C `tile` columns.
    """

    data: Data
    address: int
    bytes: int
    pitch: int  # floats from row to row, or of a slot of partial sums
    tile: int = 1

    @property
    def is_of_a(self) -> bool:
        return self.data is Data.A

    def holds(self, floats: Indices) -> Indices:
        """Indices of the addresses, in floats, that are in this memory."""
        first = self.address // FLOAT_BYTES
        return np.flatnonzero((floats >= first) & (floats < first + self.bytes // FLOAT_BYTES))

    def bins(self, runs: _Runs) -> Indices:
        """Positions along K; 0 in memory without K."""
        if self.is_of_a:
            return runs.column // BIN_FLOATS
        return runs.row // BIN_FLOATS if self.data is Data.B else np.zeros_like(runs.row)

    def row_and_column(self, first: Indices) -> tuple[Indices, Indices]:
        row = first // self.pitch
        return row, first - row * self.pitch  # faster than a remainder

    def lines(self, pieces: Pieces) -> Indices:
        """Row of tiles in A, or column of tiles in B or C, of parts of tiles."""
        return pieces.row if self.is_of_a else pieces.column

    def inside(self, line: int, runs: _Runs) -> Indices:
        """Floats of each run that are in a row or column of tiles."""
        floats, begin, end = SECTOR_FLOATS * runs.sectors, line * self.tile, (line + 1) * self.tile
        if self.is_of_a:
            return _overlap(runs.first, floats, begin * self.pitch, end * self.pitch)
        end = min(end, self.pitch)
        found = _overlap(runs.column, floats, begin, end)
        if begin < SECTOR_FLOATS and self.pitch % SECTOR_FLOATS:  # a run may go on in the next row
            found += _overlap(runs.column - self.pitch, floats, begin, end)
        return found


def _overlap(first: Indices, floats: Indices, begin: int, end: int) -> Indices:
    found: Indices = np.maximum(0, np.minimum(first + floats, end) - np.maximum(first, begin))
    return found


def _regions(launch: RungLaunch, bound: BoundLaunch) -> Iterator[_Region]:
    """Yield what blocks access, except for flags."""
    shape, tiling = launch.executed, launch.tiling
    matrices = {
        "A": (Data.A, shape.k, tiling.block_m),
        "B": (Data.B, shape.n, tiling.block_n),
        "C": (Data.C, shape.n, tiling.block_n),
    }
    for buffer in bound.buffers:
        if buffer.name in matrices:
            data, pitch, tile = matrices[buffer.name]
            yield _Region(
                data=data, address=buffer.address, bytes=buffer.bytes, pitch=pitch, tile=tile
            )
        elif buffer.name == "workspace":
            yield from _regions_of_workspace(launch, buffer)


def _regions_of_workspace(launch: RungLaunch, workspace: Buffer) -> Iterator[_Region]:
    """Yield partial sums, and copies of A and B: a block that reads one does not read the other."""
    shape, tiling, copies = launch.executed, launch.tiling, launch.copies
    flags, *_ = launch.ready_words(is_last=False)
    begin = ceil_div(flags.offset + FLOAT_BYTES * flags.count, LINE_BYTES) * LINE_BYTES
    behind = min((at for at in (copies.a, copies.b) if at is not None), default=workspace.bytes)
    size = tiling.block_m * tiling.block_n
    slots = (behind - begin) // (FLOAT_BYTES * size)
    yield _Region(
        data=Data.SUMS,
        address=workspace.address + begin,
        bytes=FLOAT_BYTES * size * slots,
        pitch=size,
    )
    for data, at, extents, tile in (
        (Data.A, copies.a, (shape.m, shape.k), tiling.block_m),
        (Data.B, copies.b, (shape.k, shape.n), tiling.block_n),
    ):
        if at is not None:
            rows, pitch = extents[0], row_floats(extents[1])
            yield _Region(
                data=data,
                address=workspace.address + at,
                bytes=FLOAT_BYTES * rows * pitch,
                pitch=pitch,
                tile=tile,
            )


def extrapolated(found: Footprint, low_k: int, launch: RungLaunch, longer: float) -> Footprint:
    """Footprint at K of `launch`, from that at `low_k`: periods are inserted in the middle.

    `longer`: steps that a block executes more.
    """
    step = period(launch.tiling)
    more, middle = (launch.executed.k - low_k) // step, low_k // step // 2
    if not more:
        return found
    bins, parts = step // BIN_FLOATS, []
    until = 0.0
    for data in (Data.A, Data.B):
        entries = found.entries[found.entries["data"] == data]
        before = entries["bin"] < middle * bins
        last = entries["step"][before].max(initial=0)
        until = max(until, last)
        repeated = entries[before & (entries["bin"] >= (middle - 1) * bins)]
        times = np.repeat(np.arange(1, more + 1), len(repeated))
        inserted = np.tile(repeated, more)
        inserted["bin"] += times * bins
        inserted["step"] += times * longer / more
        entries["bin"][~before] += more * bins
        # a part of a period at the end of K may be read first
        entries["step"][~before & (entries["step"] > last)] += longer
        parts += [entries, inserted]
    others = found.entries[~np.isin(found.entries["data"], (Data.A, Data.B))]
    others["step"][others["step"] > until] += longer
    return Footprint(
        entries=np.concatenate([*parts, others]),
        last=found.last + longer,
        last_read=found.last_read + longer,
    )
