"""Errors of predicted times of launches on tensor cores against an H200. Needs no GPU.

    python -m benchmarks.tensor_errors --half first
    python -m benchmarks.tensor_errors --half second --only attention
    python -m benchmarks.tensor_errors --half both --processes 2 --output FILE
    python -m benchmarks.tensor_errors --table           # of docs/tensor_cores.md

Prints predicted over measured for each launch of validation/timing/tensor_launches.py, with the
launch time and the clock that ship, with the launch time of the machine that timed them, and at the
clock that Nsight Compute recorded (benchmarks/tensor_clocks.py), and the errors by family. A few
blocks represent all, as in the command `simulate`, if they say what all access: a launch takes a
second to two minutes. `--output` records the predicted times: README and docs/tensor_cores.md state
the errors of those in validation/timing/recorded/tensor_predicted_h200.json.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from analysis.devices import Device, find_device, with_clock
from analysis.errors import ToolkitError
from analysis.timing.predicted import Explanation
from benchmarks.tensor_clocks import recorded_clocks
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


class Ratios(NamedTuple):
    """Predicted over measured time of a launch; the last two with its launch time, at its clock."""

    plain: float
    own_launch: float
    own_clock: float


def prediction(label: str, device: Device | None = None) -> Prediction:
    """Prediction for a launch of the list, for another device than the one that timed them."""
    one = next(one for one in LAUNCHES if one.label == label)
    return prediction_of(one, device or find_device(DEVICE))


def prediction_of(one: TensorLaunch, device: Device) -> Prediction:
    """Prediction for a launch. All blocks are executed if a few do not say what all access."""
    try:
        found = _executed(one, "representative", device)
        if found.predicted is None:
            found = _executed(one, "all", device)
    except ToolkitError as error:
        return Prediction(None, why_not=str(error))
    if found.predicted is None:
        return Prediction(None, why_not=found.prediction_basis or "not predicted")
    return Prediction(found.predicted.time_s, found.predicted.launch_s)


def both_predictions(label: str) -> tuple[Prediction, Prediction]:
    """Predictions for a launch at the clock that the model predicts, and at the recorded one."""
    clock_mhz = recorded_clocks()[label] / 1e6
    return prediction(label), prediction(label, with_clock(find_device(DEVICE), clock_mhz))


def _executed(one: TensorLaunch, blocks: Blocks, device: Device) -> Execution:
    simulator = Simulator(
        arch=None,
        blocks=blocks,
        device=device,
        outputs=False,
        explanation=Explanation.NONE,
        seed=SEED,
    )
    geometry = launch_geometry(one.grid, one.block, one.dynamic_shared_bytes)
    return simulator.run(one.code, geometry, one.make())


PREDICTED = RECORDED.with_name("tensor_predicted_h200.json")


def recorded_ratios(half: str, time: str = "predicted_s") -> Mapping[str, list[float]]:
    """Predicted over measured times of a half as recorded, by family, and of "all".

    `time`: "predicted_s", or "at_recorded_clock_s".
    """
    times, found = recorded(), defaultdict[str, list[float]](list)
    for label, row in recordings.read(PREDICTED)["launches"].items():
        if row["half"] == half:
            for name in (row["family"], "all"):
                found[name].append(row[time] / times[label]["median_s"])
    return found


def table() -> Iterator[str]:
    """Errors of the recorded times by family and half, as lines of Markdown."""
    of_each = "launches, mean, median; mean at the recorded clock"
    yield f"| family | first half, fitted: {of_each} | second half, held out: {of_each} |"
    yield "|---|---|---|"
    halves = [
        [recorded_ratios(half, time) for time in ("predicted_s", "at_recorded_clock_s")]
        for half in HALVES
    ]
    for family in (*FAMILIES, "all"):
        cells = [family]
        for plain, own_clock in halves:
            ratios = plain[family]
            errors = _off(ratios)
            worst = f", from {min(ratios):.2f} to {max(ratios):.2f}" if family == "all" else ""
            cells.append(
                f"{len(errors)}, {fmean(errors):.1%}, {median(errors):.1%}{worst}; "
                f"{fmean(_off(own_clock[family])):.1%}"
            )
        yield f"| {' | '.join(cells)} |"


def _off(ratios: Iterable[float]) -> list[float]:
    return [abs(ratio - 1) for ratio in ratios]


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
    rows = dict(_predicted(launches, chosen.processes))
    if not rows:
        sys.exit("error: no launch was predicted: give another --only")
    if chosen.output:
        recordings.write(chosen.output, {"device": DEVICE, "launches": rows})


def _predicted(
    launches: Sequence[TensorLaunch], processes: int
) -> Iterator[tuple[str, Mapping[str, str | float]]]:
    """Label of each launch and what is recorded of it; prints how far it is off, and errors."""
    times, ratios = recorded(), defaultdict[str, list[Ratios]](list)
    with ProcessPoolExecutor(processes) as pool:
        found = pool.map(both_predictions, [one.label for one in launches])
        for one, (plain, own_clock) in zip(launches, found, strict=True):
            if plain.time_s is None or own_clock.time_s is None:
                print(f"{one.label:42} {plain.why_not or own_clock.why_not}", flush=True)
                continue
            measured_s = times[one.label]["median_s"]
            own_launch_s = plain.time_s - plain.launch_s + LAUNCH_S
            of_one = Ratios(
                *(time_s / measured_s for time_s in (plain.time_s, own_launch_s, own_clock.time_s))
            )
            ratios[one.family].append(of_one)
            ratios["all"].append(of_one)
            print(
                f"{one.label:42} {of_one.plain:.2f}  with its launch time {of_one.own_launch:.2f}, "
                f"at its clock {of_one.own_clock:.2f}",
                flush=True,
            )
            yield (
                one.label,
                {
                    "half": one.half,
                    "family": one.family,
                    "predicted_s": float(f"{plain.time_s:.5g}"),
                    "at_recorded_clock_s": float(f"{own_clock.time_s:.5g}"),
                },
            )
    for family, of_family in ratios.items():
        errors, with_launch, at_clock = (_off(one) for one in zip(*of_family, strict=True))
        print(
            f"{family:10} {len(of_family):3} launches, mean {fmean(errors):.1%}, median "
            f"{median(errors):.1%}, with its launch time {fmean(with_launch):.1%}, at its clock "
            f"{fmean(at_clock):.1%}"
        )


if __name__ == "__main__":
    main()
