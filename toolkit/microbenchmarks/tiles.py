"""Copies, matrices, products and stores of tiles, as kernels of mma.sync have them side by side."""

from __future__ import annotations

import numpy as np

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import ONE_SM, WHERE, Bench
from toolkit.microbenchmarks.global_memory import Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("tiles.cu")
ROWS = 8  # of memory that a warp has to itself
STAGES, MATRIX_BYTES = 4, 512
FEW, MANY = 64, 320  # rounds
REPEATS = 3
PITCH = 2048
MACROS = {
    "COPIES": 0, "LOADS": 0, "PRODUCTS": 0, "STORES": 0, "ROW": 64, "PITCH": PITCH, "STEP": 32,
    "WIDTH": 8, "FIRST_LEVEL": 0, "BYTES": 16, "APART": 16, "PAD": 0,
}  # fmt: skip


def _round(bench: Bench, on: str = ONE_SM, warps: int = 8, **macros: int) -> Median:
    """Clocks of a round of all warps of an SM."""
    given = MACROS | {name.upper(): value for name, value in macros.items()}
    kernel = bench.kernel(SOURCE, "tiles", "", **given)
    blocks = bench.blocks(on)
    memory = bench.shared(Memory).zero(blocks * warps * ROWS * given["PITCH"])
    out = bench.gpu.allocate(16 * blocks * warps)
    of_copy = WARP_SIZE * (given["APART"] + given["BYTES"] * given["PAD"] // given["ROW"])
    copied = STAGES * max(1, given["COPIES"]) * of_copy
    dynamic = warps * max(copied, given["LOADS"] * MATRIX_BYTES)
    geometry = Geometry.of(blocks, WARP_SIZE * warps, dynamic)

    def clocks(rounds: int) -> float:
        launch = kernel.prepared(geometry, [out, memory, np.int32(rounds)])
        noted = bench.noted("tiles", launch, out, (blocks, warps, 2))
        return float(np.median(noted[:, :, 1].max(axis=1) - noted[:, :, 0].min(axis=1)))

    samples = [(clocks(MANY) - clocks(FEW)) / (MANY - FEW) for _ in range(REPEATS + 1)]
    return Median.of(samples[1:])


UNIT = "cycles per round and SM"
BENCHMARKS = (
    *each(
        "tile_{loads}_matrices_{copies}_copies_of_{row}_{on}_cycles",
        UNIT,
        "{loads} ldmatrix.x4 and {copies} cp.async.cg of rows of {row} bytes, 8 warps",
        _round,
        loads=(0, 8),
        copies=(1, 2, 4),
        row=(64, 128, 512),
        on=WHERE,
    ),
    *each(
        "tile_{loads}_matrices_{copies}_copies_of_{row}_pitch_{pitch}_cycles",
        UNIT,
        "the same, with rows {pitch} bytes apart",
        _round,
        loads=8,
        copies=(2, 4),
        row=64,
        pitch=(1024, 2176, 4096),
    ),
    *each(
        "tile_{loads}_matrices_{copies}_copies_by_l1_of_{row}_cycles",
        UNIT,
        "the same by cp.async.ca: L1 keeps the lines, and does not have them again",
        _round,
        loads=(0, 8),
        copies=(2, 4),
        row=(64, 128),
        first_level=(1,),
    ),
    *each(
        "tile_{loads}_matrices_{copies}_copies_of_{row}_padded_by_{pad}_cycles",
        UNIT,
        "{loads} ldmatrix.x4 and {copies} cp.async.cg of rows of {row} bytes, {pad} more bytes of "
        "shared memory between rows, 8 warps",
        _round,
        loads=(0, 4, 8),
        copies=(2, 4),
        row=(64, 128),
        pad=(0, 16, 32),
    ),
    *each(
        "tile_{loads}_matrices_{products}_products_{warps}_warps_cycles",
        UNIT,
        "{loads} ldmatrix.x4 and {products} HMMA, {warps} warps",
        _round,
        loads=(0, 8, 12, 16),
        products=(0, 32),
        warps=(4, 8, 16),
    ),
    *each(
        "tile_{loads}_matrices_{products}_products_{copies}_copies_cycles",
        UNIT,
        "{loads} ldmatrix.x4, {products} HMMA, {copies} cp.async.cg of rows of 64 bytes, 8 warps",
        _round,
        loads=8,
        products=(16, 32),
        copies=(2, 4),
        warps=(8,),
    ),
    *each(
        "tile_{loads}_matrices_{copies}_copies_of_{row}_{apart}_apart_cycles",
        UNIT,
        "{loads} ldmatrix.x4 and {copies} cp.async.cg of rows of {row} bytes, {apart} bytes of "
        "shared memory from lane to lane",
        _round,
        loads=(0, 8),
        copies=(2, 4),
        row=(64, 128),
        apart=(32, 64),
    ),
    *each(
        "tile_{loads}_matrices_{copies}_copies_by_l1_of_4_bytes_in_{row}_{apart}_apart_cycles",
        UNIT,
        "{loads} ldmatrix.x4 and {copies} cp.async.ca of 4 bytes in rows of {row} bytes, {apart} "
        "bytes of shared memory from lane to lane",
        _round,
        loads=(0, 8),
        copies=(4, 8),
        row=(16, 128),
        apart=(4, 32),
        bytes=4,
        first_level=1,
    ),
    *each(
        "tile_{products}_products_{copies}_copies_cycles",
        UNIT,
        "{products} HMMA and {copies} cp.async.cg of rows of 64 bytes, 8 warps",
        _round,
        products=32,
        copies=(1, 2, 4),
    ),
    *each(
        "tile_16_stores_of_{width}_step_{step}_pitch_{pitch}_{on}_cycles",
        UNIT,
        "16 stores, of {width} bytes per lane and 4 lanes per row, rows {pitch} bytes and "
        "columns {step} bytes apart, 8 warps",
        _round,
        stores=16,
        width=8,
        step=(32, 128),
        pitch=(2048, 4096),
        on=WHERE,
    ),
    *each(
        "tile_16_stores_of_{width}_step_{step}_{on}_cycles",
        UNIT,
        "the same, rows 2,048 bytes apart",
        _round,
        stores=16,
        width=4,
        step=(16, 128),
        on=WHERE,
    ),
)
