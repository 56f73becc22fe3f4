"""What the estimates of the paths' times know: fitted constants, and loop rates of kernels.

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

    `python -m benchmarks.path_constants` fits them on the products of the law with even numbers,
    and evaluates them on the others (docs/decisions/0138-last-turns-and-ends.md).
    """

    late_start_s: float = 3.19e-07  # of the next launch, behind one of more blocks than FEW_BLOCKS
    launch_s: float = 2.19e-08
    pack_launch_s: float = 9.23e-07  # more than the bytes, of the launch that copies A and B
    sums_launch_s: float = 7.58e-07  # of the one that adds the sums of splits
    sums_wait_s: float = 9.06e-07  # of each time that it waits for sums
    first_clocks: float = 802.0  # of first copies and last stores, which nothing hides
    block_clocks: float = 245.0  # of each block of any_layout.cu
    bulk_block_clocks: float = 1190.0
    store_clocks: float = 0.214  # per element of a tile
    #: Of blocks side by side, over the warps that a block has on a scheduler: first copies, and per
    #: element of a tile last stores, which more warps hide.
    fill_clocks: float = 23.0
    exposed_store_clocks: float = 0.286
    later_turn_share: float = 0.0725  # of both, after the first turn: blocks end one after another
    exposed_float_clocks: float = 0.21  # more of them, where rows of C do not begin on 16 bytes
    slice_clocks: float = 0.103  # per element of a tile and slice
    copy_clocks: float = 0.0188  # per float that is copied by itself, not as a part of four
    along_clocks: float = 0.0389  # per float that is copied from rows along k
    #: How far the last blocks fill some SMs before others, after one turn: 1 is a whole turn. By
    #: the warps of a scheduler of a full SM, up to two, three and more: the fewer, the more do
    #: blocks of an SM end together and give their places to as many new ones.
    last_turn_shares: tuple[float, float, float] = (1.0, 0.609, 0.238)
    #: K of a block after which half of it counts: the longer, the more do blocks end apart.
    drift_k: float = 95.0
    #: How far blocks that leave schedulers idle slow each other down: 1 as if they shared them.
    idle_share: float = 0.126
    ticket_clocks: float = 3.01e+03
    ticket_wait_clocks: float = 393.0  # of each time that the last block waits for sums of others
    ticket_bytes_per_clock: float = 63.1  # of these sums
    stream_store_clocks: float = 1.16  # per element of a tile of streamed.cu
    worker_clocks: float = 11500.0
    sum_of_worker_clocks: float = 1840.0
    few_clocks: tuple[float, float] = (2560.0, 1920.0)  # where B is stored along n, and along k
    few_chunk_clocks: float = 133.0  # of the columns of A that are in shared memory at a time
    few_read_clocks: float = 1.4e03  # of the loads of B that a thread has on their way
    few_sm_bytes_per_clock: float = 26.0
    few_row_clocks: tuple[float, float] = (129.0, 450.0)  # per row: its part of A, and its sums
    few_share_of_peak: float = 0.206
    few_ticket_clocks: float = 3.45e03
    few_power: float = 4.28
    short_clocks: float = 1.6e03
    short_phase_clocks: float = 124.0
    short_load_clocks: float = 0.4  # per float that a block loads
    short_share_of_peak: float = 0.375
    short_store_clocks: float = 0.0665
    pack_share: float = 0.843  # of the bandwidth of DRAM
    dram_share: float = 0.871
    #: Clocks of a phase over those predicted, of each of `ANY_TILES`, `BULK_TILES`, STREAMED_ROWS.
    any_rates: tuple[float, ...] = (0.861, 0.886, 0.818, 0.894, 0.939, 0.961, 0.855, 0.947, 0.944, 0.885, 0.904, 0.865, 0.833, 0.9)
    bulk_rates: tuple[float, ...] = (1.02, 1.08, 1.02, 1.07, 1.08)
    streamed_rates: tuple[float, ...] = (1.12, 1.13)


CONSTANTS = Constants()


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Predicted clocks of a phase of an SM's blocks: with one block, and with `blocks` of them."""

    alone: float
    together: float
    blocks: int


# Predicted for an H200 at 1,980 MHz; clocks hardly depend on the device of an architecture. Those
# of tiles of any_layout.cu that are older than decision 131 are with the copies before it.
RATES = {
    "64x128x16/8x8x1": Rate(alone=1959, together=6637, blocks=4),
    "128x64x16/8x8x1": Rate(alone=2135, together=6682, blocks=4),
    "64x64x16/4x8x1": Rate(alone=1463, together=5879, blocks=6),
    "64x128x16/8x16x1": Rate(alone=3371, together=6308, blocks=4),
    "96x96x16/12x12x1": Rate(alone=3701, together=6602, blocks=4),
    "64x96x16/8x12x1": Rate(alone=2516, together=6542, blocks=6),
    "96x64x16/12x8x1": Rate(alone=2871, together=7626, blocks=6),
    "128x64x32/8x16x2": Rate(alone=3552, together=6523, blocks=2),
    "32x128x32/4x8x2": Rate(alone=2110, together=5761, blocks=3),
    "64x64x32/8x8x2": Rate(alone=2147, together=7126, blocks=4),
    "64x64x32/8x8x4": Rate(alone=2065, together=3628, blocks=2),
    "64x32x32/8x8x4": Rate(alone=1369, together=4004, blocks=4),
    "32x32x32/4x8x4": Rate(alone=962, together=3692, blocks=6),
    "32x32x64/4x8x8": Rate(alone=1426, together=3873, blocks=3),
    "112x64x64/14x8x4": Rate(alone=4705, together=4705, blocks=1),
    "128x64x64/8x16x4": Rate(alone=5117, together=5117, blocks=1),
    "64x64x64/8x16x8": Rate(alone=2880, together=2880, blocks=1),
    "64x32x64/8x8x8 bulk": Rate(alone=1670, together=1670, blocks=1),
    "96x48x64/12x12x8": Rate(alone=3097, together=3097, blocks=1),
}
STREAMED_SHARES = {8: 0.88, 10: 0.91}  # of the peak, rungs 16 and 18
