"""Tensor cores by wgmma (sm_90a): clocks between instructions, alone, and how many are in flight.

Also what shared memory leaves for other loads beside them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from toolkit.microbenchmarks.bench import LANES, REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median, each, values

NS = (8, 32, 64, 128, 256)
SOURCES = ("shared", "registers")  # where A comes from
GROUP = 128  # threads
FEW, MANY = 8, 24  # instructions of a group; the difference leaves the wait out
MOST_IN_FLIGHT = 12
LOADS = 16  # of shared memory in a round beside products; they end before these

# A tile of zeros, since the clocks do not depend on the numbers.
_SETUP = """
    extern __shared__ __align__(1024) char tile[];
    for (int i = threadIdx.x; i < 49152 / 4; i += blockDim.x) ((unsigned*)tile)[i] = 0;
    const unsigned base = (unsigned)__cvta_generic_to_shared(tile) & 0x3ffff;
    const unsigned long long of_a = base >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
    const unsigned long long of_b = of_a + (16384 >> 4);
    float d[%d]; for (float& x : d) x = offsets[lane];
    unsigned a0 = offsets[lane], a1 = a0, a2 = a0, a3 = a0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();"""
_KEEP = "for (float x : d) kept ^= __float_as_uint(x); kept ^= a0;"
SHARED_BYTES = 49152


def product(n: int, source: str) -> str:
    """One wgmma of 64 x n x 16 halves, as a statement."""
    sums = n // 2
    names = ", ".join(f"%{k}" for k in range(sums))
    outputs = ", ".join(f'"+f"(d[{k}])' for k in range(sums))
    if source == "shared":
        operands, inputs, scales = f"%{sums}, %{sums + 1}", '"l"(of_a), "l"(of_b)', "1, 1, 1, 0, 0"
    else:
        registers = ", ".join(f"%{sums + k}" for k in range(4))
        operands = f"{{{registers}}}, %{sums + 4}"
        inputs = '"r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(of_b)'
        scales = "1, 1, 1, 0"
    return (
        f'asm volatile("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{names}}}, '
        f'{operands}, {scales};" : {outputs} : {inputs});'
    )


BEGIN = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
COMMIT = 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'


def wait(left: int) -> str:
    return f'asm volatile("wgmma.wait_group.sync.aligned {left};" ::: "memory");'


def _probe(n: int, source: str, count: int) -> Probe:
    """Groups of `count` products, each waited for."""
    return Probe(
        name=f"wgmma_{n}_{source}_{count}",
        setup=_SETUP % (n // 2),
        body="\n".join([BEGIN, *[product(n, source)] * count, COMMIT, wait(0)]),
        keep=_KEEP,
        opcode="HGMMA",
        suffix="a",
        threads=2 * GROUP,
        count=count,
    )


def _beside(n: int, source: str) -> Probe:
    """Warps 4 to 7 load words of shared memory, for as long as the first four multiply."""
    loads = "\n".join(
        f'asm volatile("ld.volatile.shared.b32 %0, [%1 + {4096 + 128 * k}];" '
        f': "=r"(v{k % 8}) : "r"(base + 4 * lane));'
        for k in range(LOADS)
    )
    products = "\n".join([BEGIN, *[product(n, source)] * MANY, COMMIT, wait(0)])
    registers = ", ".join(f"v{k} = 0" for k in range(8))
    return Probe(
        name=f"wgmma_{n}_{source}_beside_loads",
        setup=_SETUP % (n // 2) + f" unsigned {registers};",
        # a shuffle tells the compiler that all lanes agree, or it waits for every product
        body=f"if (__shfl_sync(~0u, warp, 0) < 4) {{ {products} }} else {{ {loads} }}",
        keep=_KEEP + " kept ^= v0 ^ v1 ^ v2 ^ v3 ^ v4 ^ v5 ^ v6 ^ v7;",
        opcode="HGMMA",
        suffix="a",
        threads=2 * GROUP,
        count=MANY,
    )


def _issued(n: int) -> Probe:
    """Groups of growing length: clocks until the last product of each was issued, in `memory`."""
    parts = []
    for count in range(1, MOST_IN_FLIGHT + 1):
        products = "\n".join([product(n, "shared")] * count)
        parts.append(
            f"{{ {BEGIN} const long long from = clock64(); {products} "
            f"const long long until = clock64(); {COMMIT} {wait(0)} "
            f"if (threadIdx.x == 0) ((long long*)memory)[{count - 1}] = until - from; }}"
        )
    return Probe(
        name=f"wgmma_{n}_issued",
        setup=_SETUP % (n // 2),
        body="\n".join(parts),
        keep=_KEEP,
        opcode="HGMMA",
        suffix="a",
        threads=2 * GROUP,
        count=MOST_IN_FLIGHT * (MOST_IN_FLIGHT + 1) // 2,
    )


GROUPS = {
    (n, source, count): _probe(n, source, count)
    for n in NS
    for source in SOURCES
    for count in (1, FEW, MANY)
}
BESIDE = {(n, source): _beside(n, source) for n in (64, 256) for source in SOURCES}
ISSUED = _issued(64)
OVERHEAD = {
    name: Probe(
        name=f"wgmma_{name}",
        setup=_SETUP % 4,
        body="\n".join([line] * LANES),
        keep=_KEEP,
        opcode=opcode,
        count=LANES,
        suffix="a",
        threads=2 * GROUP,
    )
    for name, line, opcode in (
        ("fence", BEGIN, "WARPGROUP.ARRIVE"),
        ("proxy_fence", 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");', "FENCE"),
    )
}
PROBES = (*GROUPS.values(), *BESIDE.values(), ISSUED, *OVERHEAD.values())


@cache
def _how(warps: int) -> dict[str, Any]:
    return {"warps": warps, "dynamic_shared_bytes": SHARED_BYTES, "repeats": 3}


def _interval(bench: Bench, n: int, source: str) -> Median:
    """Clocks from product to product, of one warpgroup, and of two (detail)."""
    bench.place()

    def between(warps: int) -> Median:
        few, many = (bench.cycles(GROUPS[n, source, count], **_how(warps)) for count in (FEW, MANY))
        return many.less(few.value).scaled(1 / (MANY - FEW))

    return between(4).with_detail(two_warpgroups=between(8).value)


def _alone(bench: Bench, n: int, source: str) -> Median:
    """Clocks of a round with one product that is waited for, fence and loop included."""
    bench.place()
    return bench.cycles(GROUPS[n, source, 1], **_how(4))


def _overhead(bench: Bench, what: str) -> Median:
    bench.place()
    by_warps = {
        warps: bench.cycles(OVERHEAD[what], **_how(warps)).scaled(1 / LANES) for warps in (4, 8)
    }
    return by_warps[4].with_detail(cycles_by_warps=values(by_warps))


def _in_flight(bench: Bench) -> Median:
    """Products that are issued before warp 0 has to wait for the first of them."""
    bench.place()
    memory = bench.gpu.allocate(8 * MOST_IN_FLIGHT)
    numbers, clocks = [], np.empty(0)
    for _ in range(REPEATS):
        bench.clocks(ISSUED, warps=4, rounds=4, memory=memory, dynamic_shared_bytes=SHARED_BYTES)
        issued = np.empty(MOST_IN_FLIGHT, np.int64)
        bench.gpu.download(memory, into=issued)
        clocks = np.diff(issued)  # of the second product, of the third, ...
        numbers.append(1 + int(np.argmax(clocks > clocks.max() / 2)))
    return Median.of(numbers, clocks_of_each=clocks.tolist())


def _loads_beside(bench: Bench, n: int, source: str) -> Median:
    """Wavefronts of four other warps per clock while a warpgroup multiplies."""
    bench.place()
    shares, intervals = [], []
    for _ in range(3):
        rounds = [
            np.median((one.stop - one.start).reshape(-1, 2, 4), axis=(0, 2))  # of each four warps
            for one in (
                bench.clocks(
                    BESIDE[n, source], warps=8, rounds=many, dynamic_shared_bytes=SHARED_BYTES
                )
                for many in (8, 40)
            )
        ]
        of_products, of_loads = (rounds[1] - rounds[0]) / 32
        if of_loads > of_products:
            raise RuntimeError("the loads take longer than the products")
        shares.append(4 * LOADS / of_loads)
        intervals.append(of_products / MANY)
    return Median.of(shares, cycles_per_product=intervals)


BENCHMARKS = (
    *each(
        "wgmma_{n}_{source}_interval_cycles",
        "cycles per product of a warpgroup",
        f"groups of {MANY} and {FEW} products of 64 x {{n}} x 16 halves, A from {{source}}",
        _interval,
        n=NS,
        source=SOURCES,
    ),
    *each(
        "wgmma_{n}_{source}_alone_cycles",
        "cycles",
        "a group of one product, fence, commit, wait and loop included, A from {source}",
        _alone,
        n=NS,
        source=SOURCES,
    ),
    *each(
        "wgmma_{what}_cycles",
        "cycles",
        "four warps, one after the other; eight warps: detail",
        _overhead,
        what=tuple(OVERHEAD),
    ),
    *each(
        "wgmma_{n}_{source}_loads_beside_per_cycle",
        "wavefronts per cycle",
        "loads of shared memory by four other warps, A from {source}",
        _loads_beside,
        n=(64, 256),
        source=SOURCES,
    ),
    *each(
        "wgmma_in_flight_products",
        "products",
        "issued by warp 0 before the first of them has to end",
        _in_flight,
    ),
)
