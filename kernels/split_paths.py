"""Launches of a product on tensor cores from FP16 parts of float32: kernels/split_products/.

`plan_for` says which tile a product takes, or why float32's own paths are better for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from kernels.paths import FACTORS, PathLaunch, Plan, Pointer, TensorMapOf
from kernels.product import Product

ARCHITECTURE = "sm_90"  # whose features wgmma and multicast copies are (sm_90a)
HALF_BYTES, PARTS = 2, 2
PIECE = 64  # rows and columns of a bulk copy
SWIZZLE_BYTES = 128
ROW_OF_PARTS = 64  # halves: rows of parts begin on 128 bytes
ALIGNMENT = 256  # bytes, of places in the workspace
CONTROL_BYTES = 256
THREADS, WARPS, BLOCKS_PER_SM = 512, 16, 2  # of prepare.cu
WARP_COLUMNS = 128
MOST_ROW_QUADS = 8
SPECIAL_TILE, SPECIAL_THREADS = 64, 256
MOST_BATCH = 64  # products with three launches each


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


def split(product: Product, tile: SplitTile, sms: int) -> Plan:
    """Scale and split both operands, multiply the parts, and redo rows with Inf and NaN."""
    along_a, along_b = not product.transpose_a, product.transpose_b
    pitch_a, pitch_b = (_pitch(one.columns) for one in (product.a, product.b))
    words = 2 * (product.m + product.n + product.k)  # maxima
    zero = _aligned(CONTROL_BYTES + FLOAT_BYTES * words)
    begin_a = _aligned(zero + FLOAT_BYTES * (product.m + 1 + product.n))
    begin_b = _aligned(begin_a + PARTS * HALF_BYTES * product.a.rows * pitch_a)
    end = begin_b + PARTS * HALF_BYTES * product.b.rows * pitch_b
    layout = {"A_ALONG": int(along_a), "B_ALONG": int(along_b), "CONTROL_BYTES": CONTROL_BYTES}
    maps = (
        _parts(begin_a, product.a.rows, product.a.columns, pitch_a),
        _parts(begin_b, product.b.rows, product.b.columns, pitch_b),
    )
    sizes = tuple(map(np.int32, (product.m, product.n, product.k)))
    prepared = _prepare_defines(product, sms) | layout
    rows = ceil_div(product.m, tile.bm * tile.cluster)
    tiles = rows * ceil_div(product.n, tile.bn) * tile.cluster
    special = ceil_div(product.m, SPECIAL_TILE) * ceil_div(product.n, SPECIAL_TILE)
    a_row, a_k = (product.lda, 1) if along_a else (1, product.lda)
    b_k, b_column = (1, product.ldb) if along_b else (product.ldb, 1)
    launches: list[PathLaunch] = []
    for number in range(product.batch):
        a, b, c = (
            Pointer(name, FLOAT_BYTES * number * stride)
            for name, stride in (
                ("A", product.stride_a),
                ("B", product.stride_b),
                ("C", product.stride_c),
            )
        )
        launches += (
            PathLaunch(
                file="prepare.cu",
                entry="split_prepare",
                defines=prepared,
                grid=(_prepare_blocks(product, prepared, sms), 1, 1),
                block=THREADS,
                dynamic_shared_bytes=0,
                arguments=(
                    *(a, b, *sizes, np.int32(product.lda), np.int32(product.ldb)),
                    *(Pointer("workspace"), np.int64(zero), np.int64(begin_a), np.int64(begin_b)),
                    *(np.int32(pitch_a), np.int32(pitch_b)),
                ),
            ),
            PathLaunch(
                file="multiply_parts.cu",
                entry="split_product",
                defines=layout | {"BN": tile.bn, "STAGES": tile.stages, "CLUSTER": tile.cluster},
                grid=(min(tiles, sms // tile.cluster * tile.cluster), 1, 1),
                block=tile.threads,
                dynamic_shared_bytes=tile.shared_bytes,
                arguments=(
                    *(*maps, Pointer("workspace"), np.int64(zero), c),
                    *(*sizes, np.int32(product.ldc), *FACTORS),
                ),
                waits_itself=True,
            ),
            PathLaunch(
                file="special_rows.cu",
                entry="split_special_rows",
                defines={"CONTROL_BYTES": CONTROL_BYTES},
                grid=(min(special, sms), 1, 1),
                block=SPECIAL_THREADS,
                dynamic_shared_bytes=0,
                arguments=(
                    *(a, b, c, *sizes),
                    *map(np.int32, (a_row, a_k, b_k, b_column, product.ldc)),
                    *(*FACTORS, Pointer("workspace"), np.int64(zero)),
                ),
                waits_itself=True,
            ),
        )
    return Plan(
        label=f"split:{tile.name}",
        launches=tuple(launches),
        workspace_bytes=end,
        zeroed_bytes=zero,
    )


def _prepare_defines(product: Product, sms: int) -> dict[str, int]:
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


def _prepare_blocks(product: Product, defines: dict[str, int], sms: int) -> int:
    """As many blocks as fit, or as the first phase has items."""
    items = 0
    for vectors, is_along in (
        (product.m, not product.transpose_a),
        (product.n, product.transpose_b),
    ):
        if is_along:
            items += ceil_div(vectors, WARPS // defines["ROW_WARPS"])
        else:
            units = ceil_div(vectors, WARP_COLUMNS) * ceil_div(product.k, defines["UNIT_ROWS"])
            items += ceil_div(units, WARPS)
    return min(items, sms * BLOCKS_PER_SM)


def _parts(begin: int, rows: int, columns: int, pitch: int) -> TensorMapOf:
    pitch_bytes = HALF_BYTES * pitch
    return TensorMapOf(
        Pointer("workspace", begin),
        (PARTS, rows, columns),
        (rows * pitch_bytes, pitch_bytes),
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
