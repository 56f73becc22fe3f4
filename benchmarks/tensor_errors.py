"""Errors of predicted times of launches on tensor cores against an H200. Needs no GPU.

    python -m benchmarks.tensor_errors --half first
    python -m benchmarks.tensor_errors --half second --only attention

Prints predicted over measured for each launch of validation/timing/tensor_launches.py, with the
launch time that ships and with that of the machine that timed them, and the errors by family. A few
blocks represent all, as in the command `simulate`, if they say what all access: a launch takes a
second to a minute.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from statistics import fmean, median

from analysis.devices import find_device
from analysis.errors import ToolkitError
from analysis.timing.predicted import Explanation
from toolkit.execution.block_plan import Blocks
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import Execution, launch_geometry
from validation.timing.tensor_launches import HALVES, LAUNCHES, TensorLaunch, recorded

DEVICE = "h200"
SEED = 1  # of the blocks that are drawn
# Of the machine that timed them, by events: warm times of short launches of the first half, less
# the time for which SMs were active (Nsight Compute), are 4.6 to 5.0 us. An empty kernel took
# 4.5 us on a machine like it. The constants that ship have 2.7 us.
LAUNCH_S = 4.6e-6


def ratios(one: TensorLaunch, measured_s: float) -> tuple[float, float] | str:
    """Predicted over measured time, and the same with LAUNCH_S; or why there is no prediction.

    All blocks are executed if a few do not say what all access.
    """
    found = _executed(one, "representative")
    if found.predicted is None:
        found = _executed(one, "all")
    predicted = found.predicted
    if predicted is None:
        return found.prediction_basis or "not predicted"
    own_s = predicted.time_s - predicted.launch_s + LAUNCH_S
    return predicted.time_s / measured_s, own_s / measured_s


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="labels that match")
    chosen = parser.parse_args()
    times, errors = recorded(), defaultdict[str, list[tuple[float, float]]](list)
    for one in LAUNCHES:
        if one.half != chosen.half or not re.search(chosen.only, one.label):
            continue
        try:
            found = ratios(one, times[one.label]["median_s"])
        except ToolkitError as error:
            print(f"{one.label:42} {error}", flush=True)
            continue
        if isinstance(found, str):
            print(f"{one.label:42} {found}", flush=True)
            continue
        print(f"{one.label:42} {found[0]:.2f}  with its launch time {found[1]:.2f}", flush=True)
        errors[one.family].append((abs(found[0] - 1), abs(found[1] - 1)))
    if not errors:
        sys.exit("error: no launch was predicted: give another --only")
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
