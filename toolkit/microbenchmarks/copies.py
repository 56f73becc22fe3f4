"""Copies past L1 to rows of shared memory: plain, padded, shifted, swizzled and of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.gpu.context import LoadedKernel
from toolkit.microbenchmarks.bench import ONE_SM, WHERE, Bench
from toolkit.microbenchmarks.global_memory import Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("copies.cu")
WARPS, COPIES, PITCH = 8, 8, 2048
TURNS = 8  # rounds until the same lines are copied again: more than are in flight
FEW, MANY = 64, 256  # rounds
REPEATS = 3
THREADS = WARP_SIZE * WARPS


def _copy(
    bench: Bench,
    row: int,
    pad: int = 0,
    shift: int = 0,
    swizzle: int = 0,
    lane: int = 16,
    on: str = ONE_SM,
) -> Median:
    """Clocks of an SM per copy of a warp. `lane`: bytes of a row that a lane copies."""
    pitch, rows = row + pad, COPIES * 512 // row
    layout = {"ROW": row, "SHARED_PITCH": pitch, "SHIFT": shift, "SWIZZLE": swizzle}
    kernel = bench.kernel(SOURCE, "copies", "", **layout, LANE_BYTES=lane, TURNS=TURNS)
    memory = bench.shared(Memory).zero(bench.blocks(on) * WARPS * rows * PITCH)
    dynamic = WARPS * (rows * pitch + 128)
    return _clocks(bench, kernel, memory, Geometry.of(bench.blocks(on), THREADS, dynamic))


def _clocks(bench: Bench, kernel: LoadedKernel, memory: Any, geometry: Geometry) -> Median:
    """Clocks of an SM per copy of a warp: of the rounds between FEW and MANY."""
    warps = geometry.blocks * WARPS
    out = bench.gpu.allocate(16 * warps)

    def clocks(rounds: int) -> float:
        launch = kernel.prepared(geometry, [out, memory, np.int32(rounds)])
        noted = bench.noted("copies", launch, out, (geometry.blocks, WARPS, 2))
        return float(np.median(noted[:, :, 1].max(axis=1) - noted[:, :, 0].min(axis=1)))

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
    *each(
        "copy_rows_of_{row}_padded_by_{pad}_{on}_cycles",
        UNIT,
        "cp.async.cg of 16 bytes a lane to rows of {row} bytes, padded by {pad}",
        _copy,
        row=(32, 64, 128),
        pad=(0, 32),
        on=WHERE,
    ),
    *each(
        "copy_rows_of_128_by_lanes_of_{lane}_padded_by_{pad}_{on}_cycles",
        UNIT,
        "the same, rows of 128 bytes, of which a lane copies {lane} in copies that follow each "
        "other",
        _copy,
        row=(128,),
        lane=(32, 64, 128),
        pad=(0, 16),
        on=WHERE,
    ),
)
