"""From the command to the report, with no GPU: `profile` of the whole ladder at 4096.

    python benchmarks/first_report.py

Times fresh processes, with the compile cache empty and filled, beside the peer that bounds any
such command: a Python process that only imports numpy, scipy and plotly.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

RUNS = 5
PROFILE = ["-m", "toolkit", "profile", "--executor", "theory", "--shape", "4096"]
PEER = ["-c", "import numpy, scipy.linalg, plotly.graph_objects"]


def seconds(arguments: list[str], cache: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "GEMM_LADDER_CACHE": cache},
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - started


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = ["--html", f"{folder}/p.html", "--record", f"{folder}/p.json"]
        cold = [seconds(PROFILE + files, f"{folder}/cache{run}") for run in range(RUNS)]
        warm = [seconds(PROFILE + files, f"{folder}/cache0") for _ in range(RUNS)]
        peer = [seconds(PEER, folder) for _ in range(RUNS)]
        size = Path(folder, "p.html").stat().st_size
    for name, samples in (("empty cache", cold), ("filled cache", warm), ("imports alone", peer)):
        ratio = median(samples) / median(peer)
        print(
            f"{name:>14}: {median(samples):.2f} s, {ratio:.1f} times the imports "
            f"(median of {RUNS}, {min(samples):.2f} to {max(samples):.2f})"
        )
    print(f"{'report':>14}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
