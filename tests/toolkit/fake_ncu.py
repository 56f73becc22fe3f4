"""Nsight Compute as the toolkit calls it, on a machine without one: a command that replays.

What it does wrong is in $FAKE_NCU, a JSON object of `Faults`. Each command line is added to the
file that it names as "history", and kernels of products are kept in the folder "known" from run to
run. The launching process is not run: its lines are said for it.
"""

import csv
import io
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

VERSION = """NVIDIA (R) Nsight Compute Command Line Profiler
Copyright (c) 2018-2025 NVIDIA Corporation
Version 2025.3.1.0 (build 36398880) (public-release)
"""
COLUMNS = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC",
]  # fmt: skip
RESOURCES = {
    "launch__registers_per_thread": 40,
    "launch__shared_mem_per_block_static": 8192,
    "launch__shared_mem_per_block_dynamic": 0,
}
UNITS = {"dram__bytes_read.sum": "byte", "launch__shared_mem_per_block_static": "byte/block"}
CUBLAS = ["cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "void splitKreduce_kernel<32>(T1)"]
COUNTING = ["--clock-control", "none", "--profile-from-start", "off", "--metrics"]
RAW = ["--csv", "--page", "raw", "--print-units", "base", "--log-file"]


@dataclass
class Faults:
    """Labels in lists are of launches; `lost` are those that spoil the whole table.

    They crash only in runs that count the metric `crashes_with`, where that is given; runs that
    count `fails_with` end before the first launch.
    """

    history: str = os.devnull
    known: str = ""
    permission: bool = True
    unavailable: bool = False
    unknown: list[str] = field(default_factory=list)
    not_counted: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    crashes_with: str = ""
    fails_with: str = ""
    hangs: list[str] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    dies: str = ""


def say(line):
    print(line, flush=True)


def value_of(metric, position):
    """Made-up count: distinct, and large enough for separators."""
    return RESOURCES.get(metric, 1000 * (position + 1) + sum(map(ord, metric)))


def kernels_of(entry, known):
    """Kernels of a launch. Those of products are kept in the folder `known`, if there is one."""
    if "kernels" in entry:
        return entry["kernels"]
    asked = (entry["variant"], *sorted(entry["parameters"].items()), entry["executed_shape"])
    kept = Path(known, f"{asked}.json")
    if not kept.exists():
        found = json.dumps(kernels_of_product(entry))
        if not known:
            return json.loads(found)
        kept.write_text(found)
    return json.loads(kept.read_text())


def kernels_of_product(entry):
    from analysis.problem import parse_shape  # half a second, for a few of the runs
    from kernels.selection import find
    from kernels.variant import Variant

    variant = find(entry["variant"])
    if not isinstance(variant, Variant):
        return [(name, (256, 1, 1), (64, 32, 1)) for name in CUBLAS]
    geometry = variant.geometry(entry["parameters"], parse_shape(entry["executed_shape"]))
    return [(variant.entry, geometry.block, geometry.grid)]


def rows_of(entry, metrics, faults):
    rows = []
    for position, (name, block, grid) in enumerate(
        [(entry["marker"], (1, 1, 1), (1, 1, 1)), *kernels_of(entry, faults.known)]
    ):
        values = [
            "n/a" if metric in faults.not_counted else f"{value_of(metric, position):,}"
            for metric in metrics
        ]
        place = [
            "833",
            "python3",
            "127.0.0.1",
            name,
            "1",
            "7",
            str(tuple(block)),
            str(tuple(grid)),
            "0",
            "9.0",
        ]
        rows.append([*place, *values])
    return rows


def as_table(rows, metrics):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*COLUMNS, *metrics])
    writer.writerow(["" for _ in COLUMNS] + [UNITS.get(metric, "") for metric in metrics])
    writer.writerows([str(number), *row] for number, row in enumerate(rows))
    return text.getvalue()


def count(arguments, faults):
    assert arguments[:5] == COUNTING, arguments
    metrics = arguments[5].split(",")
    assert arguments[6:12] == RAW, arguments
    log, (python, *module, folder), chosen = Path(arguments[12]), arguments[13:17], arguments[17:]
    assert (python, module) == (sys.executable, ["-m", "toolkit.gpu.nsight_compute.replay_process"])
    entries = json.loads(Path(folder, "launches.json").read_text())
    said = ["==PROF== Connected to process 833 (/usr/bin/python3.12)"]
    rows = []
    code = 0

    def end(*errors, code):
        told = [f"==ERROR== {error}" for error in errors]
        table = as_table(rows, metrics) if rows else "==WARNING== No kernels were profiled."
        log.write_text("\n".join([*said, *told, table]))
        return code

    unknown = [metric for metric in metrics if metric in faults.unknown]
    if unknown or faults.dies or faults.fails_with in metrics:
        say(f"error: {faults.dies}")
        died = "The application returned an error code (1)."
        return end(f"Failed to find metric {unknown[0]}" if unknown else died, code=1)
    for entry in (entry for entry in entries if entry["marker"] in chosen):
        label = entry["label"]
        say(f"begins {entry['marker']}")
        if not faults.permission or label in faults.lost:
            continue
        if faults.unavailable:
            return end(
                "An error was reported by the driver:",
                "Profiling failed because a driver resource was unavailable. Ensure that no other "
                "tool (like DCGM) is concurrently collecting profiling data.",
                f'Failed to profile "{kernels_of(entry, faults.known)[0][0]}" in process 833',
                code=9,
            )
        if label in faults.hangs:
            time.sleep(60)
        if label in faults.crashes and faults.crashes_with in ["", *metrics]:
            # what was there of a launch that it broke off in
            rows += rows_of(entry, metrics, faults)
            rows[-1:] = []
            return end("UnknownError", f'Failed to profile "{label}" in process 833', code=9)
        if label in faults.fails:
            say(f"fails {entry['marker']} {faults.fails[label]}")
            code = 1
            continue
        rows += rows_of(entry, metrics, faults)
    say("ends")
    if not faults.permission:
        return end(
            "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
            "Performance Counters on the target device 0. For instructions on enabling "
            "permissions and to get more information see "
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM",
            code=1,
        )
    if any(entry["label"] in faults.lost for entry in entries if entry["marker"] in chosen):
        rows = []
        return -11
    return end(code=code)


def main(arguments):
    faults = Faults(**json.loads(os.environ.get("FAKE_NCU", "{}")))
    with Path(faults.history).open("a") as history:
        print(json.dumps(arguments), file=history)
    if arguments == ["--version"]:
        print(VERSION)
        return 0
    return count(arguments, faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
