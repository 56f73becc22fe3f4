"""Rate of L2 where several SMs read the same lines, at the same time or one after another."""

from __future__ import annotations

from statistics import median

import numpy as np

from analysis.errors import UnavailableError
from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import KIB, MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("l2_sharing.cu")
REGION_BYTES = 33 * MIB // 2  # of all groups together: L2 holds it
FLIGHT = 4  # bulk copies in flight
PIECE_BYTES = 16 * KIB  # of a bulk copy
STEP_BYTES = 64 * KIB  # that a block has in flight
FEW_BYTES, MANY_BYTES = 2 * MIB, 6 * MIB  # that a block reads
REPEATS = 5


def _rate(
    bench: Bench,
    sharers: int,
    *,
    entry: str = "loads",
    lag: int = 0,
    delay: int = 0,
    multicast: int = 1,
    is_apart: bool = False,
    threads: int = 1024,
    region: int = REGION_BYTES,
) -> Median:
    """Bytes per clock that an SM reads: the median of the SMs."""
    sms = bench.device.sm_count
    groups = sms // sharers
    if not groups:
        raise UnavailableError(f"{sharers} blocks on SMs of their own need {sharers} SMs")
    blocks = groups * sharers
    ring = region // groups // STEP_BYTES * STEP_BYTES
    is_copy = entry == "copies"
    step = PIECE_BYTES if is_copy else 64 * threads
    kernel = bench.kernel(SOURCE, entry, "a", FLIGHT=FLIGHT, MULTICAST=multicast, BLOCKS=blocks)
    geometry = Geometry.of(
        blocks, WARP_SIZE if is_copy else threads, FLIGHT * PIECE_BYTES * is_copy
    )
    out = bench.gpu.allocate(16 * blocks)
    memory = bench.shared(Memory).zero(groups * ring)

    def clocks(size: int) -> float:
        numbers = (sharers, groups * is_apart, lag * STEP_BYTES, delay, size // step)
        launch = kernel.prepared(geometry, [out, memory, np.uint32(ring), *map(np.int32, numbers)])
        noted = bench.noted(entry, launch, out, (blocks, 2))
        return float(median(noted[:, 0].tolist()))

    samples = [
        (MANY_BYTES - FEW_BYTES) / (clocks(MANY_BYTES) - clocks(FEW_BYTES))
        for _ in range(REPEATS + 1)
    ]
    return Median.of(samples[1:])


UNIT = "bytes per cycle and SM"
SHARERS = (1, 2, 3, 4, 6, 12, 33, 66, 132)
FEWER_SHARERS = (1, 2, 4, 12, 33, 132)
BENCHMARKS = (
    *each(
        "l2_shared_{sharers}_bytes_per_cycle",
        UNIT,
        "{sharers} neighbouring blocks read the same lines in step, 16.5 MiB in all, 64 KiB "
        "of each in flight",
        _rate,
        sharers=SHARERS,
    ),
    *each(
        "l2_shared_{sharers}_apart_bytes_per_cycle",
        UNIT,
        "the same by {sharers} blocks that are far apart in the grid",
        _rate,
        sharers=SHARERS[1:-1],
        is_apart=True,
    ),
    *each(
        "l2_shared_{sharers}_lag_{lag}_bytes_per_cycle",
        UNIT,
        "{sharers} blocks read the same lines, each {lag} times 64 KiB behind the next",
        _rate,
        sharers=(2, 4, 12, 132),
        lag=(1, 2, 4),
    ),
    *each(
        "l2_shared_{sharers}_delay_{delay}_bytes_per_cycle",
        UNIT,
        "{sharers} blocks read the same lines, each begins {delay} clocks after the one before",
        _rate,
        sharers=(2, 4),
        delay=(100, 300, 1000, 3000),
    ),
    *each(
        "l2_shared_{sharers}_threads_{threads}_bytes_per_cycle",
        UNIT,
        "{sharers} blocks of {threads} threads read the same lines in step, 64 bytes of each "
        "thread in flight",
        _rate,
        sharers=(1, 4, 12, 132),
        threads=(256, 512),
    ),
    *each(
        "l2_shared_{sharers}_region_{region}_bytes_per_cycle",
        UNIT,
        "{sharers} blocks read the same lines in step, {region} bytes in all",
        _rate,
        sharers=(1, 4, 132),
        region=(33 * MIB // 4, 33 * MIB),
    ),
    *each(
        "l2_shared_{sharers}_copies_bytes_per_cycle",
        UNIT,
        "{sharers} neighbouring blocks copy the same 16 KiB in step, four copies of each in flight",
        _rate,
        sharers=FEWER_SHARERS,
        entry=("copies",),
    ),
    *each(
        "l2_shared_{sharers}_copies_lag_{lag}_bytes_per_cycle",
        UNIT,
        "{sharers} blocks copy the same bytes, each {lag} times 64 KiB behind the next",
        _rate,
        sharers=(2, 4, 132),
        lag=(1, 2),
        entry=("copies",),
    ),
    *each(
        "l2_shared_{sharers}_multicast_{multicast}_bytes_per_cycle",
        UNIT,
        "clusters of {multicast}, each copies for all of them; {sharers} blocks the same bytes",
        _rate,
        sharers=(2, 4, 12, 132),
        multicast=(2,),
        entry=("copies",),
    ),
)
