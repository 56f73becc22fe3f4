"""What Nsight Compute counts of the launches on trial, into the file that has their times.

    python -m benchmarks.reference_times --only trial --output trial.json
    python -m benchmarks.trial_counters trial.json --into trial_h200.json.xz

Both need a GPU, this one ncu too.
Caches are flushed before each launch, clocks are left as they are. Traffic is counted in one pass,
and several times: medians, with the lowest and highest count beside them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from toolkit.gpu.context import Gpu
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.replay_process import profiled
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.corpus.case import Case
from validation.timing.timed_launches import rng
from validation.timing.trial_launches import TRIALS, Trial

TIMES = 3  # that traffic is counted
PATIENCE_S = 160.0
BRIEF = (
    "smsp__inst_executed.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)


def launches() -> Iterator[tuple[Trial, Case]]:
    for trial in TRIALS:
        for case in trial.cases:
            yield trial, case


def launch_all(times: int) -> None:
    """Launch each case so many times, seen by the profiler that this runs under."""
    with Gpu() as gpu:
        for trial, case in launches():
            cubin = trial.code(gpu.device.sm_arch)
            kernel = gpu.load_image(cubin.image, cubin.symbol)
            arguments = [
                gpu.upload(a) if isinstance(a, np.ndarray) else a for a in case.make(rng())
            ]
            launch = kernel.prepared(case.geometry, arguments)
            with profiled(gpu):
                for _ in range(times):
                    launch()


def counted(counters: Sequence[str], times: int) -> Iterator[list[dict[str, int]]]:
    """The counters of each launch of each case."""
    command = [str(ncu.path()), *ncu.counting_options(counters), *ncu.AS_RAW_CSV]
    done = subprocess.run(
        [*command, sys.executable, "-m", "benchmarks.trial_counters", "--launch", str(times)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    found = iter(ncu.kernels_in(done.stdout, "ncu"))
    for _, case in launches():
        alike = list(islice(found, times))
        if len(alike) != times or any(one.grid != case.grid for one in alike):
            sys.exit(f"{case.name} was not counted: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        yield [{name: one.values[name] for name in counters} for one in alike]


def recorded() -> Iterator[dict[str, Any]]:
    traffic = counted(ncu.TRAFFIC, TIMES)
    once = counted(ncu.INSTRUCTIONS, 1)
    for (_, case), several, (exact,) in zip(launches(), traffic, once, strict=True):
        samples = {name: sorted(one[name] for one in several) for name in ncu.TRAFFIC}
        yield {
            "label": case.name,
            "counters": exact | {name: median_low(s) for name, s in samples.items()},
            "lowest": {name: s[0] for name, s in samples.items()},
            "highest": {name: s[-1] for name, s in samples.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--into", type=Path, help="compressed")
    parser.add_argument("--launch", type=int, metavar="TIMES", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        launch_all(chosen.launch)
        return
    document = json.loads(chosen.file.read_text(encoding="utf-8"))
    document["ncu"] = ncu.version(str(ncu.path()))
    document["counted"] = list(recorded())
    write_atomically(chosen.into, lzma.compress(recordings.text_of(document).encode()))
    for one in document["counted"]:
        print(f"{one['label']:40}", *(f"{one['counters'][name]:>12}" for name in BRIEF))


if __name__ == "__main__":
    main()
