"""Rates of rungs and references in a burst, and sustained at the power limit. Needs a GPU.

    python -m benchmarks.sustained [NAME...] [--shape 4096] [--seconds S] [--output FILE]

By the protocols of benchmarks/protocols.py, sustained for S seconds. Both on inputs uniform in
[-1, 1), with the SM clock and the power at the end.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.problem import Gemm, parse_shape
from benchmarks.protocols import SUSTAINED_S, CallQueue, burst_s, sustained_s
from kernels.selection import parse_selection
from kernels.variant import Variant
from reports import text
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor
from toolkit.gpu.launch import OnGpu
from toolkit.product.competitor import task_of_competitor

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
    with OnGpu(task_of_competitor(selection, shape, executed, SEED), gpu) as one:
        of_burst = burst_s(one.once, _stream(gpu))
        of_run = sustained_s(one.once, _stream(gpu), seconds)
        state = monitor.state()
    return {
        "name": name,
        "burst_flop_per_s": shape.flop / of_burst,
        "sustained_flop_per_s": shape.flop / of_run,
        "state": asdict(state),
    }


def _stream(gpu: Gpu) -> CallQueue:
    return CallQueue(
        event=gpu.driver.Event,
        hold=gpu.timer.hold,
        synchronize=gpu.synchronize,
        milliseconds=lambda begin, end: float(end.time_since(begin)),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--shape", default="4096")
    parser.add_argument("--seconds", type=float, default=SUSTAINED_S)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
