"""Launches of a product on tensor cores from FP16 parts of float32: kernels/split_products/.

`plan_for` says which tile a product takes, or why float32's own paths are better for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from kernels.paths import FACTORS, PathLaunch, Plan, Pointer, TensorMapOf
from kernels.product import Matrix, Product

ARCHITECTURE = "sm_90"  # whose features wgmma and multicast copies are (sm_90a)
HALF_BYTES, PARTS = 2, 2
PIECE = 64  # rows and columns of a bulk copy
SWIZZLE_BYTES = 128
ROW_OF_PARTS = 64  # halves: rows of parts begin on 128 bytes
ALIGNMENT = 256  # bytes, of places in the workspace
CONTROL_BYTES = 256
THREADS, WARPS, BLOCKS_PER_SM = 512, 16, 2  # of both passes over operands
WARP_COLUMNS = 128
MOST_ROW_QUADS = 8
SPECIAL_TILE, SPECIAL_THREADS = 64, 256
MOST_BATCH = 64  # products with four launches each


@dataclass(frozen=True, kw_only=True)
class SplitTile:
    """Parameters of multiply_parts.cu."""

    bn: int
    stages: int
    cluster: int  #: blocks that share copies of B

    bm = 128
    bk = 64
    threads = 384

    @property
    def name(self) -> str:
        return f"{self.bm}x{self.bn}" + (f",cluster={self.cluster}" if self.cluster > 1 else "")

    @property
    def shared_bytes(self) -> int:
        return self.stages * PARTS * HALF_BYTES * self.bk * (self.bm + self.bn)


NARROW = SplitTile(bn=64, stages=4, cluster=1)
SQUARE = SplitTile(bn=128, stages=3, cluster=2)
WIDE = SplitTile(bn=256, stages=2, cluster=1)
TILES = NARROW, SQUARE, WIDE


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Where things are in the workspace, in bytes, and pitches of the parts in halves."""

    zero_bytes: int  #: control and maxima, which are zero between calls; then roots
    begin_a: int
    begin_b: int
    end: int
    pitch_a: int
    pitch_b: int


def split(product: Product, tile: SplitTile, sms: int) -> Plan:
    """Scale and split both operands, multiply the parts, and redo rows with Inf and NaN."""
    places = _places(product)
    launches: list[PathLaunch] = []
    for number in range(product.batch):
        a = Pointer("A", FLOAT_BYTES * number * product.stride_a)
        b = Pointer("B", FLOAT_BYTES * number * product.stride_b)
        c = Pointer("C", FLOAT_BYTES * number * product.stride_c)
        launches += (
            *_passes(product, places, sms, a, b),
            _multiply(product, places, tile, sms, c),
            _redo_special(product, places, sms, a, b, c),
        )
    return Plan(
        label=f"split:{tile.name}",
        launches=tuple(launches),
        workspace_bytes=places.end,
        zeroed_bytes=places.zero_bytes,
    )


def _places(product: Product) -> _Places:
    a, b = product.a, product.b
    pitch_a, pitch_b = _pitch(a.columns), _pitch(b.columns)
    maxima = 2 * (product.m + product.n + product.k)
    zero = _aligned(CONTROL_BYTES + FLOAT_BYTES * maxima)
    begin_a = _aligned(zero + FLOAT_BYTES * (product.m + 1 + product.n))  # b's begin on 8 bytes
    begin_b = _aligned(begin_a + PARTS * HALF_BYTES * a.rows * pitch_a)
    return _Places(
        zero_bytes=zero,
        begin_a=begin_a,
        begin_b=begin_b,
        end=begin_b + PARTS * HALF_BYTES * b.rows * pitch_b,
        pitch_a=pitch_a,
        pitch_b=pitch_b,
    )


def _layout(product: Product) -> dict[str, int]:
    return {
        "A_ALONG": int(not product.transpose_a),
        "B_ALONG": int(product.transpose_b),
        "CONTROL_BYTES": CONTROL_BYTES,
    }


def _passes(
    product: Product, places: _Places, sms: int, a: Pointer, b: Pointer
) -> tuple[PathLaunch, PathLaunch]:
    """The two launches that find scales and store parts."""
    defines = _pass_defines(product, sms) | _layout(product)
    sizes = (product.m, product.n, product.k, product.lda, product.ldb)
    first = PathLaunch(
        file="first_pass.cu",
        entry="split_first_pass",
        defines=defines,
        grid=(1 + sum(_first_items(product, defines)), 1, 1),
        block=THREADS,
        dynamic_shared_bytes=0,
        arguments=(
            *(a, b),
            *map(np.int32, sizes),
            Pointer("workspace"),
            *map(np.int64, (places.zero_bytes, places.begin_a, places.begin_b)),
            *map(np.int32, (places.pitch_a, places.pitch_b)),
        ),
    )
    all_items = sum(_tile_items(product, defines))
    second = replace(
        first,
        file="second_pass.cu",
        entry="split_second_pass",
        # one for each item, and enough for the phases of equilibration
        grid=(
            max(sum(_second_items(product, defines)), min(all_items, BLOCKS_PER_SM * sms)),
            1,
            1,
        ),
        waits_itself=True,
    )
    return first, second


def _multiply(
    product: Product, places: _Places, tile: SplitTile, sms: int, c: Pointer
) -> PathLaunch:
    rows = ceil_div(product.m, tile.bm * tile.cluster)
    tiles = rows * ceil_div(product.n, tile.bn) * tile.cluster
    return PathLaunch(
        file="multiply_parts.cu",
        entry="split_product",
        defines=_layout(product) | {"BN": tile.bn, "STAGES": tile.stages, "CLUSTER": tile.cluster},
        grid=(min(tiles, sms // tile.cluster * tile.cluster), 1, 1),
        block=tile.threads,
        dynamic_shared_bytes=tile.shared_bytes,
        arguments=(
            _parts(places.begin_a, product.a, places.pitch_a),
            _parts(places.begin_b, product.b, places.pitch_b),
            *(Pointer("workspace"), np.int64(places.zero_bytes), c),
            *map(np.int32, (product.m, product.n, product.k, product.ldc)),
            *FACTORS,
        ),
        waits_itself=True,
    )


def _redo_special(
    product: Product, places: _Places, sms: int, a: Pointer, b: Pointer, c: Pointer
) -> PathLaunch:
    tiles = ceil_div(product.m, SPECIAL_TILE) * ceil_div(product.n, SPECIAL_TILE)
    of_a = (1, product.lda) if product.transpose_a else (product.lda, 1)  # of a row, of a k
    of_b = (1, product.ldb) if product.transpose_b else (product.ldb, 1)  # of a k, of a column
    sizes = product.m, product.n, product.k
    return PathLaunch(
        file="special_rows.cu",
        entry="split_special_rows",
        defines={"CONTROL_BYTES": CONTROL_BYTES},
        grid=(min(tiles, sms), 1, 1),
        block=SPECIAL_THREADS,
        dynamic_shared_bytes=0,
        arguments=(
            *(a, b, c),
            *map(np.int32, (*sizes, *of_a, *of_b, product.ldc)),
            *(*FACTORS, Pointer("workspace"), np.int64(places.zero_bytes)),
        ),
        waits_itself=True,
    )


def _pass_defines(product: Product, sms: int) -> dict[str, int]:
    """How warps share rows and columns: as many loads on their way as registers allow, unless
    that leaves warps of the GPU without work."""
    warps = sms * BLOCKS_PER_SM * WARPS
    rows = (0 if product.transpose_a else product.m) + (product.n if product.transpose_b else 0)
    row_warps = 1
    while row_warps < WARPS and (
        product.k > row_warps * MOST_ROW_QUADS * WARP_COLUMNS
        or (rows * row_warps < warps and product.k > 2 * row_warps * WARP_COLUMNS)
    ):
        row_warps *= 2
    columns = (product.m if product.transpose_a else 0) + (0 if product.transpose_b else product.n)
    units = ceil_div(columns, WARP_COLUMNS) * product.k  # of one row
    unit_rows = 4
    while unit_rows < 32 and units >= 4 * warps * unit_rows:
        unit_rows *= 2
    return {
        "A_QUADS": int(product.a.in_quads),
        "B_QUADS": int(product.b.in_quads),
        "ROW_WARPS": row_warps,
        "ROW_QUADS": min(MOST_ROW_QUADS, ceil_div(product.k, row_warps * WARP_COLUMNS)),
        "UNIT_ROWS": unit_rows,
    }


def _tile_items(product: Product, defines: Mapping[str, int]) -> tuple[int, int]:
    """Blocks that tiles of each operand take."""
    units = (
        ceil_div(one.columns, WARP_COLUMNS) * ceil_div(one.rows, defines["UNIT_ROWS"])
        for one in (product.a, product.b)
    )
    of_a, of_b = (ceil_div(one, WARPS) for one in units)
    return of_a, of_b


def _first_items(product: Product, defines: Mapping[str, int]) -> tuple[int, int]:
    of_a, of_b = _tile_items(product, defines)
    rows = WARPS // defines["ROW_WARPS"]
    return (
        of_a if product.transpose_a else ceil_div(product.m, rows),
        ceil_div(product.n, rows) if product.transpose_b else of_b,
    )


def _second_items(product: Product, defines: Mapping[str, int]) -> tuple[int, int]:
    of_a, of_b = _tile_items(product, defines)
    return of_a if product.transpose_a else 0, 0 if product.transpose_b else of_b


def _parts(begin: int, stored: Matrix, pitch: int) -> TensorMapOf:
    pitch_bytes = HALF_BYTES * pitch
    return TensorMapOf(
        Pointer("workspace", begin),
        (PARTS, stored.rows, stored.columns),
        (stored.rows * pitch_bytes, pitch_bytes),
        (1, PIECE, PIECE),
        SWIZZLE_BYTES,
        "float16",
    )


def _pitch(columns: int) -> int:
    return ceil_div(columns, ROW_OF_PARTS) * ROW_OF_PARTS


def _aligned(size_bytes: int) -> int:
    return ceil_div(size_bytes, ALIGNMENT) * ALIGNMENT


# The choice between tiles, and between tensor cores and float32's own paths.

LEAST_SIZE = 513  # of M, N and K: below it, what surrounds the product takes more than it saves


def plan_for(device: Device, product: Product) -> Plan | str:
    """The launches on tensor cores, or why float32's own paths are better.

    Raises UnavailableError for a device without wgmma.
    """
    if device.sm_arch != ARCHITECTURE:
        raise UnavailableError(
            f'precision = "fp32x" needs wgmma of {ARCHITECTURE}, and {device.name} is '
            f'{device.sm_arch}: take precision = "fp32"'
        )
    for name in ("m", "n", "k"):
        if (size := getattr(product, name)) < LEAST_SIZE:
            return f"its {name} = {size} is less than {LEAST_SIZE}, where that is faster"
    if product.batch > MOST_BATCH:
        return f"its batch is larger than {MOST_BATCH}"
    tile = min(TILES, key=lambda one: _clocks(product, one, device.sm_count))
    return split(product, tile, device.sm_count)


# Clocks of a tile: of each step of 64 of K, and around them.
STEP_CLOCKS = {NARROW: 900.0, SQUARE: 1620.0, WIDE: 3170.0}
TILE_CLOCKS = {NARROW: 1500.0, SQUARE: 2500.0, WIDE: 4500.0}


def _clocks(product: Product, tile: SplitTile, sms: int) -> float:
    rows = ceil_div(product.m, tile.bm * tile.cluster) * tile.cluster
    rounds = ceil_div(rows * ceil_div(product.n, tile.bn), sms)
    return rounds * (TILE_CLOCKS[tile] + ceil_div(product.k, tile.bk) * STEP_CLOCKS[tile])
