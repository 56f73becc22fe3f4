"""How long a rung takes from its machine code to counters, verdict and predicted time.

    python -m benchmarks.prediction_speed [--shape 4096] [--device h200] [--repeats 3] [RUNG ...]

Each rung by itself, in fresh processes, its kernel compiled before: seconds of random matrices,
execution of blocks, references in float64, recorded streams and their replay; not of imports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from analysis.devices import find_device
from analysis.problem import parse_shape
from kernels import LADDER, Variant, find
from kernels.selection import Selection
from toolkit.execution.rung_simulation import LadderSimulator, residence
from toolkit.profiling.record import planned, with_resources
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.machine import available_cores

SEED = 1


def seconds(rung: str, shape: str, device_name: str) -> float:
    """Of one simulation of a rung, in this process."""
    device, problem, variant = find_device(device_name), parse_shape(shape), find(rung)
    assert isinstance(variant, Variant)
    selection = Selection(variant=variant, parameters=variant.defaults)
    cubin = compile_for(device, selection)
    record = with_resources(planned(selection, problem, device), cubin.resources, device)
    started = time.perf_counter()
    ladder = LadderSimulator(Workload(problem, SEED))
    found = ladder.simulate(cubin, selection, residence(record, device))
    if isinstance(found.predicted, str):
        raise SystemExit(f"{rung}: not predicted: {found.predicted}")
    return time.perf_counter() - started


def in_fresh_process(rung: str, shape: str, device: str, cache: str) -> float:
    for kept in Path(cache).glob("prediction-*"):
        kept.unlink()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.prediction_speed",
            "--here",
            "--shape",
            shape,
            "--device",
            device,
            rung,
        ],
        env={**os.environ, "GEMM_LADDER_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rungs", nargs="*", metavar="RUNG")
    parser.add_argument("--shape", default="4096")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="one rung once, in this process")
    asked = parser.parse_args()
    if asked.here:
        print(seconds(asked.rungs[0], asked.shape, asked.device))
        return
    print(f"{available_cores()} cores, {asked.device}, {asked.shape}, medians of {asked.repeats}")
    with tempfile.TemporaryDirectory() as cache:
        for rung in asked.rungs or [variant.name for variant in LADDER if not variant.max_extent]:
            times = [
                in_fresh_process(rung, asked.shape, asked.device, cache)
                for _ in range(asked.repeats)
            ]
            print(f"{rung:22}{median(times):6.2f} s ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    main()
