"""Requests that wait for the load/store unit before their warps stall, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import WARP_SIZE, Geometry
from toolkit.microbenchmarks.bench import REPEATS, Bench
from toolkit.microbenchmarks.probe import Probe, text
from toolkit.microbenchmarks.record import Median, each, values

PROBES: tuple[Probe, ...] = ()
SOURCE = text("queues.cu")
FEW, MANY = 16, 24  # requests of a warp: more than wait
KINDS = {
    "global_loads": "loads of global memory, 32 lines of L1 each",
    "copies": "copies of 4 bytes per lane from 32 lines of L1 to shared memory",
    "copies_past_l1": "copies of 16 bytes per lane from 8 lines, past L1, to shared memory",
}
ROW_FLOATS = 128  # of a lane, in one bank
WARPS = 4  # of which each has a scheduler to itself
BEHIND = (1, 2, 4, 8)  # loads of global memory that stand before one of shared memory


def macros(kind: str, count: int) -> dict[str, Any]:
    """Macros that make the warps of `requests` issue `count` requests of a kind in a row."""
    return {"ROW": ROW_FLOATS, "KIND": list(KINDS).index(kind), "COUNT": count}


def _noted(bench: Bench, kind: str, count: int, warps: int) -> NDArray[np.int64]:
    """Clocks of the requests of each warp, and of a load of shared memory behind them."""
    kernel = bench.kernel(SOURCE, "requests", **macros(kind, count))
    data = bench.gpu.upload(np.zeros(32 * WARP_SIZE, np.float32))
    out = bench.gpu.allocate(16 * warps)
    geometry = Geometry.of(1, WARP_SIZE * warps)
    return bench.noted(kind, kernel.prepared(geometry, [data, out]), out, (warps, 2))


def _waiting(bench: Bench, kind: str) -> float:
    """Requests that are made and not served, when warps wait before they make another one."""
    few, many = (float(np.median(_noted(bench, kind, count, WARPS)[:, 0])) for count in (FEW, MANY))
    clocks = (many - few) / (MANY - FEW) / WARPS  # of each request
    return MANY * WARPS - many / clocks


def _depth(bench: Bench, kind: str) -> Median:
    return Median.of([_waiting(bench, kind) for _ in range(REPEATS)])


def _overtaking(bench: Bench) -> Median:
    clocks = {
        count: Median.of(
            [float(_noted(bench, "global_loads", count, 1)[0, 1]) for _ in range(REPEATS)]
        )
        for count in BEHIND
    }
    return clocks[BEHIND[-1]].with_detail(cycles_by_loads_before=values(clocks))


BENCHMARKS = (
    *(
        one
        for kind, what in KINDS.items()
        for one in each(
            "queue_{kind}_requests",
            "requests of an SM",
            f"{what}: made and not served, when the warps of 4 schedulers wait",
            _depth,
            kind=kind,
        )
    ),
    *each(
        "queue_shared_behind_global_cycles",
        "cycles",
        f"a load of shared memory behind {BEHIND[-1]} of 32 lines of L1 each (fewer: detail)",
        _overtaking,
    ),
)
