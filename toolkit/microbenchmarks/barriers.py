"""Cost of a barrier for the warps of a block, and for the load/store unit."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import FEW, MANY, REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median, each

COUNT = 32
BARRIERS = Probe(
    name="barriers",
    body="\n".join(["__syncthreads();"] * COUNT),
    opcode=r"BAR\.SYNC",
    count=COUNT,
)
STORES = 4  # of words without bank conflicts, before each barrier
BEHIND_STORES = Probe(
    name="barriers_behind_stores",
    setup="""
    __shared__ unsigned words[32 * 32];
    const unsigned to = unsigned(__cvta_generic_to_shared(words)) + 4 * threadIdx.x;""",
    body="\n".join(
        [
            *['asm volatile("st.volatile.shared.b32 [%0], %1;" :: "r"(to), "r"(round));'] * STORES,
            "__syncthreads();",
        ]
        * (COUNT // STORES)
    ),
    opcode=r"STS ",
    count=COUNT,
)
PROBES = (BARRIERS, BEHIND_STORES)


def _barrier(bench: Bench, on: tuple[int, int]) -> Median:
    """`on` are the warps of a block, and the blocks of each SM."""
    warps, per_sm = on
    blocks = 1 if per_sm == 1 else per_sm * bench.device.sm_count
    return bench.cycles(BARRIERS, warps=warps, blocks=blocks).scaled(1 / COUNT)


def _of_all(bench: Bench, probe: Probe, on: tuple[int, int], count: int) -> Median:
    """Cycles per barrier until the last block of an SM has ended: blocks are not served alike."""
    warps, per_sm = on
    blocks = per_sm * bench.device.sm_count
    samples = []
    for _ in range(REPEATS + 1):
        few, many = (
            int(bench.clocks(probe, warps=warps, blocks=blocks, rounds=rounds).spans.max())
            for rounds in (FEW, MANY)
        )
        samples.append((many - few) / (MANY - FEW) / count)
    return Median.of(samples[1:])  # the first warms the instruction caches


FULL_SM = ((2, 16), (4, 8), (4, 16), (8, 4), (8, 8), (16, 2), (16, 4), (32, 2))
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
    *each(
        "barriers_of_{on[0]}_warps_{on[1]}_blocks_cycles",
        "cycles per barrier of each block",
        "{on[1]} blocks on each SM, nothing between the barriers, until the last block ends",
        _of_all,
        probe=BARRIERS,
        on=FULL_SM,
        count=COUNT,
    ),
    *each(
        "barriers_behind_stores_of_{on[0]}_warps_{on[1]}_blocks_cycles",
        "cycles per barrier of each block",
        f"the same, {STORES} stores to shared memory before each barrier",
        _of_all,
        probe=BEHIND_STORES,
        on=FULL_SM,
        count=COUNT // STORES,
    ),
)
