"""Local memory that L1 does not keep, and coherent loads, which it never has."""

from __future__ import annotations

import numpy as np

from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each

PROBES: tuple[Probe, ...] = ()
# Apart: each is compiled with its own macros.
FOLLOW, FILL, LOAD = map(text, ("local_follow.cu", "local_fill.cu", "coherent_load.cu"))
FOLLOWED = (1152, 1280, 1536, 1792, 2048, 2304, 3072)  # words of each of 64 threads of an SM
THREADS_FOLLOWING = 64
FILLED = (64, 165)  # words that the compiler stores four and two at a time
FILLING = (1024, 256)  # blocks and threads
FEW, MANY = 16, 48  # loads of a warp
LOADING = 256  # threads of a block
REPEATS = 5


def _followed(bench: Bench, words: int) -> Median:
    """Clocks of a load that depends on the one before, of the block in the middle."""
    kernel = bench.kernel(FOLLOW, "follow_words", WORDS=words)
    blocks = bench.device.sm_count
    noted, sink = bench.gpu.allocate(8 * blocks), bench.gpu.upload(np.zeros(1, np.uint32))
    launch = kernel.prepared(Geometry.of(blocks, THREADS_FOLLOWING), [noted, sink])
    samples = [
        float(np.median(bench.noted("follow_words", launch, noted, (blocks,))))
        for _ in range(REPEATS)
    ]
    return Median.of(samples).scaled(1 / words)


def _filled(bench: Bench, name: str, words: int) -> Median:
    """Seconds of a launch that stores so many words per thread, L2 dirty."""
    kernel = bench.kernel(FILL, name, WORDS=words)
    blocks, threads = FILLING
    out = bench.gpu.allocate(4 * blocks * threads * words)
    launch = kernel.prepared(Geometry.of(blocks, threads), [out, np.int32(3), np.int32(5)])
    samples = [bench.gpu.timer.time(launch, l2=L2State.DIRTY) for _ in range(REPEATS + 1)]
    return Median.of(samples[1:])


def _loaded(bench: Bench, scope: str) -> Median:
    """Seconds of a load of a warp, where eight blocks on each SM load one number."""
    blocks = 8 * bench.device.sm_count
    sink, number = bench.gpu.allocate(4), bench.gpu.upload(np.zeros(1, np.float32))

    def seconds(loads: int) -> list[float]:
        kernel = bench.kernel(LOAD, "load_one", LOADS=loads, SCOPE=f'"{scope}"')
        launch = kernel.prepared(Geometry.of(blocks, LOADING), [sink, number])
        return [bench.gpu.timer.time(launch, l2=L2State.WARM) for _ in range(REPEATS)]

    few, many = seconds(FEW), seconds(MANY)
    loads = (MANY - FEW) * blocks * LOADING // 32
    return Median.of([b - a for a, b in zip(few, many, strict=True)]).scaled(1 / loads)


BENCHMARKS = (
    *each(
        "local_follow_{words}_words_cycles",
        "cycles per load",
        f"on all SMs {THREADS_FOLLOWING} threads follow {{words}} words of local memory each",
        _followed,
        words=FOLLOWED,
    ),
    *each(
        "local_{name}_{words}_s",
        "seconds",
        "a launch of 262,144 threads: {name}, {words} words each, L2 dirty",
        _filled,
        name=("fill_words", "fill_lines"),
        words=FILLED,
    ),
    *each(
        "coherent_load_{scope}_s",
        "seconds per load of a warp",
        "all warps load one number, scope {scope}",
        _loaded,
        scope=("gpu", "sys"),
    ),
)
