"""The paths by which a product of any layout is computed, and the launches of each.

A path is a kernel of kernels/products/ with its parameters, or two of them in a row. What it costs
is estimated in kernels/path_times.py, and `plan_for` takes the one with the shortest estimate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from analysis.errors import ShapeError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from kernels.path_tiles import Tile
from kernels.product import Matrix, Product
from kernels.tilings import BULK_DEPTH

Operand = Literal["A", "B", "C", "workspace"]
FOLDERS = "products", "split_products", "sgemm"  # of kernels, in the order of a search
_INCLUDED = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)

COLUMNS_OF_FEW_ROWS = {True: 32, False: 128}  # of a block, by whether B is stored along k
MOST_ROWS, THREADS_OF_FEW_ROWS = 8, 256  # of few_rows.cu
ROWS_OF_FEW_ROWS = (1, 2, 4, 8)
MOST_SHORT_K = 96  # beyond it short_k.cu is not considered
PACK_TILE = 64
TICKETS_ALIGNMENT = 128  # bytes


@dataclass(frozen=True, slots=True)
class Pointer:
    """An operand, or a place in the workspace."""

    of: Operand
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Factor:
    """alpha or beta, whose values a plan does not depend on."""

    name: Literal["alpha", "beta"]


FACTORS = Factor("alpha"), Factor("beta")


@dataclass(frozen=True, slots=True)
class TensorMapOf:
    """A tensor map of row-major matrices, for bulk copies of `box` rows and columns of one."""

    pointer: Pointer
    shape: tuple[int, ...]
    pitches_bytes: tuple[int, ...]  #: from element to element along each axis but the last
    box: tuple[int, ...]
    swizzle_bytes: int
    dtype: str = "float32"


Argument = np.int32 | np.int64 | Pointer | TensorMapOf | Factor


@dataclass(frozen=True, kw_only=True, slots=True)
class PathLaunch:
    """One launch: a kernel of one of FOLDERS, its macros, geometry and arguments in order."""

    file: str
    entry: str
    defines: Mapping[str, int]
    grid: tuple[int, int, int]
    block: int
    dynamic_shared_bytes: int
    arguments: tuple[Argument, ...]
    #: True if the kernel waits for the launch before it by griddepcontrol.wait, so that its blocks
    #: may start while that one ends (sm_90 and later).
    waits_itself: bool = False

    @property
    def source(self) -> str:
        """CUDA C++ text of the kernel, in which included files replace their directives."""
        return source_of(self.file)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The launches of a product, in order on one stream."""

    label: str  #: path and parameters, such as "any-layout:64x64x32,splits=4"
    launches: tuple[PathLaunch, ...]
    workspace_bytes: int = 0
    #: First bytes of the workspace that must be zero before the first launch. They are zero again
    #: after the last.
    zeroed_bytes: int = 0


SHORT_TILES = ((8, 4), (4, 2), (2, 1))  # rows and columns of a thread of short_k.cu
STREAMED_ROWS = (8, 10)  # of a thread of streamed.cu
STREAMED_COLUMNS = 128  # of a tile
STREAMED_STAGES = 3
STREAMED_THREADS = 128


@cache
def source_of(file: str) -> str:
    """Text of a file of one of FOLDERS with the files that it includes."""
    places = (files("kernels").joinpath(folder, file) for folder in FOLDERS)
    here = next(place for place in places if place.is_file())
    return _INCLUDED.sub(lambda found: source_of(found[1]), here.read_text(encoding="utf-8"))


def any_layout(product: Product, tile: Tile, splits: int) -> Plan:
    """Tiles of matrices that are stored in any way; `splits` blocks share each by k."""
    _check_splits(product, splits, tile.bk)
    a_in_quads, b_in_quads, _ = product.in_quads
    defines = tile.defines | {
        "A_ALONG_K": int(not product.transpose_a),
        "B_ALONG_K": int(product.transpose_b),
        "A_QUADS": int(product.transpose_a and a_in_quads),
        "B_QUADS": int(not product.transpose_b and b_in_quads),
    }
    tiles = ceil_div(product.m, tile.bm) * ceil_div(product.n, tile.bn)
    by_ticket, tickets, size = _split_workspace(product, tile, tiles * product.batch, splits)
    launch = PathLaunch(
        file="any_layout.cu",
        entry="sgemm_any_layout",
        defines=defines,
        grid=(tiles * splits, 1, product.batch),
        block=tile.threads,
        dynamic_shared_bytes=tile.shared_bytes,
        waits_itself=True,
        arguments=(
            *(Pointer("A"), Pointer("B"), Pointer("C")),
            *map(np.int32, (product.m, product.n, product.k)),
            *map(np.int32, (product.lda, product.ldb, product.ldc)),
            *map(np.int64, (product.stride_a, product.stride_b, product.stride_c)),
            *FACTORS,
            *(np.int32(splits), np.int32(by_ticket), Pointer("workspace")),
        ),
    )
    launches: tuple[PathLaunch, ...] = (launch,)
    if not by_ticket:
        launches += (_sums(product, tile, "any_layout.cu", defines, tiles, splits, 0),)
    return Plan(
        label=_label("any-layout", tile, splits),
        launches=launches,
        workspace_bytes=size,
        zeroed_bytes=tickets,
    )


def _check_splits(product: Product, splits: int, depth: int) -> None:
    """Refuse more splits than phases of `depth`: a block without a phase would not be defined."""
    most = ceil_div(product.k, depth)
    if not 1 <= splits <= most:
        raise ShapeError(
            f"product {product}: splits = {splits}, but K = {product.k} has {most} "
            f"{'phase' if most == 1 else 'phases'} of {depth}: give 1 to {most}"
        )


def _label(path: str, tile: Tile, splits: int) -> str:
    return f"{path}:{tile.name}" + (f",splits={splits}" if splits > 1 else "")


def _split_workspace(
    product: Product, tile: Tile, tiles: int, splits: int
) -> tuple[bool, int, int]:
    """Return if a ticket says who adds the sums, bytes of tickets, and of tickets and sums."""
    by_ticket = splits <= tile.most_ticketed
    if splits == 1:
        return by_ticket, 0, 0
    tickets = _aligned(4 * tiles) if by_ticket else 0
    return (
        by_ticket,
        tickets,
        tickets + tiles * splits * tile.quads * tile.threads * 4 * FLOAT_BYTES,
    )


def _sums(
    product: Product,
    tile: Tile,
    file: str,
    defines: Mapping[str, int],
    tiles: int,
    splits: int,
    offset: int,
) -> PathLaunch:
    return PathLaunch(
        file=file,
        entry="sgemm_sums",
        defines=defines,
        grid=(tiles * tile.quads, 1, product.batch),
        block=tile.threads,
        dynamic_shared_bytes=0,
        waits_itself=True,
        arguments=(
            Pointer("C"),
            *map(np.int32, (product.m, product.n, product.ldc)),
            np.int64(product.stride_c),
            FACTORS[1],
            *(np.int32(splits), Pointer("workspace", offset)),
        ),
    )


def loads_of_few_rows(rows: int, along_k: bool, is_in_quads: bool) -> int:
    """K of the loads of B that a block of few_rows.cu has on their way, K_AT_ONCE there."""
    if along_k:
        return 2 * 32 * 4 if is_in_quads else (4 if rows > 2 else 8) * 32
    return (4 if rows > 2 else 8) * 8


def depth_of_few_rows(rows: int) -> int:
    """K of A in shared memory, DEPTH of few_rows.cu."""
    return 2048 // rows if rows < 8 else 512


def splits_of_few_rows(rows: int, columns: int) -> int:
    """Splits whose sums the last block of few_rows.cu has on their way at a time."""
    values = rows * columns
    groups, passes = max(1, THREADS_OF_FEW_ROWS // values), ceil_div(values, THREADS_OF_FEW_ROWS)
    return groups * ((4 if rows == 4 else 16) // passes)


def few_rows(product: Product, splits: int, depth: int) -> Plan:
    """At most 8 rows or columns of C; `splits` blocks, each with `depth` of K, share columns."""
    if splits != ceil_div(product.k, depth):
        raise ShapeError(
            f"product {product}: splits = {splits} of {depth} of K = {product.k}: give "
            f"{ceil_div(product.k, depth)}"
        )
    turned = product.n < product.m  # a few columns of C are a few rows of its transpose
    if turned:
        rows, columns = product.n, product.m
        pitch, is_in_quads, along_k = product.lda, product.in_quads[0], not product.transpose_a
        small_row, small_k = (product.ldb, 1) if product.transpose_b else (1, product.ldb)
        c_row, c_column = 1, product.ldc
        operands = (Pointer("B"), Pointer("A"))
        strides = (product.stride_b, product.stride_a, product.stride_c)
    else:
        rows, columns = product.m, product.n
        pitch, is_in_quads, along_k = product.ldb, product.in_quads[1], product.transpose_b
        small_row, small_k = (1, product.lda) if product.transpose_a else (product.lda, 1)
        c_row, c_column = product.ldc, 1
        operands = (Pointer("A"), Pointer("B"))
        strides = (product.stride_a, product.stride_b, product.stride_c)
    most = next(n for n in ROWS_OF_FEW_ROWS if n >= rows)
    blocks, tickets, sums = ceil_div(columns, COLUMNS_OF_FEW_ROWS[along_k]), 0, 0
    if splits > 1:
        tickets = _aligned(4 * blocks * product.batch)
        sums = blocks * product.batch * splits * most * COLUMNS_OF_FEW_ROWS[along_k] * FLOAT_BYTES
    launch = PathLaunch(
        file="few_rows.cu",
        entry="sgemm_few_rows",
        defines={"ROWS": most, "B_ALONG_K": int(along_k), "QUADS": int(is_in_quads)},
        grid=(blocks, splits, product.batch),
        block=THREADS_OF_FEW_ROWS,
        dynamic_shared_bytes=0,
        waits_itself=True,
        arguments=(
            *(*operands, Pointer("C")),
            *map(np.int32, (rows, columns, product.k, small_row, small_k, pitch)),
            *map(np.int32, (c_row, c_column)),
            *map(np.int64, strides),
            *FACTORS,
            *(np.int32(splits), np.int32(depth), Pointer("workspace")),
        ),
    )
    return Plan(
        label=f"few-rows:{most}" + (f",splits={splits}" if splits > 1 else ""),
        launches=(launch,),
        workspace_bytes=tickets + sums,
        zeroed_bytes=tickets,
    )


def short_k(product: Product, thread_rows: int, thread_columns: int) -> Plan:
    """Tiles of 8 x 32 threads with a few elements each: tiny products, and a short K."""
    bm, bn = 8 * thread_rows, 32 * thread_columns
    launch = PathLaunch(
        file="short_k.cu",
        entry="sgemm_short_k",
        defines={
            "ROWS": thread_rows,
            "COLUMNS": thread_columns,
            "A_ALONG_K": int(not product.transpose_a),
            "B_ALONG_K": int(product.transpose_b),
        },
        grid=(ceil_div(product.m, bm) * ceil_div(product.n, bn), 1, product.batch),
        block=256,
        dynamic_shared_bytes=0,
        waits_itself=True,
        arguments=(
            *(Pointer("A"), Pointer("B"), Pointer("C")),
            *map(np.int32, (product.m, product.n, product.k)),
            *map(np.int32, (product.lda, product.ldb, product.ldc)),
            *map(np.int64, (product.stride_a, product.stride_b, product.stride_c)),
            *FACTORS,
        ),
    )
    return Plan(label=f"short-k:{bm}x{bn}", launches=(launch,))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Packed:
    """A and B where bulk copies can read them, and the launch that brings them there."""

    a: Pointer
    b: Pointer
    pitches: tuple[int, int]  #: floats from row to row of A and of B
    strides: tuple[int, int]  #: floats from matrix to matrix of the batch
    launch: PathLaunch | None
    end: int  #: bytes of the workspace up to the end of the copies


def must_pack(product: Product) -> tuple[bool, bool]:
    """Return for A and for B: true if it must be copied for bulk copies to read it."""
    a_in_quads, b_in_quads, _ = product.in_quads
    return product.transpose_a or not a_in_quads, product.transpose_b or not b_in_quads


def _packed(product: Product, begin: int) -> _Packed:
    places, pitches, strides, tiles, end = [], [], [], [], begin
    arguments: list[Argument] = []
    sides: tuple[tuple[Operand, Matrix, bool, int, int], ...] = (
        ("A", product.a, product.transpose_a, product.stride_a, product.k),
        ("B", product.b, product.transpose_b, product.stride_b, product.n),
    )
    for (name, stored, transposed, stride, columns), packs in zip(
        sides, must_pack(product), strict=True
    ):
        rows = stored.columns if transposed else stored.rows
        pitch, place, to_stride = stored.pitch, Pointer(name), stride
        if packs:
            pitch, place = _whole_quads(columns), Pointer("workspace", end)
            to_stride = rows * pitch if stride else 0
            matrices = product.batch if stride else 1
            end += _aligned(matrices * rows * pitch * FLOAT_BYTES)
        across = ceil_div(stored.columns, PACK_TILE)
        tiles.append(ceil_div(stored.rows, PACK_TILE) * across if packs else 0)
        arguments += [Pointer(name), place]
        arguments += map(np.int32, (stored.rows, stored.columns, stored.pitch, pitch, transposed))
        arguments += map(np.int64, (stride, to_stride))
        places.append(place)
        pitches.append(pitch)
        strides.append(to_stride)
    launch = PathLaunch(
        file="pack.cu",
        entry="sgemm_pack",
        defines={},
        grid=(sum(tiles), 1, product.batch),
        block=256,
        dynamic_shared_bytes=0,
        waits_itself=True,
        arguments=(*arguments, np.int32(tiles[0])),
    )
    return _Packed(
        a=places[0],
        b=places[1],
        pitches=(pitches[0], pitches[1]),
        strides=(strides[0], strides[1]),
        launch=launch if sum(tiles) else None,
        end=end,
    )


def _batched(product: Product) -> dict[str, int]:
    return {"BATCHED_A": int(product.stride_a != 0), "BATCHED_B": int(product.stride_b != 0)}


def _maps(product: Product, packed: _Packed, bm: int, bn: int) -> tuple[TensorMapOf, TensorMapOf]:
    """Maps of op(A) and op(B), with the matrices of the batch as a first axis."""
    found = []
    for place, shape, pitch, stride, box, swizzle in (
        (
            packed.a,
            (product.m, product.k),
            packed.pitches[0],
            packed.strides[0],
            (bm, BULK_DEPTH),
            BULK_DEPTH * FLOAT_BYTES,
        ),
        (
            packed.b,
            (product.k, product.n),
            packed.pitches[1],
            packed.strides[1],
            (BULK_DEPTH, bn),
            0,
        ),
    ):
        found.append(
            TensorMapOf(
                place,
                (product.batch if stride else 1, *shape),
                (_stride_bytes(stride, pitch, shape[0]), pitch * FLOAT_BYTES),
                (1, *box),
                swizzle,
            )
        )
    return found[0], found[1]


def _stride_bytes(stride: int, pitch: int, rows: int) -> int:
    """Distance of matrices in a map, which takes multiples of 16 bytes even where there is one."""
    return FLOAT_BYTES * (stride if stride % 4 == 0 and stride else rows * pitch)


def sliced(product: Product, tile: Tile, splits: int) -> Plan:
    """Bulk copies, slices of a block and splits; first a copy of what they cannot read."""
    _check_splits(product, splits, tile.bk)
    tiles = ceil_div(product.m, tile.bm) * ceil_div(product.n, tile.bn)
    by_ticket, tickets, begin = _split_workspace(product, tile, tiles * product.batch, splits)
    packed = _packed(product, _aligned(begin))
    map_a, map_b = _maps(product, packed, tile.bm, tile.bn)
    defines = tile.defines | _batched(product)
    main = PathLaunch(
        file="sliced.cu",
        entry="sgemm_sliced",
        defines=defines,
        grid=(tiles * splits, 1, product.batch),
        block=tile.threads,
        dynamic_shared_bytes=tile.shared_bytes,
        waits_itself=True,
        arguments=(
            *(map_a, map_b, Pointer("C")),
            *map(np.int32, (product.m, product.n, product.k, product.ldc)),
            np.int64(product.stride_c),
            *FACTORS,
            *(np.int32(splits), np.int32(by_ticket), Pointer("workspace")),
        ),
    )
    last = () if by_ticket else (_sums(product, tile, "sliced.cu", defines, tiles, splits, 0),)
    return Plan(
        label=_label("bulk", tile, splits) + (",packed" if packed.launch else ""),
        launches=(*((packed.launch,) if packed.launch else ()), main, *last),
        workspace_bytes=packed.end,
        zeroed_bytes=tickets,
    )


def streamed(product: Product, thread_rows: int, workers: int) -> Plan:
    """Bulk copies and stream-K; first a copy of what bulk copies cannot read."""
    bm, bn = 16 * thread_rows, STREAMED_COLUMNS
    tiles = ceil_div(product.m, bm) * ceil_div(product.n, bn) * product.batch
    shared = tiles % workers
    flags = _aligned(4 * (workers + 1))
    packed = _packed(product, _aligned(flags + (workers * bm * bn * FLOAT_BYTES if shared else 0)))
    map_a, map_b = _maps(product, packed, bm, bn)
    main = PathLaunch(
        file="streamed.cu",
        entry="sgemm_streamed",
        defines={
            "TM": thread_rows,
            "STAGES": STREAMED_STAGES,
            "WORKERS": workers,
            **_batched(product),
        },
        grid=(tiles - shared + (workers if shared else 0), 1, 1),
        block=STREAMED_THREADS,
        dynamic_shared_bytes=streamed_bytes(thread_rows),
        waits_itself=True,
        arguments=(
            *(map_a, map_b, Pointer("C")),
            *map(np.int32, (product.m, product.n, product.k, product.ldc, product.batch)),
            np.int64(product.stride_c),
            *(*FACTORS, Pointer("workspace")),
        ),
    )
    return Plan(
        label=f"bulk:{bm}x{bn}" + (",packed" if packed.launch else ""),
        launches=(*((packed.launch,) if packed.launch else ()), main),
        workspace_bytes=packed.end,
        zeroed_bytes=flags,
    )


def streamed_bytes(thread_rows: int) -> int:
    """Dynamic shared memory of a block of streamed.cu."""
    return STREAMED_STAGES * BULK_DEPTH * (16 * thread_rows + STREAMED_COLUMNS) * FLOAT_BYTES


def _whole_quads(floats: int) -> int:
    return ceil_div(floats, 4) * 4


def _aligned(size_bytes: int) -> int:
    return ceil_div(size_bytes, TICKETS_ALIGNMENT) * TICKETS_ALIGNMENT
