"""Costs of a short launch: parameters, loads and code that it uses for the first time."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Benchmark, Median, each

PROBES: tuple[Probe, ...] = ()
SOURCE = text("first_use.cu")
SAMPLES = 11


def _short(bench: Bench, what: str, count: int, blocks: int, threads: int) -> Median:
    """Seconds after a dirty L2; the other states in detail."""
    memory = bench.shared(Memory)
    parameters = count if what == "read_parameters" else 1
    kernel = bench.kernel(SOURCE, what, COUNT=count, PARAMETERS=parameters)
    out = bench.gpu.allocate(4 * blocks * threads)
    argument = {
        "read_parameters": np.void(np.zeros(parameters, np.int32).tobytes()),
        "loads_in_a_row": memory.buffer,
        "straight_code": np.float32(0.5),
    }[what]
    memory.zero(64 * MIB)
    launch = kernel.prepared(Geometry.of(blocks, threads), [out, argument])
    found = {
        state: [bench.gpu.timer.time(launch, l2=state) for _ in range(SAMPLES)] for state in L2State
    }
    return Median.of(
        found[L2State.DIRTY], **{f"{state}_s": median(times) for state, times in found.items()}
    )


def _cases(what: str, how: str, counts: tuple[int, ...]) -> Iterator[Benchmark]:
    return each(
        what + "_{count}_{blocks}_blocks_of_{threads}_s",
        "seconds",
        "{blocks} blocks of {threads} threads, L2 dirty: " + how,
        _short,
        what=what,
        count=counts,
        blocks=(1, 132, 1056),
        threads=(32, 256),
    )


BENCHMARKS = (
    *_cases("read_parameters", "{count} parameters of 4 bytes, one of each 16 is read", (16, 960)),
    *_cases("loads_in_a_row", "{count} loads that wait for each other, and a store", (0, 1, 2, 4)),
    *_cases("straight_code", "{count} multiply-adds without a loop", (16, 256, 1024)),
)
