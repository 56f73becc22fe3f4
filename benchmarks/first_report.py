"""From the command to the report, with no GPU: `profile` of the whole ladder at 4096.

    python benchmarks/first_report.py

Times fresh processes that simulate the ladder, with the caches empty (compile, disassemble) and
filled, beside one that stays with theory and beside the peer that bounds any such command: a
Python process that only imports numpy, scipy and plotly. The turns rotate, so that none of them
has the machine to itself; the largest memory of any of them is told too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

RUNS = 5
PROFILE = ["-m", "toolkit", "profile", "--shape", "4096", "--executor"]
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
        simulate, theory = ([*PROFILE, name, *files] for name in ("simulate", "theory"))
        samples: dict[str, list[float]] = {}
        for run in range(RUNS):
            for name, arguments, cache in (
                ("simulated, empty cache", simulate, f"{folder}/cache{run}"),
                ("simulated, filled cache", simulate, f"{folder}/cache0"),
                ("theory, filled cache", theory, f"{folder}/cache0"),
                ("imports alone", PEER, folder),
            ):
                samples.setdefault(name, []).append(seconds(arguments, cache))
        size = Path(folder, "p.html").stat().st_size
    for name, taken in samples.items():
        ratio = median(taken) / median(samples["imports alone"])
        print(
            f"{name:>23}: {median(taken):.2f} s, {ratio:.1f} times the imports "
            f"(median of {RUNS}, {min(taken):.2f} to {max(taken):.2f})"
        )
    memory = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{'report':>23}: {size / 1e6:.1f} MB")
    print(f"{'memory, at most':>23}: {memory / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
