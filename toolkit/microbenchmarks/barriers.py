"""Cost of a barrier for the warps of a block."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median, each

COUNT = 32
BARRIERS = Probe(
    name="barriers",
    body="\n".join(["__syncthreads();"] * COUNT),
    opcode=r"BAR\.SYNC",
    count=COUNT,
)
PROBES = (BARRIERS,)


def _barrier(bench: Bench, on: tuple[int, int]) -> Median:
    """`on` are the warps of a block, and the blocks of each SM."""
    warps, per_sm = on
    blocks = 1 if per_sm == 1 else per_sm * bench.device.sm_count
    return bench.cycles(BARRIERS, warps=warps, blocks=blocks).scaled(1 / COUNT)


BENCHMARKS = (
    *each(
        "barrier_{on[0]}_warps_cycles",
        "cycles",
        "one block, nothing between the barriers",
        _barrier,
        on=tuple((warps, 1) for warps in (1, 2, 4, 8, 16, 32)),
    ),
    *each(
        "barrier_{on[0]}_warps_{on[1]}_blocks_cycles",
        "cycles",
        "{on[1]} blocks per SM at a time, on all SMs",
        _barrier,
        on=((4, 2), (4, 4), (4, 8), (8, 2), (8, 4), (8, 8), (16, 2), (32, 2)),
    ),
)
