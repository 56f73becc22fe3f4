"""From the command to the report, with no GPU: `profile` of the whole ladder at 4096.

    python -m benchmarks.first_report
    python -m benchmarks.first_report theory    # without the simulations

Times fresh processes that simulate the ladder, or stay with theory, with the caches empty (compile,
disassemble) and filled. Beside them runs the peer that bounds any such command: a Python process
that only imports numpy, scipy and plotly. The turns rotate, so that none of them has the machine to
itself. CPU time (user and system) is told as well: it hardly depends on what else the machine does.
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


def seconds(arguments: list[str], cache: str) -> tuple[float, float]:
    """What a process takes: by the clock, and of the CPU."""
    started, used = time.perf_counter(), cpu_s()
    subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "GEMM_LADDER_CACHE": cache},
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - started, cpu_s() - used


def cpu_s() -> float:
    """Seconds of the CPU that children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = ["--html", f"{folder}/p.html", "--record", f"{folder}/p.json"]
        simulate, theory = ([*PROFILE, name, *files] for name in ("simulate", "theory"))
        samples: dict[str, list[tuple[float, float]]] = {}
        subprocess.run([sys.executable, *theory], capture_output=True, check=True)  # compiles .pyc
        for run in range(RUNS):
            for name, arguments, cache in (
                ("theory, empty cache", theory, f"{folder}/theory{run}"),
                ("theory, filled cache", theory, f"{folder}/theory{run}"),
                ("simulated, empty cache", simulate, f"{folder}/cache{run}"),
                ("simulated, filled cache", simulate, f"{folder}/cache{run}"),
                ("imports alone", PEER, folder),
            ):
                if arguments is simulate and "theory" in sys.argv[1:]:
                    continue
                samples.setdefault(name, []).append(seconds(arguments, cache))
        size = Path(folder, "p.html").stat().st_size
    for name, taken in samples.items():
        walls, cpus = zip(*taken, strict=True)
        peer, peer_cpu = (median(x) for x in zip(*samples["imports alone"], strict=True))
        print(
            f"{name:>23}: {median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), "
            f"{median(walls) / peer:.1f} times the imports; "
            f"{median(cpus):.2f} s of the CPU, {median(cpus) / peer_cpu:.1f} times (of {RUNS})"
        )
    memory = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{'report':>23}: {size / 1e6:.1f} MB")
    print(f"{'memory, at most':>23}: {memory / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
