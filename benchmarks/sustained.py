"""Rates of rungs and references in a burst, and sustained at the power limit. Needs a GPU.

    python -m benchmarks.sustained [NAME...] [--shape 4096] [--seconds S] [--output FILE]

Burst: after an idle second, nine launches are queued behind a kernel that waits, so that they run
back to back; the median of their times. Sustained: launches one behind the other for S seconds, the
mean time of those of the second half, at least 40. Both on inputs uniform in [-1, 1), with the SM
clock and the power at the end.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from analysis.problem import Gemm, parse_shape
from kernels.ladder import FP32X
from kernels.selection import parse_selection
from kernels.variant import Variant
from reports import text
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor
from toolkit.gpu.launch import OnGpu
from toolkit.gpu.product_launch import task_of_product
from toolkit.product.competitor import fp32x_product

CALLS, IDLE_S = 9, 1.0
QUEUED = 20  # launches between two looks at the clock
LATE_BATCHES = 2  # of which the mean is taken, at least
NAMES = ("tf32-parts", "fp16-parts", "best-fp32x", "cublas")
SEED = 1


def main() -> None:
    asked = _arguments()
    shape = parse_shape(asked.shape)
    with Gpu() as gpu:
        monitor = GpuMonitor(gpu.pci_bus_id)
        rows = [_rates(gpu, monitor, name, shape, asked.seconds) for name in asked.names or NAMES]
        found = {"device": gpu.device.name, "shape": str(shape), "rows": rows}
    for row in rows:
        rates = (text.flop_per_s(row[key]) for key in ("burst_flop_per_s", "sustained_flop_per_s"))
        print(f"{row['name']:16}", *(f"{rate:>14}" for rate in rates), row["state"])
    if asked.output:
        asked.output.write_text(json.dumps(found, indent=1) + "\n")


def _rates(gpu: Gpu, monitor: GpuMonitor, name: str, shape: Gemm, seconds: float) -> dict[str, Any]:
    selection = parse_selection(name)
    variant = selection.variant
    executed = variant.executed(shape) if isinstance(variant, Variant) else shape
    task = task_of_product(selection, shape, executed, SEED)
    if variant is FP32X:
        task = replace(task, library=fp32x_product)
    with OnGpu(task, gpu) as one:
        one.once()
        gpu.synchronize()
        burst_s = _burst_s(gpu, one)
        sustained_s = _sustained_s(gpu, one, seconds)
        state = monitor.state()
    return {
        "name": name,
        "burst_flop_per_s": shape.flop / burst_s,
        "sustained_flop_per_s": shape.flop / sustained_s,
        "state": asdict(state),
    }


def _burst_s(gpu: Gpu, one: OnGpu) -> float:
    time.sleep(IDLE_S)
    events = [gpu.driver.Event() for _ in range(CALLS + 1)]
    gpu.timer.hold()
    events[0].record()
    for event in events[1:]:
        one.once()
        event.record()
    events[-1].synchronize()
    pairs = pairwise(events)
    return float(median(after.time_since(before) for before, after in pairs)) / 1e3


def _sustained_s(gpu: Gpu, one: OnGpu, seconds: float) -> float:
    """Mean seconds of a launch in the second half of a run of so many seconds."""

    def batch() -> None:
        for _ in range(QUEUED):
            one.once()
        gpu.synchronize()

    return late_mean_s(batch, seconds, seconds / 2) / QUEUED


def late_mean_s(batch: Callable[[], object], seconds: float, early_s: float) -> float:
    """Mean seconds of the batches that begin after `early_s` of a run of so many seconds.

    The run is longer if it takes that until two of them are done.
    """
    begin = time.perf_counter()
    ends: list[float] = []  # of batches; the next one begins at once
    while len(ends) <= LATE_BATCHES or ends[-1] - begin < seconds:
        batch()
        if (now := time.perf_counter()) - begin >= early_s:
            ends.append(now)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--shape", default="4096")
    parser.add_argument("--seconds", type=float, default=1.2)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
