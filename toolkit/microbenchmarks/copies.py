"""Copies past L1 to rows of shared memory: plain, padded, shifted and with a swizzle."""

from __future__ import annotations

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import ONE_SM, Bench
from toolkit.microbenchmarks.global_memory import Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("copies.cu")
WARPS, COPIES, PITCH = 8, 8, 2048
FEW, MANY = 64, 256  # rounds
REPEATS = 3


def _copy(bench: Bench, row: int, pad: int = 0, shift: int = 0, swizzle: int = 0) -> Median:
    """Clocks of an SM per copy of a warp."""
    pitch, rows = row + pad, COPIES * 512 // row
    kernel = bench.kernel(
        SOURCE, "copies", "", ROW=row, SHARED_PITCH=pitch, SHIFT=shift, SWIZZLE=swizzle
    )
    memory = bench.shared(Memory).zero(WARPS * rows * PITCH)
    out = bench.gpu.allocate(16 * WARPS)
    dynamic = WARPS * (rows * pitch + 128)
    geometry = Geometry.of(bench.blocks(ONE_SM), WARP_SIZE * WARPS, dynamic)

    def clocks(rounds: int) -> float:
        launch = kernel.prepared(geometry, [out, memory, np.int32(rounds)])
        noted = bench.noted("copies", launch, out, (WARPS, 2))
        return float(noted[:, 1].max() - noted[:, 0].min())

    per_copy = (MANY - FEW) * WARPS * COPIES
    samples = [(clocks(MANY) - clocks(FEW)) / per_copy for _ in range(REPEATS + 1)]
    return Median.of(samples[1:])


UNIT = "cycles per copy of a warp and SM"
BENCHMARKS = (
    *each(
        "copy_rows_of_{row}_padded_by_{pad}_cycles",
        UNIT,
        "cp.async.cg of 16 bytes a lane to rows of {row} bytes, padded by {pad}",
        _copy,
        row=(64, 128),
        pad=(0, 16, 32),
    ),
    *each(
        "copy_rows_of_{row}_shifted_by_{shift}_cycles",
        UNIT,
        "the same, rows not padded, the first one {shift} bytes behind a line",
        _copy,
        row=(64, 128),
        shift=(16, 32),
    ),
    *each(
        "copy_rows_of_{row}_with_swizzle_{swizzle}_cycles",
        UNIT,
        "the same, the pieces of 16 bytes of each row exclusive-ored with its number",
        _copy,
        row=(64, 128),
        swizzle=(1,),
    ),
)
