"""SM clock under load: of tensor cores, FFMAs, and reads of DRAM.

The protocol is that of burst measurements: a second without work, then nine launches of equal
length, one after the other; the clock is the median over the launches. Operands are random numbers,
since zeros take less power.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each
from toolkit.microbenchmarks.warpgroup import BEGIN, COMMIT, product, wait

PROBES: tuple[Probe, ...] = ()
N, IN_GROUP = 256, 16  # products of a batch
SOURCE = text("clock.cu").replace(
    "PRODUCTS", "\n".join([BEGIN, *[product(N, "shared")] * IN_GROUP, COMMIT, wait(0)])
)
IDLE_S, LAUNCHES = 1.0, 9
SHORT_S, LONG_S = 1e-4, 3e-3  # length of a launch
SHARED_BYTES = 49152
READ_BYTES = 1 << 30
HALF_MOST = 0x3C00  # halves below 1


@dataclass(frozen=True, kw_only=True)
class Load:
    """A kind of load (`clock.cu`), with the clocks of a batch, and those of its tensor cores."""

    kind: int
    period: int = 0
    tensor_clocks: int = 0
    warps: int = 8


MMA_CLOCKS, GROUP_CLOCKS = 32 * 6, IN_GROUP * N // 2
LOADS = {
    "nothing": Load(kind=0),
    "ffma": Load(kind=1),
    "mma": Load(kind=2, tensor_clocks=2 * MMA_CLOCKS),
    **{
        f"mma_1_of_{n}": Load(kind=2, period=2 * MMA_CLOCKS * n, tensor_clocks=2 * MMA_CLOCKS)
        for n in (2, 8, 32)
    },
    "wgmma": Load(kind=3, tensor_clocks=2 * GROUP_CLOCKS),
    **{
        f"wgmma_1_of_{n}": Load(kind=3, period=2 * GROUP_CLOCKS * n, tensor_clocks=2 * GROUP_CLOCKS)
        for n in (2, 8, 32)
    },
    "dram": Load(kind=4),
    "wgmma_and_dram": Load(kind=5, period=0, tensor_clocks=GROUP_CLOCKS),
}


class RandomWords:
    """Random halves of either sign on the GPU, more than L2 holds."""

    def __init__(self, bench: Bench) -> None:
        drawn = np.random.default_rng(0).integers(0, HALF_MOST, 1 << 22, dtype=np.uint16)
        drawn[::2] |= 0x8000
        self.count = READ_BYTES // 16
        self.memory = bench.gpu.allocate(READ_BYTES)
        for first in range(0, READ_BYTES, drawn.nbytes):
            bench.gpu.write(int(self.memory) + first, drawn)
        self.sink = bench.gpu.allocate(4 * 256)
        self.out = bench.gpu.allocate(24 * bench.device.sm_count)


def _clock(bench: Bench, name: str, seconds: float) -> Median:
    load, words = LOADS[name], bench.shared(RandomWords)
    kernel = bench.kernel(SOURCE, "load", suffix="a", KIND=load.kind)
    launch = kernel.prepared(
        Geometry.of(bench.device.sm_count, 32 * load.warps, SHARED_BYTES),
        [
            words.out,
            words.memory,
            np.uint64(words.count),
            np.int64(round(seconds * 1e9)),
            np.int32(load.period),
            words.sink,
        ],
    )
    bench.noted(name, launch, words.out, (bench.device.sm_count, 3))
    time.sleep(IDLE_S)
    clocks, busy = [], []
    for _ in range(LAUNCHES):
        noted = bench.noted(name, launch, words.out, (bench.device.sm_count, 3))
        clocks.append(float(np.median(noted[:, 0] / noted[:, 1]) * 1e9))
        busy.append(float(np.median(noted[:, 2] * load.tensor_clocks / noted[:, 0])))
    return Median.of(clocks, clock_hz_of_each=clocks, tensor_share=float(np.median(busy)))


BENCHMARKS = (
    *each(
        "clock_{name}_short_hz",
        "Hz",
        f"nine launches of {SHORT_S * 1e6:.0f} us after a second without work, load: {{name}}",
        _clock,
        name=tuple(LOADS),
        seconds=SHORT_S,
    ),
    *each(
        "clock_{name}_long_hz",
        "Hz",
        f"nine launches of {LONG_S * 1e3:.0f} ms after a second without work, load: {{name}}",
        _clock,
        name=tuple(LOADS),
        seconds=LONG_S,
    ),
)
