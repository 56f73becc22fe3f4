"""Errors of predicted times of public kernels on tensor cores against an H200. Needs no GPU.

    python -m benchmarks.public_tensor_errors CUBINS --screen
    python -m benchmarks.public_tensor_errors CUBINS --blind blind.json --processes 32
    python -m benchmarks.public_tensor_errors --join blind.json
    python -m benchmarks.public_tensor_errors --table        # of docs/validation.md

CUBINS is the folder that `validation.timing.public_tensor.build` filled. `--screen` says which
launches have no prediction, and why, but no time. `--blind` writes predictions alone, at the clock
that the model predicts and at the recorded one, and prints none. `--join` adds what was measured,
which opens the list: do it once, with the model committed before.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from analysis.devices import find_device, with_clock
from benchmarks.tensor_clocks import PUBLIC_CLOCKS, recorded_clocks
from benchmarks.tensor_errors import DEVICE, Prediction, prediction_of
from validation import recordings
from validation.timing.public_tensor.launch import RECORDED
from validation.timing.public_tensor.launches import FAMILIES, launches

TIMES = RECORDED / "public_tensor_h200.json.xz"
PREDICTED = RECORDED / "public_tensor_predicted_h200.json"
FACTOR = 1.6
MISSING = 0.6  # error that a launch without a predicted time counts as
SHORT_S = 50e-6
WARPGROUPS = re.compile(r"\b[HIQ]GMMA\b")

Cell = dict[str, Any]


def predicted(cubins: Path, label: str, clock_hz: float | None = None) -> Prediction:
    """Prediction for a launch of the list, at the clock that the model predicts, or at another."""
    one = next(one for one in launches(cubins) if one.label == label)
    device = find_device(DEVICE)
    return prediction_of(one, with_clock(device, clock_hz / 1e6) if clock_hz else device)


def screened(cubins: Path, processes: int) -> Iterator[str]:
    """A line for each launch: if it has a predicted time, but not which."""
    labels = [one.label for one in launches(cubins)]
    with ProcessPoolExecutor(processes) as pool:
        found = pool.map(partial(predicted, cubins), labels)
        for label, one in zip(labels, found, strict=True):
            yield f"{label}: {'taken' if one.time_s else one.why_not}"


def blind(cubins: Path, processes: int) -> dict[str, Cell]:
    """Predictions of all launches, by label."""
    clocks = recorded_clocks(PUBLIC_CLOCKS)
    listed = launches(cubins)
    labels = [one.label for one in listed]
    with ProcessPoolExecutor(processes) as pool:
        at_clocks = [*[None] * len(labels), *(clocks[one] for one in labels)]
        found = list(pool.map(partial(predicted, cubins), [*labels, *labels], at_clocks))
    cells = {}
    for one, plain, at_clock in zip(listed, found, found[len(labels) :], strict=False):
        text = " ".join(each.text for each in one.code.instructions)
        cells[one.label] = {
            "family": one.family,
            "by": "wgmma" if WARPGROUPS.search(text) else "mma.sync",
            "predicted_s": _rounded(plain.time_s),
            "at_recorded_clock_s": _rounded(at_clock.time_s),
            "why_not": plain.why_not,
        }
    return cells


def _rounded(time_s: float | None) -> float | None:
    return None if time_s is None else float(f"{time_s:.5g}")


def measured() -> Mapping[str, Cell]:
    """Times of the launches on an H200, by label."""
    found: Mapping[str, Cell] = json.loads(lzma.decompress(TIMES.read_bytes()))["launches"]
    return found


def joined(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Predictions beside measured times; launches that were not measured are left out."""
    times = measured()
    return {
        label: cell | {"measured_s": times[label]["median_s"]}
        for label, cell in cells.items()
        if "median_s" in times.get(label, {})
    }


def error(cell: Cell, time: str = "predicted_s") -> float:
    """Distance of predicted over measured time from 1."""
    return MISSING if cell[time] is None else abs(cell[time] / cell["measured_s"] - 1)


def is_off(cell: Cell) -> bool:
    """True if a predicted time is off by more than FACTOR, or missing."""
    if cell["predicted_s"] is None:
        return True
    ratio = cell["predicted_s"] / cell["measured_s"]
    return not 1 / FACTOR <= ratio <= FACTOR


def _groups(cells: Sequence[Cell]) -> Iterator[tuple[str, Sequence[Cell]]]:
    for family in FAMILIES:
        yield family, [cell for cell in cells if cell["family"] == family]
    for product in ("mma.sync", "wgmma"):
        yield f"by {product}", [cell for cell in cells if cell["by"] == product]
    yield "below 50 µs", [cell for cell in cells if cell["measured_s"] < SHORT_S]
    yield "all", cells


def table(cells: Iterable[Cell]) -> Iterator[str]:
    """Errors by family, by kind of product, of short launches and of all, as lines of Markdown."""
    yield (
        "| launches | number | mean | median | predicted / measured | mean at the recorded clock |"
    )
    yield "|---|---|---|---|---|---|"
    for name, group in _groups([*cells]):
        if not group:
            continue
        errors = [error(cell) for cell in group]
        ratios = [x["predicted_s"] / x["measured_s"] for x in group if x["predicted_s"]]
        yield (
            f"| {name} | {len(group)} | {fmean(errors):.1%} | {median(errors):.1%} | "
            f"{min(ratios):.2f} to {max(ratios):.2f} | "
            f"{fmean(error(cell, 'at_recorded_clock_s') for cell in group):.1%} |"
        )


def _sorted_lines(cells: Mapping[str, Cell]) -> Iterator[str]:
    for label, cell in sorted(cells.items(), key=lambda item: -error(item[1])):
        if cell["predicted_s"] is None:
            yield f"{label:42} {cell['why_not']}"
        else:
            yield (
                f"{label:42} {cell['predicted_s'] / cell['measured_s']:.2f}  "
                f"{1e6 * cell['measured_s']:.1f} µs measured"
            )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cubins", type=Path, nargs="?")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--screen", action="store_true", help="whether each is predicted")
    asked.add_argument("--blind", type=Path, metavar="FILE", help="write predictions alone")
    asked.add_argument("--join", type=Path, metavar="FILE", help="add measured times: opens them")
    asked.add_argument("--table", action="store_true", help="print the errors as recorded")
    chosen = parser.parse_args(argv)
    if (chosen.screen or chosen.blind) and chosen.cubins is None:
        sys.exit("error: no folder of cubins was given")
    if chosen.screen:
        for line in screened(chosen.cubins, chosen.processes):
            print(line, flush=True)
    elif chosen.blind:
        cells = blind(chosen.cubins, chosen.processes)
        recordings.write(chosen.blind, {"device": DEVICE, "launches": cells})
        print(f"{len(cells)} launches, {sum(not x['predicted_s'] for x in cells.values())} without")
    else:
        if chosen.join:
            cells = joined(recordings.read(chosen.join)["launches"])
            recordings.write(PREDICTED, {"device": DEVICE, "launches": cells})
            print(*_sorted_lines(cells), sep="\n")
        found = recordings.read(PREDICTED)["launches"].values()
        print(*table(found), sep="\n")
        print(f"off by more than {FACTOR}: {sum(map(is_off, found))}")


if __name__ == "__main__":
    main()
