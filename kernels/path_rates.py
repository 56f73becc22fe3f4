"""Fitted constants and loop rates of kernels, for the estimates of the paths' times.

Loop rates, the clocks of a phase with one block on an SM and with as many as fit, are what the
model of an SM predicts for each kernel (`python -m benchmarks.path_rates`). `Constants` are what
neither they nor sizes know: starts of launches and blocks, rates of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.devices import DEVICES

TIMED_DEVICE = DEVICES["h200"].name  # on which the constants were fitted
DEFAULT_BANDWIDTH = 3.0e12  # of DRAM in bytes/s, where a device's is not known


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Fitted constants of the time of a path, besides loop rates. Clocks are of an SM.

    `python -m benchmarks.path_constants` fits them on the products of the law and on some of
    another seed (docs/decisions/0166-estimates-of-waits.md).
    """

    late_start_s: float = 2.96e-07  # of the next launch, behind one of more blocks than FEW_BLOCKS
    launch_s: float = 8.21e-08
    pack_launch_s: float = 1.07e-06  # more than the bytes, of the launch that copies A and B
    sums_launch_s: float = 3.29e-07  # of the one that adds the sums of splits
    sums_wait_s: float = 1.04e-06  # of each time that it waits for sums
    first_clocks: float = 796.0  # of first copies and last stores, which nothing hides
    block_clocks: float = 357.0  # of each block of any_layout.cu
    bulk_block_clocks: float = 1.4e03
    store_clocks: float = 0.176  # per element of a tile
    #: Per element of a tile, over the warps that a block has on a scheduler: blocks side by side
    #: wait for their stores together, which more warps hide.
    exposed_store_clocks: float = 0.226
    #: Clocks of a k after the first turn, relative to those in it, of tiles with more than two
    #: warps on a scheduler: their blocks do not begin together any more.
    later_loop: float = 0.938
    exposed_float_clocks: float = 0.0996  # more of them, where rows of C do not begin on 16 bytes
    slice_clocks: float = 0.0958  # per element of a tile and slice
    copy_clocks: float = 0.0481  # per float that is copied by itself, not as a part of four
    along_clocks: float = 0.0429  # per float that is copied from rows along k
    #: How far the last blocks fill some SMs before others, after one turn: 1 is a whole turn. By
    #: the warps of a scheduler of a full SM, up to two, three and more: the fewer, the more do
    #: blocks of an SM end together and give their places to as many new ones.
    last_turn_shares: tuple[float, float, float] = (1.0, 1.0, 0.387)
    #: K of a block after which half of it counts: the longer, the more do blocks end apart.
    drift_k: float = 63.7
    ticket_clocks: float = 2.99e03
    ticket_wait_clocks: float = 428.0  # of each time that the last block waits for sums of others
    split_clocks: float = 0.083  # per element of a tile: sums that are left and added
    stream_store_clocks: float = 0.904  # per element of a tile of streamed.cu
    worker_clocks: float = 1.34e04
    sum_of_worker_clocks: float = 2.39e03
    few_clocks: tuple[float, float] = (3220.0, 2240.0)  # where B is stored along n, and along k
    few_chunk_clocks: float = 472.0  # of the columns of A that are in shared memory at a time
    few_read_clocks: float = 733.0  # of the loads of B that a thread has on their way
    few_sm_bytes_per_clock: float = 47.7
    few_row_clocks: tuple[float, float] = (109.0, 391.0)  # per row: its part of A, and its sums
    few_beside: float = 0.185  # share of these of another block on the SM
    few_share_of_peak: float = 0.323
    few_ticket_clocks: float = 2.6e03
    few_power: float = 2.22  # waiting, reading, adding and DRAM overlap: a sum of their powers
    short_clocks: float = 1.15e03
    short_phase_clocks: float = 407.0
    short_load_clocks: float = 0.358  # per float that a block loads
    short_store_clocks: float = 0.291  # per element of a tile
    pack_share: float = 0.854  # of the bandwidth of DRAM
    dram_share: float = 0.871
    #: Clocks of a phase over those predicted, of each of `ANY_TILES`, `BULK_TILES`, STREAMED_ROWS.
    any_rates: tuple[float, ...] = (
        *(0.954, 0.948, 0.874, 0.968, 0.938, 0.953, 0.934),
        *(0.945, 0.858, 0.906, 0.965, 0.856, 0.937, 1.06),
    )
    bulk_rates: tuple[float, ...] = (1.03, 1.08, 1.01, 1.04, 1.05)
    streamed_rates: tuple[float, ...] = (1.12, 1.15)


CONSTANTS = Constants()


# Predicted clocks of a phase of an SM's blocks, of one, two, ... as many as fit, for an H200 at
# 1,980 MHz; clocks hardly depend on the device of an architecture.
RATES: dict[str, tuple[int, ...]] = {
    "64x128x16/8x8x1": (1872, 3342, 4601, 5858),
    "128x64x16/8x8x1": (1995, 3463, 4710, 6150),
    "64x64x16/4x8x1": (1244, 2091, 2869, 3726, 4638, 5516),
    "64x128x16/8x16x1": (3132, 3373, 5735, 5699),
    "96x96x16/12x12x1": (3466, 3539, 6268, 6266),
    "64x96x16/8x12x1": (2469, 2633, 4362, 4439, 6463, 6552),
    "96x64x16/12x8x1": (2567, 2799, 4662, 4707, 6721, 6866),
    "128x64x32/8x16x2": (3562, 6382),
    "32x128x32/4x8x2": (2282, 4243, 6006),
    "64x64x32/8x8x2": (2147, 4056, 5262, 7026),
    "64x64x32/8x8x4": (1901, 3412),
    "64x32x32/8x8x4": (1289, 2309, 3014, 3973),
    "32x32x32/4x8x4": (830, 1335, 1680, 2158, 2713, 3138),
    "32x32x64/4x8x8": (1438, 2302, 3296),
    "112x64x64/14x8x4": (4705,),
    "128x64x64/8x16x4": (5117,),
    "64x64x64/8x16x8": (2880,),
    "64x32x64/8x8x8 bulk": (1670,),
    "96x48x64/12x12x8": (3097,),
}
STREAMED_SHARES = {8: 0.88, 10: 0.91}  # of the peak, rungs 16 and 18
