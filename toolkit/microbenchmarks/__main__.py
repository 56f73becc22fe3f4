"""Measure the constants of the GPU that is here.

    python -m toolkit.microbenchmarks --output constants.json

`simulate` and `profile` predict with them: `--constants constants.json` (docs/machines.md).
Takes at most two minutes; the file is written anew after every constant. A benchmark that fails is
recorded with its error, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis.errors import ToolkitError, first_line
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor
from toolkit.microbenchmarks import (
    atomics,
    barriers,
    bulk,
    clock,
    cluster_copies,
    code,
    contention,
    copies,
    first_use,
    global_memory,
    irregular,
    issue,
    l2_sharing,
    launch,
    local_memory,
    mixes,
    operands,
    pieces,
    queues,
    registers,
    shared,
    tensor,
    tiles,
    uniform_constants,
    waiting,
    warpgroup,
)
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.record import Benchmark
from toolkit.store.user_files import write_atomically

MODULES = (
    issue,
    registers,
    code,
    queues,
    shared,
    barriers,
    bulk,
    global_memory,
    atomics,
    contention,
    copies,
    uniform_constants,
    l2_sharing,
    cluster_copies,
    irregular,
    pieces,
    mixes,
    waiting,
    launch,
    local_memory,
    first_use,
    operands,
    tensor,
    warpgroup,
    tiles,
    clock,
)
Constants = dict[str, dict[str, Any]]  # by name, as they stand in the file
FILE_COLUMNS = 160  # of a table that goes to a file: no terminal tells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("constants.json"), metavar="FILE")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="names that contain one of these"
    )
    chosen = parser.parse_args()
    try:
        with Gpu() as gpu:
            constants = _measure_all(gpu, chosen.output, chosen.only)
    except ToolkitError as error:
        sys.exit(f"error: {error}")
    _show(constants)
    print(chosen.output)


def _measure_all(gpu: Gpu, output: Path, only: Sequence[str]) -> Constants:
    bench = Bench(gpu)
    about = _about(bench)
    constants: Constants = {}
    started = time.monotonic()

    def write() -> None:
        text = json.dumps({**about, "constants": constants}, indent=1, allow_nan=False)
        write_atomically(output, text)

    for module in MODULES:
        chosen = [
            benchmark
            for benchmark in module.BENCHMARKS
            if any(text in benchmark.name for text in only)
        ]
        broken = None
        if chosen and module.PROBES:
            try:
                bench.add(module.PROBES)
            except Exception as error:  # each part stands alone
                broken = f"{type(error).__name__}: {first_line(error)}"
        for benchmark in chosen:
            if not gpu.alive:
                broken = broken or "not measured: the CUDA context is lost"
            constants[benchmark.name] = _measured(bench, benchmark, broken)
            about["seconds"] = round(time.monotonic() - started, 1)
            about["compiler"] = bench.compiler
            write()
    if gpu.alive:
        about["clock_hz_after"] = bench.clock_hz()
        write()
    return constants


def _measured(bench: Bench, benchmark: Benchmark, broken: str | None) -> dict[str, Any]:
    """A constant, or why it is none: where a benchmark fails the others go on."""
    constant = {"value": None, "unit": benchmark.unit, "how": benchmark.how}
    if broken is None:
        try:
            found = constant | asdict(benchmark.measure(bench))
            json.dumps(found, allow_nan=False)  # numbers that JSON has
            return found
        except Exception as error:
            broken = f"{type(error).__name__}: {first_line(error)}"
    return constant | {"error": broken}


def _about(bench: Bench) -> dict[str, Any]:
    device = bench.device
    with GpuMonitor(bench.gpu.pci_bus_id) as monitor:
        clock = bench.clock_hz()  # busy, so that the clock is up when NVML is asked
        state = monitor.state()
        driver = monitor.driver_version
    return {
        "schema_version": 1,
        "device": device.key,
        "name": device.name,
        "architecture": device.sm_arch,
        "sm_count": device.sm_count,
        "driver": driver,
        "compiler": bench.compiler,
        "measured_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "clock_hz": clock,
        "nvml_sm_clock_hz": state.sm_clock_hz,
        "nvml_memory_clock_hz": state.memory_clock_hz,
        "boost_clock_hz": device.boost_clock_hz,
    }


def _show(constants: Constants) -> None:
    table = Table(box=None)
    for name in ("constant", "value", "low", "high", "unit"):
        table.add_column(name, no_wrap=name == "constant")
    for name, constant in constants.items():
        if "error" in constant:
            table.add_row(name, "–", "", "", constant["error"])
        else:
            numbers = (f"{constant[key]:.5g}" for key in ("value", "low", "high"))
            table.add_row(name, *numbers, constant["unit"])
    width = None if sys.stdout.isatty() else FILE_COLUMNS
    Console(width=width, highlight=False, emoji=False, markup=False).print(table)


if __name__ == "__main__":
    main()
