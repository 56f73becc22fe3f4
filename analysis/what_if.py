"""What other tiles would do: intensity, ceiling, shared memory and occupancy, on any device.

Closed forms only. Two things are bounds: registers are at least what the accumulators and one
fragment of each operand take, so that occupancy is at most what stands here; and the ceiling takes
every global load from DRAM, as the source texts do, which caches lift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.access import Tiling, access_counts
from analysis.devices import Device
from analysis.errors import InputError
from analysis.intensity import intensity_of_loads
from analysis.occupancy import Limiter, occupancy
from analysis.problem import Gemm
from analysis.roofline import attainable

TILES = (1, 2, 4, 8, 16, 32)  # 33 x 33 threads are more than 1,024
BLOCKS = (32, 64, 128, 256)
THREADS = (1, 2, 4, 8, 16)
DEPTH = 8  # of a phase, for the block tiles: two fit into 48 KiB up to 256 x 256


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a tiling would do on a device.

    `attainable_flop_per_s` is under DRAM's roof for uncached loads and under FP32's. `occupancy`
    is at most this; it is None, and `reason` says why, where not even one block would fit.
    """

    tiling: Tiling
    threads_per_block: int
    shared_bytes: int
    least_registers: int
    flop_per_byte: float
    attainable_flop_per_s: float
    occupancy: float | None
    limiters: tuple[Limiter, ...] = ()
    reason: str = ""


def square_tile(tile: int) -> Tiling:
    """One element of C per thread, square tiles of A and B in shared memory."""
    return Tiling(block_m=tile, block_n=tile, block_k=tile)


def thread_tile(block: int, thread: int, depth: int = DEPTH) -> Tiling:
    """A square tile of C per block and per thread; raises InputError where they do not divide."""
    tiling = Tiling(block_m=block, block_n=block, block_k=depth, thread_m=thread, thread_n=thread)
    _ = tiling.threads_per_block
    return tiling


def least_registers(tiling: Tiling) -> int:
    """Accumulators, and what a step along K needs of A and B, per thread."""
    return tiling.thread_m * tiling.thread_n + tiling.thread_m + tiling.thread_n


def outcome(tiling: Tiling, problem: Gemm, device: Device) -> Outcome:
    """What the tiling would do for `problem` on `device`."""
    threads, registers = tiling.threads_per_block, least_registers(tiling)
    flop_per_byte = intensity_of_loads(access_counts(tiling, problem))
    fraction, limiters, reason = _occupancy(tiling, device, threads, registers)
    return Outcome(
        tiling=tiling,
        threads_per_block=threads,
        shared_bytes=tiling.shared_bytes,
        least_registers=registers,
        flop_per_byte=flop_per_byte,
        attainable_flop_per_s=attainable(
            device.fp32_flop_per_s, device.dram_bytes_per_s, flop_per_byte
        ),
        occupancy=fraction,
        limiters=limiters,
        reason=reason,
    )


def _occupancy(
    tiling: Tiling, device: Device, threads: int, registers: int
) -> tuple[float | None, tuple[Limiter, ...], str]:
    try:
        found = occupancy(
            device,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_bytes_per_block=tiling.shared_bytes,
        )
    except InputError as error:
        return None, (), str(error)
    return found.fraction, found.limiters, ""


def square_tiles(problem: Gemm, device: Device) -> tuple[Outcome, ...]:
    """Every width of a square tile."""
    return tuple(outcome(square_tile(tile), problem, device) for tile in TILES)


def thread_tiles(problem: Gemm, device: Device) -> tuple[tuple[Outcome, ...], ...]:
    """A row per tile of a block, a column per tile of a thread."""
    return tuple(
        tuple(outcome(thread_tile(block, thread), problem, device) for thread in THREADS)
        for block in BLOCKS
    )


def best(outcomes: Sequence[Sequence[Outcome]]) -> Outcome | None:
    """The outcome of the highest ceiling that fits, of equal ones that of the most occupancy."""
    fitting = [one for row in outcomes for one in row if one.occupancy is not None]
    return max(fitting, key=lambda o: (o.attainable_flop_per_s, o.occupancy or 0), default=None)
