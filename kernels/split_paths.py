"""Launches of a product on tensor cores from FP16 parts of float32: kernels/split_products/.

`plan_for` says which tile a product takes, or why float32's own paths are better for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analysis.devices import Device
from analysis.errors import ShapeError, UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from kernels.path_rates import DEFAULT_BANDWIDTH
from kernels.path_times import candidates
from kernels.paths import FACTORS, PathLaunch, Plan, Pointer, TensorMapOf
from kernels.product import Matrix, Product

ARCHITECTURE = "sm_90"  # whose features wgmma and multicast copies are (sm_90a)
HALF_BYTES, PARTS = 2, 2
PIECE = 64  # rows and columns of a bulk copy
SWIZZLE_BYTES = 128
ROW_OF_PARTS = 64  # halves: rows of parts begin on 128 bytes
ALIGNMENT = 256  # bytes, of places in the workspace
CONTROL_BYTES = 1024
TICKETS_BEGIN = 256  # bytes; of shared tiles, up to CONTROL_BYTES
THREADS, WARPS, BLOCKS_PER_SM = 512, 16, 2  # of both passes over operands
WARP_COLUMNS = 128
# Warps share a row so that each lane has 4 quads of it, but no more than 8 warps; then 8 quads.
USUAL_ROW_QUADS, MOST_ROW_QUADS, MOST_ROW_WARPS = 4, 8, 8
UNIT_ROWS = 32, 16, 8, 4  # of a warp: the most with which every SM has a block
MOST_BATCH = 64  # products with three launches each
MOST_PLAIN_K = 1024  # of sums in float32 whose additions may lose what they do (decision 146)


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
    def keeps_lost(self) -> bool:
        """True if registers also hold what additions lose."""
        return self.bn <= 64

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
class Rounds:
    """Order in which blocks of a product take tiles; a cluster takes one for each of its blocks.

    Tiles fill rounds of all clusters. Those that are left are shared along K.
    """

    tiles: int  #: of clusters
    clusters: int  #: at a time
    shares: int  #: blocks that share each tile that fills no round

    @property
    def shared_tiles(self) -> int:
        return self.tiles % self.clusters if self.shares > 1 else 0

    @property
    def units(self) -> int:
        """Tiles, and shares of them."""
        return self.tiles + self.shared_tiles * (self.shares - 1)


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Places in the workspace, in bytes, and pitches of the parts in halves."""

    zero_bytes: int  #: control and maxima, which are zero between calls; then roots and one word
    begin_a: int
    begin_b: int
    begin_sums: int  #: of shared tiles
    pitch_a: int
    pitch_b: int


def split(product: Product, tile: SplitTile, sms: int, shares: int | None = None) -> Plan:
    """Scale and split both operands, and multiply the parts.

    `shares` blocks share a tile that fills no round, by default as many as `rounds` says.
    """
    places = _places(product)
    taken = rounds(product, tile, sms)
    if shares is not None:
        most = _most_shares(product, tile, taken)
        if not 1 <= shares <= most:
            raise ShapeError(
                f"product {product}: shares = {shares} of a {tile.name} tile: give 1"
                + (f" to {most}" if most > 1 else "")
            )
        taken = replace(taken, shares=shares)
    launches: list[PathLaunch] = []
    for number in range(product.batch):
        a = Pointer("A", FLOAT_BYTES * number * product.stride_a)
        b = Pointer("B", FLOAT_BYTES * number * product.stride_b)
        c = Pointer("C", FLOAT_BYTES * number * product.stride_c)
        launches += (
            *_passes(product, places, sms, a, b),
            _multiply(product, places, tile, taken, (a, b, c)),
        )
    return Plan(
        label=f"split:{tile.name}" + (f",shares={taken.shares}" if taken.shared_tiles else ""),
        launches=tuple(launches),
        workspace_bytes=places.begin_sums
        + taken.shared_tiles * taken.shares * tile.cluster * tile.bm * tile.bn * FLOAT_BYTES,
        zeroed_bytes=places.zero_bytes,
    )


def _places(product: Product) -> _Places:
    a, b = product.a, product.b
    pitch_a, pitch_b = _pitch(a.columns), _pitch(b.columns)
    maxima = 2 * (product.m + product.n + product.k)
    zero = _aligned(CONTROL_BYTES + FLOAT_BYTES * maxima)
    begin_a = _aligned(zero + FLOAT_BYTES * (product.m + 1 + product.n + 1))  # roots, terms
    begin_b = _aligned(begin_a + PARTS * HALF_BYTES * a.rows * pitch_a)
    return _Places(
        zero_bytes=zero,
        begin_a=begin_a,
        begin_b=begin_b,
        begin_sums=_aligned(begin_b + PARTS * HALF_BYTES * b.rows * pitch_b),
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
        grid=(2 + sum(_first_items(product, defines)), 1, 1),
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
    product: Product,
    places: _Places,
    tile: SplitTile,
    taken: Rounds,
    operands: tuple[Pointer, Pointer, Pointer],
) -> PathLaunch:
    of_a = (1, product.lda) if product.transpose_a else (product.lda, 1)  # of a row, of a k
    of_b = (1, product.ldb) if product.transpose_b else (product.ldb, 1)  # of a k, of a column
    return PathLaunch(
        file="multiply_parts.cu",
        entry="split_product",
        defines=_layout(product)
        | {"BN": tile.bn, "STAGES": tile.stages, "CLUSTER": tile.cluster}
        | {"SHARES": int(taken.shared_tiles > 0)}
        | {"KEEPS_LOST": int(tile.keeps_lost and product.k > MOST_PLAIN_K)},
        grid=(min(taken.units, taken.clusters) * tile.cluster, 1, 1),
        block=tile.threads,
        dynamic_shared_bytes=tile.shared_bytes,
        arguments=(
            _parts(places.begin_a, product.a, places.pitch_a),
            _parts(places.begin_b, product.b, places.pitch_b),
            *(Pointer("workspace"), np.int64(places.zero_bytes), *operands),
            *map(np.int32, (product.m, product.n, product.k, *of_a, *of_b, product.ldc)),
            *FACTORS,
            *map(np.int32, (taken.tiles - taken.shared_tiles, taken.shares)),
            np.int64(places.begin_sums),
        ),
        waits_itself=True,
    )


def _pass_defines(product: Product, sms: int) -> dict[str, int]:
    """Choose how warps share rows and columns, by what an H200 is fastest with (decision 86)."""
    row_warps = 1
    while row_warps < MOST_ROW_WARPS and product.k > row_warps * USUAL_ROW_QUADS * WARP_COLUMNS:
        row_warps *= 2
    defines = {
        "A_QUADS": int(product.in_quads[0]),
        "B_QUADS": int(product.in_quads[1]),
        "ROW_WARPS": row_warps,
        "ROW_QUADS": min(MOST_ROW_QUADS, ceil_div(product.k, row_warps * WARP_COLUMNS)),
    }
    across = (product.transpose_a, not product.transpose_b)
    for unit_rows in UNIT_ROWS:
        items = _tile_items(product, {"UNIT_ROWS": unit_rows})
        if sum(n for n, counts in zip(items, across, strict=True) if counts) >= sms:
            break
    return defines | {"UNIT_ROWS": unit_rows}


def _tile_items(product: Product, defines: Mapping[str, int]) -> tuple[int, int]:
    """Blocks that tiles of each operand take."""
    rows = WARPS * defines["UNIT_ROWS"]
    of_a, of_b = (
        ceil_div(one.columns, WARP_COLUMNS) * ceil_div(one.rows, rows)
        for one in (product.a, product.b)
    )
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

LEAST_K = 128  # a short sum is less accurate than in float32


@dataclass(frozen=True, kw_only=True)
class SplitConstants:
    """Fitted on an H200: squares of 1,024, 2,048 and 4,096. Clocks are of 1,980 MHz."""

    pass_s: float = 4.0e-6  # of the first pass
    second_pass_s: float = 3.0e-6  # more, if something runs across
    dram_share: float = 0.8  # of the peak, of passes
    product_s: float = 3.0e-6
    worth: float = 0.97  # of float32's time, of which fp32x must take less


CONSTANTS = SplitConstants()
TILE_CLOCKS = {NARROW: 2500.0, SQUARE: 4000.0, WIDE: 6000.0}  # around the steps of a tile
STEP_CLOCKS = {NARROW: 1250.0, SQUARE: 2080.0, WIDE: 4000.0}  # of 64 of K
SHARE_CLOCKS = 3000.0  # to store the sums of a share, and to see who ends last
ADD_CLOCKS = {NARROW: 500.0, SQUARE: 1000.0, WIDE: 2000.0}  # to add those of one


def plan_for(device: Device, product: Product) -> Plan | str:
    """The launches on tensor cores, or why float32's own paths are better.

    Raises UnavailableError for a device without wgmma.
    """
    if device.sm_arch != ARCHITECTURE:
        raise UnavailableError(
            f'precision = "fp32x" needs wgmma of {ARCHITECTURE}, and {device.name} is '
            f'{device.sm_arch}: take precision = "fp32"'
        )
    if product.k < LEAST_K:
        return f"sums of k = {product.k} are more accurate with it, those of {LEAST_K} are not"
    if product.batch > MOST_BATCH:
        return f"a batch of more than {MOST_BATCH} takes too many launches"
    tile = min(TILES, key=lambda one: _product_s(device, product, one))
    seconds = estimate_s(device, product, tile)
    of_float32, *_ = min(candidates(device, product, is_pruned=True), key=lambda one: one[0])
    if not seconds < CONSTANTS.worth * of_float32:
        return (
            f"by estimate it takes {of_float32 * 1e6:.1f} µs, and tensor cores {seconds * 1e6:.1f}"
        )
    return split(product, tile, device.sm_count)


def estimate_s(device: Device, product: Product, tile: SplitTile) -> float:
    """Estimated seconds of the launches of `split`."""
    along_a, along_b = not product.transpose_a, product.transpose_b
    read_and_written = sum(
        FLOAT_BYTES * one.rows * one.columns * (2 if is_along else 3)
        for one, is_along in ((product.a, along_a), (product.b, along_b))
    )
    bandwidth = CONSTANTS.dram_share * (device.dram_bytes_per_s or DEFAULT_BANDWIDTH)
    passes = CONSTANTS.pass_s + read_and_written / bandwidth
    if not (along_a and along_b):
        passes += CONSTANTS.second_pass_s
    return product.batch * (passes + _product_s(device, product, tile))


def rounds(product: Product, tile: SplitTile, sms: int) -> Rounds:
    """Share the tiles that fill no round among as many blocks as end first by estimate."""
    tiles = ceil_div(product.m, tile.bm * tile.cluster) * ceil_div(product.n, tile.bn)
    alone = Rounds(tiles=tiles, clusters=sms // tile.cluster, shares=1)
    steps = ceil_div(product.k, tile.bk)
    numbers = range(1, _most_shares(product, tile, alone) + 1)
    return replace(alone, shares=min(numbers, key=lambda one: _round_clocks(tile, steps, one)))


def _most_shares(product: Product, tile: SplitTile, taken: Rounds) -> int:
    """Blocks that can share a tile: they are resident together, with a step of K each."""
    left = taken.tiles % taken.clusters
    most_tiles = (CONTROL_BYTES - TICKETS_BEGIN) // 4 // 2 // tile.cluster  # two tickets each
    if not 0 < left <= most_tiles:
        return 1
    return min(taken.clusters // left, ceil_div(product.k, tile.bk))


def _round_clocks(tile: SplitTile, steps: int, shares: int) -> float:
    """Clocks of a round of tiles that so many blocks share."""
    sums = 0.0 if shares == 1 else SHARE_CLOCKS + shares * ADD_CLOCKS[tile]
    return TILE_CLOCKS[tile] + ceil_div(steps, shares) * STEP_CLOCKS[tile] + sums


def _product_s(device: Device, product: Product, tile: SplitTile) -> float:
    taken = rounds(product, tile, device.sm_count)
    steps = ceil_div(product.k, tile.bk)
    whole, left = divmod(taken.tiles, taken.clusters)
    clocks = whole * _round_clocks(tile, steps, 1)
    if left:
        clocks += _round_clocks(tile, steps, taken.shares)
    return CONSTANTS.product_s + clocks / device.boost_clock_hz
