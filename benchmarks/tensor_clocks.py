"""SM clock of each launch of validation/timing/tensor_launches.py, as Nsight Compute counts it.

    ncu --clock-control none --cache-control none --csv --page raw \\
        --metrics gpu__time_duration.sum,sm__cycles_elapsed.max \\
        python -m benchmarks.tensor_clocks launch > clocks.csv   # needs a GPU of sm_90
    python -m benchmarks.tensor_clocks record clocks.csv         # needs none

With `--public CUBINS`, both take the launches of validation/timing/public_tensor. `launch` launches
each of them once, and `record` writes the recording that
`python -m benchmarks.tensor_errors` predicts with for its column "at the recorded clock".
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.geometry import Geometry
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import placed
from toolkit.launch.launch import buffers_of
from validation import recordings
from validation.timing.public_tensor.launches import launches as public_launches
from validation.timing.tensor_launches import LAUNCHES, RECORDED, TensorLaunch

PUBLIC_CLOCKS = RECORDED.with_name("public_tensor_clocks_h200.json")
CLOCKS = RECORDED.with_name("tensor_clocks_h200.json")
CYCLES, TIME = "sm__cycles_elapsed.max", "gpu__time_duration.sum"
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def clocks_in(lines: Iterable[str], launches: Sequence[TensorLaunch]) -> dict[str, float]:
    """SM clock of each launch, from the page `raw` of all of them, in order.

    Raises InputError if the page has another number of launches, or other kernels.
    """
    names, units, *rows = (row for row in csv.reader(lines) if len(row) > 2)
    of_row = [dict(zip(names, row, strict=True)) for row in rows]
    if [row["Kernel Name"] for row in of_row] != [one.symbol for one in launches]:
        raise InputError("the page has other launches than the list, or in another order")
    per_second = PER_SECOND[dict(zip(names, units, strict=True))[TIME]]
    return {
        one.label: float(f"{per_second * _number(row[CYCLES]) / _number(row[TIME]):.4g}")
        for one, row in zip(launches, of_row, strict=True)
    }


def _number(shown: str) -> float:
    return float(shown.replace(",", ""))


def recorded_clocks(path: Path = CLOCKS) -> Mapping[str, float]:
    """SM clock of each launch in Hz, by label."""
    found: Mapping[str, float] = recordings.read(path)["clock_hz"]
    return found


def launch_each(gpu: Gpu, launches: Sequence[TensorLaunch]) -> Iterator[str]:
    """Launch each of a list once; yields its label."""
    with ThreadPoolExecutor(1) as pool:  # the next operands are drawn meanwhile
        ahead = pool.submit(launches[0].make)
        for k, one in enumerate(launches):
            arguments: list[Any] = ahead.result()
            if k + 1 < len(launches):
                ahead = pool.submit(launches[k + 1].make)
            arrays = buffers_of(arguments)
            buffers = {position: gpu.upload(array) for position, array in arrays.items()}
            geometry = Geometry(
                grid=one.grid, block=one.block, dynamic_shared_bytes=one.dynamic_shared_bytes
            )
            kernel = gpu.load_image(one.code.image, one.symbol)
            with gpu.launch_errors(one.label):
                kernel.prepared(geometry, placed(arguments, buffers, {}))()
                gpu.synchronize()
            yield one.label


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--public", type=Path, metavar="CUBINS", help="the list of public kernels")
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("launch")
    tasks.add_parser("record").add_argument("page", type=Path)
    chosen = parser.parse_args()
    launches = public_launches(chosen.public) if chosen.public else LAUNCHES
    if chosen.task == "launch":
        with Gpu() as gpu:
            for label in launch_each(gpu, launches):
                print(label, flush=True)
        return
    with chosen.page.open(encoding="utf-8") as lines:
        found = clocks_in(lines, launches)
    recordings.write(
        PUBLIC_CLOCKS if chosen.public else CLOCKS,
        {"device": "h200", "tool": "Nsight Compute", "clock_hz": found},
    )


if __name__ == "__main__":
    main()
