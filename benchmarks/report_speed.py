"""How long the report takes in two checkouts, which run by turns.

    python -m benchmarks.report_speed BEFORE AFTER [--repeats 5] [--case NAME ...] [--json FILE]

BEFORE and AFTER are folders with a checkout whose native libraries are built. Each uses the Python
of its own `.venv`, else the one that runs this. A case is

    help     `--help`
    theory   `profile --executor theory`, all compiled before
    cold     `profile`, with an empty cache
    warm     `profile` again: code, predictions, and the time of the CPU where it is kept, are in
             the cache; counts and checks are made again, with other matrices

and the last two have the device behind them: `cold:h200`. For each case the checkouts take turns,
`--repeats` times. Printed are the medians of the wall time, and of the time on all cores (user and
system, all processes), which depends less on what else the machine does; then BEFORE divided by
AFTER. Peak memory is that of the largest process. `--json` writes every sample into a file.

Bytecode of both is compiled before. No GPU is used.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

CASES = ("help", "theory", "cold:rtx-3090", "warm:rtx-3090", "cold:h200", "warm:h200")


class Sample(NamedTuple):
    """One command: seconds of wall time and of all cores, and bytes of its largest process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


class Checkout:
    """A folder with the toolkit, and a cache of its own."""

    def __init__(self, root: Path, scratch: Path) -> None:
        own = root / ".venv" / "bin" / "python"
        self.root, self.scratch = root, scratch
        self.python = str(own) if own.exists() else sys.executable
        self.scratch.mkdir()
        packages = ("toolkit", "analysis", "reports", "kernels")
        subprocess.run([self.python, "-m", "compileall", "-q", *packages], cwd=root, check=False)

    def sample(self, case: str) -> Sample:
        kind, _, device = case.partition(":")
        if kind == "help":
            return self._run("--help")
        if kind == "theory":
            return self._run("profile", "--executor", "theory", "--device", "h200")
        if kind == "cold":
            shutil.rmtree(self.scratch / "cache", ignore_errors=True)
        return self._run("profile", "--executor", "simulate", "--device", device)

    def _run(self, *words: str) -> Sample:
        environment = {**os.environ, "GEMM_LADDER_CACHE": str(self.scratch / "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if words[0] == "profile":
            words += tuple(
                f"--{name}={self.scratch / file}"
                for name, file in (("html", "profile.html"), ("record", "profile.json"))
            )
        started = time.perf_counter()
        process = subprocess.Popen(
            [self.python, "-m", "toolkit", *words],
            cwd=self.root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.root}: {' '.join(words)}: status {process.returncode}")
        return Sample(wall_s, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=Path, metavar="CHECKOUT")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", action="append", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    samples: dict[str, list[list[Sample]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        checkouts = [
            Checkout(root.resolve(), Path(folder) / name)
            for root, name in zip(asked.checkouts, ("before", "after"), strict=True)
        ]
        print(f"{'medians of ' + str(asked.repeats):16}{'wall s':>16}{'':8}{'cores s':>16}{'':8}GB")
        for case in asked.case or CASES:
            if not case.startswith(("cold", "help")):
                for one in checkouts:  # fill the cache
                    one.sample(case)
            by_turns = [[one.sample(case) for one in checkouts] for _ in range(asked.repeats)]
            samples[case] = [list(one) for one in zip(*by_turns, strict=True)]
            print(line(case, *samples[case]), flush=True)
    if asked.json:
        document = {case: [[x._asdict() for x in one] for one in samples[case]] for case in samples}
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


def line(case: str, before: list[Sample], after: list[Sample]) -> str:
    """The medians of a case, and how much faster the second checkout is."""
    text = f"{case:16}"
    for field in ("wall_s", "cpu_s"):
        old, new = (median(getattr(x, field) for x in one) for one in (before, after))
        text += f"{old:8.2f}{new:8.2f}{old / new:6.2f}x "
    peaks = (max(x.peak_bytes for x in one) for one in (before, after))
    return text + "".join(f"{peak / 1e9:6.2f}" for peak in peaks)


if __name__ == "__main__":
    main()
