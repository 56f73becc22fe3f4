"""Errors of predicted times of held-out launches, by limiter: analysis/comparison/held_out.py.

python -m benchmarks.errors_by_limiter

It predicts the held-out launches of `benchmarks.prediction_errors` (the part *final* of those on
trial, other parameters of rungs, published times), and writes the table that `simulate` reads,
which takes some minutes. Files that `prediction_errors --json` wrote take the place of what they
hold.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from analysis.comparison.held_out import HeldOut, Kernels
from analysis.timing.predicted import Resource
from benchmarks.prediction_errors import (
    LIMIT_S,
    Cell,
    ladder,
    on_trial,
    published,
    ratio,
)
from validation import ROOT
from validation.timing.trial_launches import DEVICES
from validation.timing.trial_launches import recorded as recorded_trial

TABLE = ROOT / "analysis" / "comparison" / "held_out.py"
MARK = "HELD_OUT: tuple[HeldOut, ...] = ("
NO_LIMIT_S = 600.0
TRIAL, LADDER, PUBLISHED = "final", "ladder", "published"


def held_out(cells: Mapping[str, Sequence[Cell]]) -> Iterator[HeldOut]:
    """Errors by device, kind of kernel and limiter, of cells by the part that they are of."""
    errors: dict[tuple[str, Kernels, Resource], list[float]] = defaultdict(list)
    for part, of_part in cells.items():
        kernels: Kernels = "other kernels" if part == TRIAL else "ladder"
        for cell in of_part:
            found = ratio(cell)
            if found is not None and (part != LADDER or cell["held_out"]):
                place = cell["timed_on"], kernels, Resource(cell["limiter"])
                errors[place].append(abs(found - 1))
    for (device, kernels, limiter), of_place in sorted(errors.items()):
        yield HeldOut(
            device=device,
            kernels=kernels,
            limiter=limiter,
            launches=len(of_place),
            mean_error=round(fmean(of_place), 3),
        )


def predicted(known: Mapping[str, Sequence[Cell]]) -> dict[str, list[Cell]]:
    """All held-out launches, each `timed_on` a device. Those `known` are not predicted again."""
    keys = {recorded_trial(gpu)["device"]: gpu for gpu in DEVICES}
    trials = list(known.get(TRIAL, ()))
    for key, gpu in keys.items():
        if not any(cell["timed_on"] == key for cell in trials):
            trials += on_trial(TRIAL, gpu, NO_LIMIT_S)
    return {
        TRIAL: trials,
        LADDER: list(known.get(LADDER) or ladder(LIMIT_S, only_held_out=True)),
        PUBLISHED: list(known.get(PUBLISHED) or published(LIMIT_S)),
    }


def written(rows: Sequence[HeldOut], text: str) -> str:
    """The text of the module with these rows in place of its own."""
    lines = [
        f'    HeldOut("{one.device}", "{one.kernels}", Resource.{one.limiter.name}, '
        f"{one.launches}, {one.mean_error}),"
        for one in rows
    ]
    return text.partition(MARK)[0] + "\n".join([MARK, *lines, ")", ""])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    known: dict[str, list[Cell]] = defaultdict(list)
    for file in parser.parse_args(argv).files:
        for part, cells in json.loads(file.read_text(encoding="utf-8")).items():
            known[part] += cells
    rows = list(held_out(predicted(known)))
    TABLE.write_text(written(rows, TABLE.read_text(encoding="utf-8")), encoding="utf-8")
    for one in rows:
        print(
            f"{one.device:9}{one.kernels:14}{one.limiter:20}{one.launches:4}{one.mean_error:7.1%}"
        )


if __name__ == "__main__":
    main()
