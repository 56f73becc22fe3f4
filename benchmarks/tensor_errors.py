"""Errors of predicted times of launches on tensor cores against an H200. Needs no GPU.

    python -m benchmarks.tensor_errors --half first
    python -m benchmarks.tensor_errors --half second --only attention
    python -m benchmarks.tensor_errors --half both --processes 2 --output FILE
    python -m benchmarks.tensor_errors --table           # of docs/tensor_cores.md

Prints predicted over measured for each launch of validation/timing/tensor_launches.py, with the
launch time that ships and with that of the machine that timed them, and the errors by family. A few
blocks represent all, as in the command `simulate`, if they say what all access: a launch takes a
second to a minute. `--output` records the predicted times: README and docs/tensor_cores.md state
the errors of those in validation/timing/recorded/tensor_predicted_h200.json.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from analysis.devices import find_device
from analysis.errors import ToolkitError
from analysis.timing.predicted import Explanation
from toolkit.execution.representatives import Blocks
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import Execution, launch_geometry
from validation import recordings
from validation.timing.tensor_launches import (
    FAMILIES,
    HALVES,
    LAUNCHES,
    RECORDED,
    TensorLaunch,
    recorded,
)

DEVICE = "h200"
SEED = 1  # of the blocks that are drawn
# Of the machine that timed them, by events: warm times of short launches of the first half, less
# the time for which SMs were active (Nsight Compute), are 4.6 to 5.0 us. An empty kernel took
# 4.5 us on a machine like it. The constants that ship have 2.7 us.
LAUNCH_S = 4.6e-6


class Prediction(NamedTuple):
    """Predicted time of a launch, the part of it that any launch takes, and why there is none."""

    time_s: float | None
    launch_s: float = 0.0
    why_not: str = ""


def prediction(label: str) -> Prediction:
    """Prediction for a launch of the list.

    All blocks are executed if a few do not say what all access.
    """
    one = next(one for one in LAUNCHES if one.label == label)
    try:
        found = _executed(one, "representative")
        if found.predicted is None:
            found = _executed(one, "all")
    except ToolkitError as error:
        return Prediction(None, why_not=str(error))
    if found.predicted is None:
        return Prediction(None, why_not=found.prediction_basis or "not predicted")
    return Prediction(found.predicted.time_s, found.predicted.launch_s)


def _executed(one: TensorLaunch, blocks: Blocks) -> Execution:
    simulator = Simulator(
        arch=None,
        blocks=blocks,
        device=find_device(DEVICE),
        outputs=False,
        explanation=Explanation.NONE,
        seed=SEED,
    )
    geometry = launch_geometry(one.grid, one.block, one.dynamic_shared_bytes)
    return simulator.run(one.code, geometry, one.make())


PREDICTED = RECORDED.with_name("tensor_predicted_h200.json")


def recorded_ratios(half: str) -> Mapping[str, list[float]]:
    """Predicted over measured times of a half as recorded, by family, and of "all"."""
    times, found = recorded(), defaultdict[str, list[float]](list)
    for label, row in recordings.read(PREDICTED)["launches"].items():
        if row["half"] == half:
            for name in (row["family"], "all"):
                found[name].append(row["predicted_s"] / times[label]["median_s"])
    return found


def table() -> Iterator[str]:
    """Errors of the recorded times by family and half, as lines of Markdown."""
    yield (
        "| family | first half, fitted: launches, mean, median "
        "| second half, held out: launches, mean, median |"
    )
    yield "|---|---|---|"
    halves = [recorded_ratios(half) for half in HALVES]
    for family in (*FAMILIES, "all"):
        cells = [family]
        for ratios in (half[family] for half in halves):
            errors = [abs(ratio - 1) for ratio in ratios]
            worst = f", from {min(ratios):.2f} to {max(ratios):.2f}" if family == "all" else ""
            cells.append(f"{len(errors)}, {fmean(errors):.1%}, {median(errors):.1%}{worst}")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=(*HALVES, "both"), default=HALVES[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="labels that match")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.add_argument("--table", action="store_true", help="print the errors as recorded")
    chosen = parser.parse_args()
    if chosen.table:
        print(*table(), sep="\n")
        return
    launches = [
        one
        for one in LAUNCHES
        if chosen.half in (one.half, "both") and re.search(chosen.only, one.label)
    ]
    times, errors = recorded(), defaultdict[str, list[tuple[float, float]]](list)
    rows: dict[str, Mapping[str, str | float]] = {}
    with ProcessPoolExecutor(chosen.processes) as processes:
        found = processes.map(prediction, [one.label for one in launches])
        for one, (predicted_s, launch_s, why_not) in zip(launches, found, strict=True):
            if predicted_s is None:
                print(f"{one.label:42} {why_not}", flush=True)
                continue
            measured_s = times[one.label]["median_s"]
            ratio = predicted_s / measured_s
            own = (predicted_s - launch_s + LAUNCH_S) / measured_s
            print(f"{one.label:42} {ratio:.2f}  with its launch time {own:.2f}", flush=True)
            errors[one.family].append((abs(ratio - 1), abs(own - 1)))
            rows[one.label] = {
                "half": one.half, "family": one.family, "predicted_s": float(f"{predicted_s:.5g}")
            }  # fmt: skip
    if not errors:
        sys.exit("error: no launch was predicted: give another --only")
    if chosen.output:
        recordings.write(chosen.output, {"device": DEVICE, "launches": rows})
    everything = [error for of_family in errors.values() for error in of_family]
    for family, of_family in (*errors.items(), ("all", everything)):
        (mean, middle), (own, _) = (
            (fmean(one), median(one)) for one in zip(*of_family, strict=True)
        )
        print(
            f"{family:10} {len(of_family):3} launches, mean {mean:.1%}, median {middle:.1%}, with "
            f"its launch time {own:.1%}"
        )


if __name__ == "__main__":
    main()
