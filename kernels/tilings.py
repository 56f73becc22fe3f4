"""Tilings of the rungs, and the parameters that set their fields.

The compiler merges four neighbouring reads of shared memory (`shared_load_a_width`).
"""

from __future__ import annotations

from functools import partial

from analysis.access import TensorProducts, Tiling
from analysis.problem import FLOAT_BYTES
from kernels.variant import BulkTiles, Constraint, Parameters, RungParameter, tiling_of

BULK_DEPTH = 32  # rows of A of 128 bytes, the longest that a bulk copy swizzles
SPLIT_DEPTH = 64  # two bulk copies per phase: half as many phases
MOST_SHARED_BYTES = 227 * 1024  # of a block from sm_90 on, CUDA C++ Programming Guide

PER_THREAD_8X8 = partial(
    Tiling,
    block_m=128,
    block_n=128,
    thread_m=8,
    thread_n=8,
    shared_load_a_width=4,
    shared_load_b_width=4,
)
VECTORIZED = partial(PER_THREAD_8X8, global_width=4, shared_store_b_width=4)
ASYNCHRONOUS = partial(
    PER_THREAD_8X8, global_width=4, global_load_a_width=1, asynchronous=True, narrows=True
)
TF32_PARTS = partial(
    PER_THREAD_8X8,
    block_k=32,
    global_width=4,
    asynchronous=True,
    narrows=True,
    # rounded parts of 11 bits leave 2^-23 of a and of b, and small * small is 2^-22
    tensor=TensorProducts(format="TF32", products=3, warp_m=64, warp_n=32, relative_error=2**-21),
)
FP16_PARTS = partial(
    PER_THREAD_8X8,
    block_k=32,
    global_width=4,
    narrows=True,
    shared_store_a_width=2,
    stages=2,
    # high + low leaves 2^-22 of what is large in its row, and low * low is 2^-22
    tensor=TensorProducts(
        format="FP16", products=3, warp_m=64, warp_n=32, relative_error=3 * 2**-22, is_scaled=True
    ),
)
BULK = partial(PER_THREAD_8X8, block_k=BULK_DEPTH, thread_n=16, global_width=4, bulk=True)
SPLIT = partial(BULK, block_k=SPLIT_DEPTH, leaves_sums=True)


def bulk_tiles(tiling: Tiling) -> BulkTiles:
    """Tiles of A and B of one bulk copy each."""
    return BulkTiles(
        a=(tiling.block_m, BULK_DEPTH),
        b=(BULK_DEPTH, tiling.block_n),
        swizzle_a=FLOAT_BYTES * BULK_DEPTH,
    )


def ring_bytes(tiling: Tiling) -> int:
    """Bytes of the tiles of A and B of all stages."""
    return tiling.stages * tiling.shared_bytes


def scaled_ring_bytes(tiling: Tiling) -> int:
    """Bytes of the ring with a scale for each row of a tile of A and column of one of B."""
    return ring_bytes(tiling) + tiling.stages * FLOAT_BYTES * (tiling.block_m + tiling.block_n)


def ring_or_sums_bytes(tiling: Tiling) -> int:
    """Bytes of the ring, or of the partial sums of all slices, which later take its place."""
    sums_bytes = FLOAT_BYTES * tiling.block_m * tiling.block_n * tiling.slices
    return max(ring_bytes(tiling), sums_bytes)


# Parameters of several rungs. Those that are functions get their values from the rung.
WIDTH = RungParameter(
    default=32,
    legal=(8, 16, 32),
    meaning="width of the square block of threads",
    sets=("block_m", "block_n"),
)
block_rows = partial(RungParameter, meaning="rows of C per block", sets=("block_m",))
block_columns = partial(RungParameter, meaning="columns of C per block", sets=("block_n",))
phase_depth = partial(RungParameter, meaning="depth of a phase", sets=("block_k",))
ring_stages = partial(RungParameter, meaning="phases in shared memory at a time", sets=("stages",))
BAND = RungParameter(default=8, legal=(4, 8, 16), meaning="rows of tiles of a band")
# two blocks per SM of an RTX 5080, an H100 PCIe, an H100 or H200, a B200, an RTX 5090
WORKERS = RungParameter(
    default=264, legal=(168, 228, 264, 296, 340), meaning="blocks that run at a time"
)

RING_FITS = Constraint(
    text="bk * stages must be at most 64, so that the ring fits into shared memory",
    holds=lambda p: p["bk"] * p["stages"] <= 64,
)

# The constraints of the split rung need the tiling that its parameters set.
SPLIT_PARAMETERS = {
    "bm": block_rows(default=64, legal=(64, 96, 128)),
    "bn": block_columns(default=128, legal=(32, 48, 64, 128)),
    "tm": RungParameter(
        default=8, legal=(8, 12), meaning="rows of C per thread", sets=("thread_m",)
    ),
    "tn": RungParameter(
        default=16, legal=(8, 12, 16), meaning="columns of C per thread", sets=("thread_n",)
    ),
    "slices": RungParameter(
        default=4, legal=(2, 4, 8), meaning="groups of warps that share k", sets=("slices",)
    ),
    "splits": RungParameter(
        default=1,
        legal=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 132),
        meaning="blocks that share a tile",
    ),
    "stages": ring_stages(default=3, legal=(3, 4, 5)),
}


def _split_tiling(p: Parameters) -> Tiling:
    return tiling_of(SPLIT, SPLIT_PARAMETERS, p)


SPLIT_CONSTRAINTS = (
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
        holds=lambda p: ring_or_sums_bytes(_split_tiling(p)) + 1024 <= MOST_SHARED_BYTES,
    ),
)
