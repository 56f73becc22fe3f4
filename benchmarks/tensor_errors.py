"""Errors of predicted times of launches on tensor cores against an H200. Needs no GPU.

    python -m benchmarks.tensor_errors --half first
    python -m benchmarks.tensor_errors --half second --only attention

Prints predicted over measured for each launch of validation/timing/tensor_launches.py, at the
predicted clock and at the boost clock, and the errors by family. A launch takes seconds to minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from statistics import fmean, median

from analysis.devices import find_device
from analysis.errors import ToolkitError
from toolkit.execution.simulate import simulate
from validation.timing.tensor_launches import HALVES, LAUNCHES, TensorLaunch, recorded

DEVICE = "h200"


def ratios(one: TensorLaunch, measured_s: float) -> tuple[float, float] | None:
    """Predicted over measured time, and the same at the boost clock; None without a prediction."""
    execution = simulate(
        one.code,
        grid=one.grid,
        block=one.block,
        dynamic_shared_bytes=one.dynamic_shared_bytes,
        arguments=one.make(),
        device=DEVICE,
    )
    found = execution.predicted
    if found is None:
        return None
    boosted_s = found.cycles / find_device(DEVICE).boost_clock_hz + found.launch_s
    return found.time_s / measured_s, boosted_s / measured_s


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="labels that match")
    chosen = parser.parse_args()
    times, errors = recorded(), defaultdict[str, list[float]](list)
    for one in LAUNCHES:
        if one.half != chosen.half or not re.search(chosen.only, one.label):
            continue
        try:
            found = ratios(one, times[one.label]["median_s"])
        except ToolkitError as error:
            print(f"{one.label:42} {error}", flush=True)
            continue
        if found is not None:
            print(f"{one.label:42} {found[0]:.2f}  at boost {found[1]:.2f}", flush=True)
            errors[one.family].append(abs(found[0] - 1))
    if not errors:
        sys.exit("error: no launch was predicted: give another --only")
    for family, of_family in errors.items():
        mean, middle = fmean(of_family), median(of_family)
        print(f"{family:10} {len(of_family):3} launches, mean {mean:.1%}, median {middle:.1%}")


if __name__ == "__main__":
    main()
