"""Effect of shorter replays of long loops on predictions for an H200.

    python -m benchmarks.shortened_replays [NAME ...]

NAME is a launch of benchmarks/report_speed.py, such as sgemm-4096, or a rung at a shape, such as
tiled:4096, which is simulated as an ordinary kernel. Without names: those of `NAMES`, 6 minutes.
Prints how times, and the part that changes most, change relative to the time of the launch, and
the CPU time that replays take. Exits with 1 if times differ by more than `plan_agreement` allows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any
from unittest.mock import patch

from analysis.devices import Device
from analysis.sm import UNLIMITED
from analysis.timing import predict as timing
from analysis.timing.predicted import Predicted
from analysis.timing.work import Work
from benchmarks.plan_agreement import DEVICE, MEAN_TIME, WORST_TIME
from benchmarks.report_speed import LAUNCHES, launched
from kernels.ladder import BEST, LADDER
from toolkit.cli.app import app
from toolkit.execution import launch_time

Row = dict[str, Any]

SHAPES = ("4096", "2048x2048x8192", "3000x3100x3201", "2100x2200x9000")
RUNGS = [rung.name for rung in LADDER if rung.name not in (BEST, LADDER[0].name)]
NAMES = (*LAUNCHES, *(f"{rung}:{shape}" for shape in SHAPES for rung in RUNGS))
OFF: Row = dict.fromkeys(("SHORTENED", "SHORTENED_FOR_COSTS"), (UNLIMITED, 1, 1))


def timed(work: Work, device: Device) -> tuple[Predicted, float]:
    start = time.process_time()
    return timing.predict(work, device), time.process_time() - start


def compared(name: str) -> Row:
    """The launch, predicted both ways; without `change`, its replays are not shortened."""
    row: Row = {"name": name}

    def both(work: Work, device: Device, *_: Any) -> Predicted:
        short, row["short_s"] = timed(work, device)
        with patch.multiple(timing, **OFF):
            long, row["long_s"] = timed(work, device)
        row["basis"] = short.basis
        if short != long:
            row["change"] = short.time_s / long.time_s - 1
            names = short.parts.keys() | long.parts.keys()
            apart = (short.parts.get(one, 0.0) - long.parts.get(one, 0.0) for one in names)
            row["part"] = max(map(abs, apart)) / long.time_s
        return short

    arguments = ["simulate", *launched(name), "--device", DEVICE, "--blocks", "representative"]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, GEMM_LADDER_CACHE=folder),
        patch.object(launch_time, "predict", both),
        redirect_stdout(StringIO()),
    ):
        if app(arguments, standalone_mode=False):
            sys.exit(1)  # it has said why
    return row


def line_of(row: Row) -> str:
    if "basis" not in row:
        return f"{row['name']:34} no time"
    change = f"{row['change']:+8.2%}{row['part']:8.2%}" if "change" in row else f"{'-':>8}" * 2
    which = row["basis"].partition(" replayed ")[2].partition(", ")[0]
    return f"{row['name']:34}{change}{row['short_s']:7.2f}{row['long_s']:8.2f}  {which}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    chosen = parser.parse_args(argv)
    print(f"{'launch':34}{'time':>8}{'part':>8}{'s':>7}{'all, s':>8}  replayed")
    rows = []
    for name in chosen.names:
        rows.append(compared(name))
        print(line_of(rows[-1]), flush=True)
    times = [abs(row["change"]) for row in rows if "change" in row]
    average, worst = sum(times) / max(1, len(times)), max(times, default=0)
    print(
        f"{len(times)} of {len(rows)} launches have shorter replays. Times differ by {average:.2%} "
        f"on average and by {worst:.2%} at most."
    )
    return int(worst > WORST_TIME or average > MEAN_TIME)


if __name__ == "__main__":
    sys.exit(main())
