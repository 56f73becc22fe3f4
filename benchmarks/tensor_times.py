"""Times of the launches of validation/timing/tensor_launches.py, by the burst protocol.

    python -m benchmarks.tensor_times --output tensor.json     # needs a GPU of sm_90
    python -m benchmarks.tensor_times --public CUBINS --output public.json.xz

`--public` times the launches of validation/timing/public_tensor instead, with the cubins that
`validation.timing.public_tensor.build` wrote, and prints no times: they are held out.

After a second without work a launch is timed nine times by events, with L2 flushed before each; the
median counts. Some rows of each result are compared with float64. What fails is recorded with
its error, and the file is written anew after every launch.
"""

from __future__ import annotations

import argparse
import lzma
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from analysis.errors import ToolkitError, first_line
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor, environment
from toolkit.gpu.launch import placed
from toolkit.launch.launch import buffers_of
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.timing.public_tensor.launch import CODE
from validation.timing.public_tensor.launches import launches as public_launches
from validation.timing.tensor_launches import CUBINS, LAUNCHES, Arguments, TensorLaunch

IDLE_S, TIMES = 1.0, 9
LIMIT_S = 240.0  # what is left then is recorded as not timed
# of the largest number of a result: half sums and outputs, and FP8's short sums
TOLERANCE = 2e-2

Cell = dict[str, Any]
Made = tuple[Arguments, list[tuple[int, np.ndarray[Any, Any]]]]


def _made(one: TensorLaunch) -> Made:
    arguments = one.make()
    return arguments, one.checks(arguments)


def _check(result: np.ndarray[Any, Any], start: int, expected: np.ndarray[Any, Any]) -> float:
    """The largest error of some rows, which begin at `start`, relative to their largest number."""
    if result.dtype == np.uint16:
        result = (result.astype(np.uint32) << 16).view(np.float32)
    found = result[start : start + expected.size].astype(np.float64).reshape(expected.shape)
    error = float(abs(found - expected).max() / abs(expected).max())
    if not error <= TOLERANCE:
        raise ToolkitError(
            f"rows from number {start} on are wrong by {error:.3g} of the largest one"
        )
    return error


def _timed(gpu: Gpu, monitor: GpuMonitor, one: TensorLaunch, made: Made) -> Cell:
    arguments, checks = made
    arrays = buffers_of(arguments)
    buffers = {position: gpu.upload(array) for position, array in arrays.items()}
    kernel = gpu.load_image(one.code.image, one.symbol)
    launch = kernel.prepared(
        Geometry(grid=one.grid, block=one.block, dynamic_shared_bytes=one.dynamic_shared_bytes),
        placed(arguments, buffers, {}),
    )
    with gpu.launch_errors(one.label):
        launch()
        gpu.synchronize()
    cell: Cell = {}
    if checks:
        output = one.output_of(arguments)
        result = np.empty(arrays[output].size, arrays[output].dtype)
        gpu.download(buffers[output], into=result)
        cell["error_of_result"] = max(_check(result, *check) for check in checks)
    time.sleep(IDLE_S)
    samples = [gpu.timer.time(launch, l2=L2State.DIRTY) for _ in range(TIMES)]
    clock = monitor.state().sm_clock_hz
    warm = [gpu.timer.time(launch, l2=L2State.WARM) for _ in range(TIMES)]
    return cell | {
        "median_s": median(samples),
        "samples_s": samples,
        "warm_s": median(warm),
        "sm_clock_hz_after": clock,
    }


def time_all(
    gpu: Gpu, launches: Sequence[TensorLaunch], code: Path, output: Path, limit_s: float
) -> Iterator[tuple[str, Cell]]:
    """Time launches and write what they took; yields label and record of each.

    `code` is the file that says which machine code they have.
    """
    monitor, started = GpuMonitor(gpu.pci_bus_id), time.monotonic()
    cells: dict[str, Cell] = {}
    document = {
        "schema_version": 1,
        "device": gpu.device.key,
        "recorded_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": asdict(environment(monitor)),
        "cubins_sha256": sha256(code.read_bytes()).hexdigest(),
        "idle_s": IDLE_S,
        "launches": cells,
    }
    with ThreadPoolExecutor(1) as pool:  # the next operands are drawn while the GPU has no work
        ahead = pool.submit(_made, launches[0])
        for k, one in enumerate(launches):
            cell: Cell = {"family": one.family, "half": one.half}
            try:
                if time.monotonic() - started > limit_s:
                    raise ToolkitError("not timed: the time is over")
                made = ahead.result()
                if k + 1 < len(launches):
                    ahead = pool.submit(_made, launches[k + 1])
                cell |= _timed(gpu, monitor, one, made)
            except Exception as error:  # the others go on
                cell["error"] = first_line(error)
                if not gpu.alive:
                    raise
            finally:
                cells[one.label] = cell
                text = recordings.text_of(document).encode()
                write_atomically(output, lzma.compress(text) if output.suffix == ".xz" else text)
            yield one.label, cell


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("tensor.json"))
    parser.add_argument("--only", default="", metavar="PATTERN", help="labels that match")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    parser.add_argument("--public", type=Path, metavar="CUBINS", help="the list of public kernels")
    chosen = parser.parse_args()
    all_of_list = public_launches(chosen.public) if chosen.public else LAUNCHES
    launches = [one for one in all_of_list if re.search(chosen.only, one.label)]
    if not launches:
        sys.exit(f"error: --only {chosen.only}: no launch has such a label")
    try:
        with Gpu() as gpu:
            code = CODE if chosen.public else CUBINS
            for label, cell in time_all(gpu, launches, code, chosen.output, chosen.limit_s):
                shown = "timed" if chosen.public else f"{1e6 * cell.get('median_s', 0):.1f} us"
                print(f"{label}: {cell.get('error', shown)}", flush=True)
    except ToolkitError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
