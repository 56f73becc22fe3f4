"""Rate of L2 where blocks of a cluster copy for each other: who copies, and how much of it."""

from __future__ import annotations

from statistics import median

import numpy as np

from analysis.errors import UnavailableError
from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import WHERE, Bench
from toolkit.microbenchmarks.global_memory import KIB, MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("cluster_copies.cu")
REGION_BYTES = 16 * MIB  # of all rings together: L2 holds it
FLIGHT = 4  # steps in flight
FEW, MANY = 64, 192  # steps
REPEATS = 5
LARGEST_GPC = 16  # SMs of the smallest GPC: clusters of 4 fill no more of them on all GPCs
ALONE_BYTES = 117 * KIB  # of shared memory: so that a block has an SM of its own


def _rate(bench: Bench, cluster: int, common: int, own: int, is_split: int, on: str) -> Median:
    """Bytes per clock that an SM receives: the median of the SMs.

    `common`, `own`: KiB that each block receives in a step, for the cluster and for itself alone.
    """
    blocks = _blocks(bench, cluster, on)
    common, own = common * KIB, own * KIB
    rings = max(1, REGION_BYTES // (blocks * (common // cluster + own)))  # in steps
    common_ring, own_ring = rings * common, rings * own
    macros = {"CLUSTER": cluster, "COMMON": common, "OWN": own, "IS_SPLIT": is_split}
    kernel = bench.kernel(SOURCE, "cluster_copies", "a", FLIGHT=FLIGHT, BLOCKS=blocks, **macros)
    room = max(ALONE_BYTES, FLIGHT * (common + own))
    geometry = Geometry.of(blocks, WARP_SIZE, room)
    out = bench.gpu.allocate(16 * blocks)
    memory = bench.shared(Memory).zero(2 * REGION_BYTES)

    def clocks(steps: int) -> float:
        rings = map(np.uint32, (common_ring, own_ring))
        launch = kernel.prepared(geometry, [out, memory, *rings, np.int32(steps)])
        noted = bench.noted("cluster_copies", launch, out, (blocks, 2))
        return float(median(noted[:, 0].tolist()))

    samples = [
        (common + own) * (MANY - FEW) / (clocks(MANY) - clocks(FEW)) for _ in range(REPEATS + 1)
    ]
    return Median.of(samples[1:])


def _blocks(bench: Bench, cluster: int, on: str) -> int:
    """Blocks of one cluster, or of as many as surely are resident with a block on each SM."""
    if on == WHERE[0]:
        return cluster
    sms = bench.device.sm_count
    if cluster > 2:  # a GPC has 16 or 18 SMs
        sms = sms * 6 // 7
    if sms < cluster:
        raise UnavailableError(f"clusters of {cluster} blocks need {cluster} SMs")
    return sms // cluster * cluster


UNIT = "bytes per cycle and SM"
BENCHMARKS = (
    *each(
        "cluster_{cluster}_alone_{own}_{on}_bytes_per_cycle",
        UNIT,
        "{own} KiB that each block copies for itself in a step, four steps in flight",
        lambda bench, cluster, own, on: _rate(bench, cluster, 0, own, 0, on),
        cluster=(1, 2),
        own=(16, 48),
        on=WHERE,
    ),
    *each(
        "cluster_{cluster}_of_first_{common}_and_own_{own}_{on}_bytes_per_cycle",
        UNIT,
        "received: {common} KiB that the first of {cluster} blocks copies for all, and {own} KiB "
        "that each copies for itself",
        lambda bench, cluster, common, own, on: _rate(bench, cluster, common, own, 0, on),
        cluster=(2, 4),
        common=(32,),
        own=(0, 16),
        on=WHERE,
    ),
    *each(
        "cluster_{cluster}_of_each_{common}_and_own_{own}_{on}_bytes_per_cycle",
        UNIT,
        "received: {common} KiB, of which each of {cluster} blocks copies its part for all, and "
        "{own} KiB that each copies for itself",
        lambda bench, cluster, common, own, on: _rate(bench, cluster, common, own, 1, on),
        cluster=(2, 4),
        common=(32,),
        own=(0, 16),
        on=WHERE,
    ),
)
