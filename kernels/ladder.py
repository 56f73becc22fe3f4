"""The ladder: every rung with its source, parameters, geometry, constraints and closed forms.

Adding a rung is one `.cu` file in kernels/sgemm/ and one `Variant` in `LADDER`; the launcher, the
checks, the closed forms, the commands and the report follow from its fields.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from analysis.access import Tiling
from analysis.problem import FLOAT_BYTES
from analysis.traffic.grid import behind, in_bands, split, streamed
from kernels import warps
from kernels.variant import (
    EXTENTS,
    FACTORS,
    BulkTiles,
    Constraint,
    Parameter,
    Parameters,
    Preference,
    Reference,
    TileSharing,
    Variant,
    tiling_of,
)
from kernels.workspace import (
    bytes_of_splits,
    bytes_of_workers,
    bytes_with_copies,
    flags_and_counts_of_copies,
    flags_of_splits,
    flags_of_workers,
    realigned_copies,
)

# 128×128 elements of C per block, 8×8 per thread; the compiler merges reads by fours.
_TILE_2D = partial(
    Tiling,
    block_m=128,
    block_n=128,
    thread_m=8,
    thread_n=8,
    shared_load_a_width=4,
    shared_load_b_width=4,
)
_ASYNCHRONOUS = partial(
    _TILE_2D, global_width=4, global_load_a_width=1, asynchronous=True, narrows=True
)
BULK_DEPTH = 32  # rows of A of 128 bytes, the longest that a copy swizzles
SPLIT_DEPTH = 64  # of the split rung, for fewer phases: two copies each

_BULK = partial(_TILE_2D, block_k=BULK_DEPTH, thread_n=16, global_width=4, bulk=True)
_STREAMED = partial(_BULK, leaves_sums=True)
_SPLIT = partial(_STREAMED, block_k=SPLIT_DEPTH)
_TALL = partial(_STREAMED, block_m=160, thread_m=10)


def _bulk_tiles(tiling: Tiling) -> BulkTiles:
    return BulkTiles(
        a=(tiling.block_m, BULK_DEPTH),
        b=(BULK_DEPTH, tiling.block_n),
        swizzle_a=FLOAT_BYTES * BULK_DEPTH,
    )


def _ring_bytes(tiling: Tiling) -> int:
    return tiling.stages * tiling.shared_bytes


def _ring_or_sums_bytes(tiling: Tiling) -> int:
    sums_bytes = FLOAT_BYTES * tiling.block_m * tiling.block_n * tiling.slices
    return max(_ring_bytes(tiling), sums_bytes)


def _split_tiling(p: Parameters) -> Tiling:
    return tiling_of(_SPLIT, _SPLIT_PARAMETERS, p)


_BM = Parameter(default=128, legal=(64, 128), meaning="rows of C per block", sets=("block_m",))
_BN = Parameter(default=128, legal=(64, 128), meaning="columns of C per block", sets=("block_n",))
_DEPTH = Parameter(default=8, legal=(8, 16), meaning="depth of a phase", sets=("block_k",))
_RING_OF_TILES = Parameter(
    default=3, legal=(2, 3, 4), meaning="phases in shared memory at a time", sets=("stages",)
)
_TM = Parameter(default=8, legal=(8, 12), meaning="rows of C per thread", sets=("thread_m",))
_RING = {
    "bm": _BM,
    "bn": _BN,
    "bk": replace(_DEPTH, default=16, legal=(16, 32)),
    "stages": _RING_OF_TILES,
}
_STAGES = {"stages": replace(_RING_OF_TILES, legal=(2, 3))}
_BANDS = _STAGES | {
    "band": Parameter(default=8, legal=(4, 8, 16), meaning="rows of tiles of a band")
}
# two blocks for each SM of an RTX 5080, an H100 PCIe, an H100 or H200, a B200, an RTX 5090
_STREAM = _BANDS | {
    "workers": Parameter(
        default=264, legal=(168, 228, 264, 296, 340), meaning="blocks that run at a time"
    )
}
_SPLIT_PARAMETERS = {
    "bm": replace(_BM, default=64, legal=(64, 96, 128)),
    "bn": replace(_BN, legal=(32, 48, 64, 128)),
    "tm": _TM,
    "tn": Parameter(
        default=16, legal=(8, 12, 16), meaning="columns of C per thread", sets=("thread_n",)
    ),
    "slices": Parameter(
        default=4, legal=(2, 4, 8), meaning="groups of warps that share k", sets=("slices",)
    ),
    "splits": Parameter(
        default=1,
        legal=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 132),
        meaning="blocks that share a tile",
    ),
    "stages": replace(_RING_OF_TILES, legal=(3, 4, 5)),
}
MOST_SHARED_BYTES = 227 * 1024  # of a block from sm_90 on, CUDA C++ Programming Guide
_SPLIT_FITS = (
    Constraint(
        text="tm and tn are 8 and 8, 8 and 16, or 12 and 12",
        holds=lambda p: (p["tm"], p["tn"]) in ((8, 8), (8, 16), (12, 12)),
    ),
    Constraint(
        text="8 tm must divide bm, and 4 tn divide bn, so that warps fill a tile",
        holds=lambda p: p["bm"] % (8 * p["tm"]) == 0 and p["bn"] % (4 * p["tn"]) == 0,
    ),
    Constraint(
        text="a block has at most 512 threads, with 128 registers each or more",
        holds=lambda p: (
            _split_tiling(p).threads_per_block <= (512 if p["tm"] * p["tn"] <= 64 else 256)
        ),
    ),
    Constraint(
        text="ring and sums must fit into the 227 KiB of shared memory of a block",
        holds=lambda p: _ring_or_sums_bytes(_split_tiling(p)) + 1024 <= MOST_SHARED_BYTES,
    ),
)
_SQUARE = Parameter(
    default=32,
    legal=(8, 16, 32),
    meaning="width of the square block of threads",
    sets=("block_m", "block_n"),
)


def _next(before: Variant, name: str, **changes: Any) -> Variant:
    """The rung after another: as that one, but for what is given."""
    rung, stem = before.rung + 1, name.replace("-", "_")
    own = {"file": f"{rung:02}_{stem}.cu", "entry": f"sgemm_{stem}", "preferences": ()}
    return replace(before, name=name, rung=rung, **{**own, **changes})


_ONE_BLOCK = Variant(
    name="one-block",
    rung=1,
    title="One block",
    idea="one thread per element, all in a single block",
    file="01_one_block.cu",
    entry="sgemm_one_block",
    max_extent=32,
    tile=partial(Tiling, block_m=32, block_n=32),
    warp=warps.one_thread_per_element,
)
_NAIVE_UNCOALESCED = _next(
    _ONE_BLOCK,
    "naive-uncoalesced",
    title="Naive, uncoalesced",
    idea="a grid of blocks; neighbouring threads own neighbouring rows",
    max_extent=None,
    parameters={"width": _SQUARE},
    rows_along_x=True,
    tile=Tiling,
    warp=warps.uncoalesced,
)
_NAIVE_COALESCED = _next(
    _NAIVE_UNCOALESCED,
    "naive-coalesced",
    title="Naive, coalesced",
    idea="neighbouring threads own neighbouring columns",
    rows_along_x=False,
    warp=warps.one_thread_per_element,
)
_TILED = _next(
    _NAIVE_COALESCED,
    "tiled",
    title="Tiled",
    idea="a block stages square tiles of A and B in shared memory",
    parameters={
        "tile": replace(
            _SQUARE,
            meaning="width of the square tiles and of the block",
            sets=(*_SQUARE.sets, "block_k"),
        )
    },
    tile=partial(Tiling, shared_load_a_width=4),
    warp=warps.coarsened,
)
_COARSENED_1D = _next(
    _TILED,
    "coarsened-1d",
    title="1D thread coarsening",
    idea="a thread computes TM elements of a column of C",
    flat_block=True,
    parameters={
        "bk": replace(_DEPTH, default=4, legal=(4, 8, 16)),
        "tm": replace(_TM, default=16, legal=(4, 8, 16), meaning="elements of C per thread"),
    },
    constraints=(
        Constraint(
            text="bk * tm must be at least 64, so that every thread has something to copy",
            holds=lambda p: p["bk"] * p["tm"] >= 64,
        ),
    ),
    tile=partial(Tiling, block_m=64, block_n=64, shared_load_a_width=4),
    warp=warps.coarsened,
)
_COARSENED_2D = _next(
    _COARSENED_1D,
    "coarsened-2d",
    title="2D thread coarsening",
    idea="a thread computes an 8x8 tile of C in registers",
    parameters={"bk": _DEPTH},
    constraints=(),
    tile=_TILE_2D,
    preferences=(Preference(),),
)
_VECTORIZED = _next(
    _COARSENED_2D,
    "vectorized",
    title="Vectorized",
    idea="float4 copies, A transposed in shared memory",
    multiple_of=4,
    tile=partial(_TILE_2D, global_width=4, shared_store_b_width=4),
    warp=warps.vectorized,
)
_CONFLICT_FREE = _next(
    _VECTORIZED,
    "conflict-free",
    title="Conflict-free",
    idea="layouts in shared memory that keep lanes off each other's banks",
    warp=warps.conflict_free,
)
_WARP_TILED = _next(
    _CONFLICT_FREE,
    "warp-tiled",
    title="Warp-tiled",
    idea="a warp owns a compact tile, its lanes laid out for merged reads",
    parameters={"bm": _BM, "bn": _BN, "bk": _DEPTH},
    warp=warps.warp_tiled,
)
_DOUBLE_BUFFERED = _next(
    _WARP_TILED,
    "double-buffered",
    title="Double-buffered",
    idea="the next tiles travel into registers while this phase computes",
    preferences=(Preference(),),
)
_ASYNC_COPY = _next(
    _DOUBLE_BUFFERED,
    "async-copy",
    title="Asynchronous copies",
    idea="a ring of tiles, copied past the registers; any shape without padding",
    multiple_of=1,
    since=80,
    parameters=_RING,
    constraints=(
        Constraint(
            text="bk * stages must be at most 64, so that the ring fits into shared memory",
            holds=lambda p: p["bk"] * p["stages"] <= 64,
        ),
    ),
    tile=_ASYNCHRONOUS,
    dynamic_shared_bytes=_ring_bytes,
    warp=warps.asynchronous,
)
_WIDE_THREAD_TILE = _next(
    _ASYNC_COPY,
    "wide-thread-tile",
    title="Wide thread tile",
    idea="8x16 elements of C per thread, in an order that reuses operands",
    parameters=_RING
    | {"fence": Parameter(default=0, legal=(0, 1), meaning="1: the compiler mixes no steps in k")},
    tile=partial(_ASYNCHRONOUS, thread_n=16),
    preferences=(Preference(parameters={"fence": 1}),),
)
_BULK_COPY = _next(
    _WIDE_THREAD_TILE,
    "bulk-copy",
    title="Bulk copies",
    idea="one thread has whole tiles copied; barriers in shared memory count their bytes",
    arguments=("tiles of A", "tiles of B", "C", *EXTENTS, *FACTORS),
    multiple_of=4,
    since=90,
    parameters=_STAGES,
    constraints=(),
    tile=_BULK,
    bulk_tiles=_bulk_tiles,
    warp=warps.bulk,
)
_FENCED = _next(
    _BULK_COPY,
    "fenced",
    title="Fenced",
    idea="an instruction that the compiler moves nothing across keeps operands in reuse",
)
_RASTERISED = _next(
    _FENCED,
    "rasterised",
    title="Rasterised",
    idea="blocks take tiles of C in bands, which share more in L2",
    parameters=_BANDS,
    order=lambda p: in_bands(p["band"]),
)
_STREAM_K = _next(
    _RASTERISED,
    "stream-k",
    title="Stream-K",
    idea="the tiles that fill no whole turn are dealt out by phases",
    arguments=(*_RASTERISED.arguments, "workspace"),
    parameters=_STREAM,
    tile=_STREAMED,
    order=lambda p: streamed(p["band"], p["workers"]),
    sharing=TileSharing(
        workspace_bytes=bytes_of_workers, ready_words=flags_of_workers, workers="workers"
    ),
    preferences=(Preference(share_of_peak=0.88),),
)
_SPLIT_K = _next(
    _STREAM_K,
    "split-k",
    title="Split-K",
    idea="warps of a block, and blocks, share a tile by k: for a small C",
    parameters=_SPLIT_PARAMETERS,
    tile=_SPLIT,
    constraints=_SPLIT_FITS,
    dynamic_shared_bytes=_ring_or_sums_bytes,
    order=lambda p: split(p["splits"]),
    sharing=TileSharing(
        workspace_bytes=bytes_of_splits, ready_words=flags_of_splits, splits="splits"
    ),
    preferences=(
        Preference(parameters={"bm": 128, "bn": 64, "stages": 4}, share_of_peak=0.82),
        Preference(parameters={"stages": 4}, share_of_peak=0.815),
        Preference(parameters={"bn": 64, "slices": 8, "stages": 4}, share_of_peak=0.8),
        Preference(parameters={"bn": 32, "tn": 8, "slices": 8, "stages": 5}, share_of_peak=0.65),
    ),
)
_TALL_THREAD_TILE = _next(
    replace(_STREAM_K, rung=_SPLIT_K.rung),
    "tall-thread-tile",
    title="Tall thread tiles",
    idea="ten rows per thread: fewer floats are read for each multiply-add",
    tile=_TALL,
    preferences=(Preference(share_of_peak=0.91),),
)
_REALIGNED = _next(
    _TALL_THREAD_TILE,
    "realigned",
    title="Realigned",
    idea="rows that bulk copies cannot take are first copied to where they can",
    arguments=(*_TALL_THREAD_TILE.arguments, "A", "B"),
    multiple_of=1,
    tile=partial(_TALL, narrows=True),
    warp=warps.realigned,
    order=lambda p: behind(p["workers"], streamed(p["band"], p["workers"])),
    sharing=TileSharing(
        workspace_bytes=bytes_with_copies,
        ready_words=flags_and_counts_of_copies,
        copies=realigned_copies,
        workers="workers",
    ),
    # copying A and B is one part in so many of multiplying them, or less
    preferences=(Preference(fewest_products=1024),),
)

LADDER: tuple[Variant, ...] = (
    _ONE_BLOCK,
    _NAIVE_UNCOALESCED,
    _NAIVE_COALESCED,
    _TILED,
    _COARSENED_1D,
    _COARSENED_2D,
    _VECTORIZED,
    _CONFLICT_FREE,
    _WARP_TILED,
    _DOUBLE_BUFFERED,
    _ASYNC_COPY,
    _WIDE_THREAD_TILE,
    _BULK_COPY,
    _FENCED,
    _RASTERISED,
    _STREAM_K,
    _SPLIT_K,
    _TALL_THREAD_TILE,
    _REALIGNED,
)

CPU = Reference(name="cpu", title="CPU", idea="SciPy's BLAS sgemm on the host")
CUBLAS = Reference(name="cublas", title="cuBLAS", idea="NVIDIA's library, float32 arithmetic")
BEST = Reference(
    name="best", title="Best", idea="the tuned rung and parameters for this shape and device"
)
REFERENCES: tuple[Reference, ...] = (BEST, CPU, CUBLAS)
