"""Times and counters of the listed launches on the GPU that is here.

    python -m validation.public_launches.measure CUBINS --output times.jsonl --limit-s 100
    python -m validation.public_launches.measure CUBINS --output counts.jsonl --count 60
    python -m validation.public_launches.measure CUBINS --record times.jsonl counts.jsonl

CUBINS is the folder that `capture` filled. Each launch is timed between two CUDA events, after
launches on the same stream (`toolkit.gpu.event_timer`), with L2 clean, dirty and warm: medians of
SAMPLES. Before each sample its arrays get their content again, but not between the launch that
makes L2 warm and the one that is timed. `again_s` is a launch on what another one left: where it
differs, a warm time is of other work. A launch that fails or hangs ends its process, and the next
process goes on behind it. `--count` runs
launches once under Nsight Compute. `--record` writes the records of parts; nothing is printed of
the times, so that a part that is held out stays unread.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from analysis.errors import ToolkitError, first_line
from analysis.l2_state import L2State
from toolkit.gpu.context import Gpu
from toolkit.gpu.environment import GpuMonitor
from toolkit.gpu.event_timer import HOLD_NANOSECONDS
from toolkit.gpu.nsight_compute.ncu import unknown_metrics
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.sass.module_variables import symbols_of as variables_of
from validation.public_launches.listed import (
    PARTS,
    SEEDS,
    Listed,
    Part,
    gap_of,
    listed,
    write_measurements,
)

SAMPLES, SAMPLES_OF_LONG, LONG_S, LONGEST_S = 9, 3, 5e-3, 50e-3
HANGS_S = 10.0
AHEAD = 6
BUSY = 400  # fillings of L2 that raise the clock
UNITS = {
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
    "FP32": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed",
    "integer products": "sm__inst_executed_pipe_fmaheavy.avg.pct_of_peak_sustained_elapsed",
    "integers and logic": "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_elapsed",
    "FP64": "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_elapsed",
    "half precision": "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_elapsed",
    "special functions": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
    "constants": "idc__request_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "load/store unit": "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "L1": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "shared memory": "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
    "L1 tags": "l1tex__t_output_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "L2 tags": "lts__t_tag_requests.avg.pct_of_peak_sustained_elapsed",
    "L2 data": "lts__d_sectors.avg.pct_of_peak_sustained_elapsed",
    "atomics at L2": "lts__t_sectors_op_atom.avg.pct_of_peak_sustained_elapsed",
    "reductions at L2": "lts__t_sectors_op_red.avg.pct_of_peak_sustained_elapsed",
    "DRAM": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}
OTHERS = {
    "time_ns": "gpu__time_duration.sum",
    "active SMs": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "active SMs max": "sm__cycles_active.max.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    **{
        f"stall {reason}": f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in (
            "long_scoreboard", "short_scoreboard", "barrier", "wait", "math_pipe_throttle",
            "lg_throttle", "mio_throttle", "membar", "drain", "imc_miss", "no_instruction",
            "not_selected", "dispatch_stall", "sleeping", "branch_resolve",
        )
    },
}  # fmt: skip


class OnDevice:
    """A listed launch on an open GPU, with a copy of the content of its arrays."""

    def __init__(self, gpu: Gpu, one: Listed, arguments: Sequence[Any], cubins: Path) -> None:
        self._gpu, self._pairs, passed = gpu, list[tuple[Any, Any, int]](), list[Any]()
        for argument in arguments:
            if not isinstance(argument, np.ndarray):
                is_half = isinstance(argument, np.float16)  # PyCUDA packs none
                passed.append(argument.view(np.uint16) if is_half else argument)
                continue
            kept, used = gpu.upload(argument), gpu.allocate(argument.nbytes)
            self._pairs.append((used, kept, argument.nbytes))
            passed.append(used)
        code = one.code(cubins)
        kernel = gpu.load_image(code.image, one.symbol)
        contents = one.symbols()
        setup = LaunchSetup(symbols=contents) if contents else PLAIN
        if contents:
            for symbol, content in variables_of(code, contents).items():
                kernel.module.write(symbol, content)
        self.launch = kernel.prepared(one.geometry, passed, setup=setup)
        self.restore()

    def restore(self) -> None:
        for used, kept, size in self._pairs:
            self._gpu.driver.memcpy_dtod_async(used, kept, size)

    def free(self) -> None:
        for used, kept, _ in self._pairs:
            used.free()
            kept.free()


def timed(gpu: Gpu, one: OnDevice, hold_ns: int) -> dict[str, Any]:
    """Medians of a launch for each state of L2, in seconds."""
    one.launch()
    gpu.synchronize()
    for _ in range(BUSY if not hasattr(gpu, "is_busy") else 8):
        gpu.timer.fill_l2()
    gpu.is_busy = True  # type: ignore[attr-defined]
    one.restore()
    first_s = gpu.timer.time(one.launch, l2=L2State.DIRTY)
    count = SAMPLES if first_s < LONG_S else SAMPLES_OF_LONG if first_s < LONGEST_S else 1
    found: dict[str, Any] = {"samples": count, "hold_ns": hold_ns}
    for state in L2State:
        samples_s = []
        for _ in range(count):
            one.restore()
            samples_s.append(gpu.timer.time(one.launch, l2=state))
        found[f"{state}_s"] = median(samples_s)
        found[f"{state}_range_s"] = [min(samples_s), max(samples_s)]
    again_s = []
    for _ in range(count):
        one.restore()
        one.launch()
        again_s.append(gpu.timer.time(one.launch, l2=L2State.DIRTY))
    return found | {"again_s": median(again_s)}


def child(cubins: Path, names: Sequence[str], output: Path, *, counts: bool, hold_ns: int) -> None:
    """Time, or launch once between profiler marks, each of these launches."""
    known = {one.name: one for one in listed()}
    wanted = [known[name] for name in names]
    with (
        Gpu() as gpu,
        ThreadPoolExecutor(AHEAD) as makers,
        output.open("a") as out,
    ):
        made = [makers.submit(one.made) for one in wanted[:AHEAD]]

        def told(row: dict[str, Any]) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        gpu.timer.hold_for(hold_ns)
        for place, one in enumerate(wanted):
            arguments = made[place].result()
            made[place] = None  # type: ignore[call-overload]
            if place + AHEAD < len(wanted):
                made.append(makers.submit(wanted[place + AHEAD].made))
            wait(
                [future for future in made if future is not None]
            )  # no thread runs beside a launch
            told({"begun": one.name})
            try:
                launch = OnDevice(gpu, one, arguments, cubins)
                if counts:
                    gpu.timer.fill_l2(L2State.DIRTY)
                    gpu.synchronize()
                    gpu.driver.start_profiler()
                    launch.launch()
                    gpu.synchronize()
                    gpu.driver.stop_profiler()
                    told({"name": one.name})
                else:
                    found = timed(gpu, launch, hold_ns)
                    with GpuMonitor(gpu.pci_bus_id) as monitor:
                        found["sm_clock_hz"] = monitor.state().sm_clock_hz
                    told({"name": one.name} | found)
                launch.free()
            except (ToolkitError, gpu.driver.Error) as error:
                told({"name": one.name, "failed": first_line(error)})
                out.flush()
                os._exit(1)  # after a fault every call fails, and PyCUDA aborts


def in_children(command: list[str], names: list[str], output: Path, limit_s: float) -> None:
    """Run children until all launches are done, or time is up."""
    ends = time.monotonic() + limit_s
    while names and time.monotonic() < ends:
        process = subprocess.Popen([*command, "--child", *names])
        size, changed = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            now = output.stat().st_size if output.exists() else 0
            if now != size:
                size, changed = now, time.monotonic()
            if time.monotonic() > min(ends, changed + HANGS_S):
                process.kill()
                process.wait()
        rows = list(rows_of(output))
        done = {row["name"] for row in rows if "name" in row}
        begun = [row["begun"] for row in rows if "begun" in row]
        if begun and begun[-1] not in done and time.monotonic() < ends:
            done.add(begun[-1])
            with output.open("a") as out:
                out.write(json.dumps({"name": begun[-1], "failed": "ended its process"}) + "\n")
        left = [name for name in names if name not in done]
        if len(left) == len(names) and not begun:
            print(f"no launch was begun, exit status {process.returncode}")
            return
        names = left


def child_of(cubins: Path, output: Path, hold_ns: int = HOLD_NANOSECONDS) -> list[str]:
    return [
        sys.executable,
        "-m",
        "validation.public_launches.measure",
        str(cubins),
        "--output",
        str(output),
        "--hold-ns",
        str(hold_ns),
    ]


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else []:
        yield json.loads(line)


def count(cubins: Path, names: list[str], output: Path, limit_s: float) -> None:
    """Metrics of launches, by Nsight Compute. Metrics that it does not know are left out."""
    metrics, log = {**UNITS, **OTHERS}, output.with_suffix(".csv")
    ends = time.monotonic() + limit_s
    for _ in range(2):
        command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
        command += ["--page", "raw", "--metrics", ",".join(metrics.values())]
        command += ["--print-units", "base", "--log-file", str(log)]
        command += [*child_of(cubins, output), "--counts", "--child", *names]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said = process.communicate(timeout=max(1.0, ends - time.monotonic()))[0].decode()
        except subprocess.TimeoutExpired:
            process.terminate()
            said = process.communicate()[0].decode()
        text = log.read_text() if log.exists() else ""
        unknown = unknown_metrics(said + text, list(metrics.values()))
        if not unknown:
            break
        print(f"not known: {', '.join(unknown)}")
        metrics = {label: name for label, name in metrics.items() if name not in unknown}
    lines = text[text.find('"ID"') :].splitlines() if '"ID"' in text else []
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID")]
    done = [row["name"] for row in rows_of(output) if "name" in row and "failed" not in row]
    with output.open("a") as out:
        for name, row in zip(done, rows, strict=False):
            found = {
                label: float(row[metric].replace(",", ""))
                for label, metric in metrics.items()
                if row.get(metric, "").replace(",", "").replace(".", "", 1).isdigit()
            }
            out.write(json.dumps({"counted": name, "kernel": row["Kernel Name"]} | found) + "\n")
    print(f"{len(rows)} of {len(names)} launches counted")
    if not rows:
        print(said[-500:], text[-1500:])


def record(files: Sequence[Path], parts: Sequence[Part]) -> None:
    """Write the records of the parts that were measured; of two times the later file's.

    Launches of the first half that were timed beside a later part give the gap of its times.
    """
    rows = [row for path in files for row in rows_of(path)]
    times: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row.get("name")
        if name and ("dirty_s" in row or ("failed" in row and name not in times)):
            times[name] = row
    counts = {row.pop("counted"): row for row in rows if "counted" in row}
    for part in parts:
        names = [one.name for one in listed(part) if one.name in times]
        if not names:
            continue
        known = {one.name for one in listed("first")} if part in SEEDS else set[str]()
        beside = [row for name, row in times.items() if name in known and "failed" not in row]
        write_measurements(
            part,
            {"device": "h200"}
            | ({"gap": gap_of(beside), "beside": beside} if beside else {})
            | {
                "times": [times[name] for name in names],
                "counters": [{"name": name} | counts[name] for name in names if name in counts],
            },
        )
        print(f"{part}: {len(names)} of {len(listed(part))} launches")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cubins", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--limit-s", type=float, default=100.0)
    parser.add_argument("--hold-ns", type=int, default=HOLD_NANOSECONDS, help="before launches")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--count", type=int, metavar="N", help="count N of each part instead")
    parser.add_argument("--part", choices=PARTS, help="launches of this part alone")
    parser.add_argument("--record", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--counts", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.record:
        record(chosen.record, [chosen.part] if chosen.part else PARTS)
    elif chosen.child:
        child(
            chosen.cubins,
            chosen.child,
            chosen.output,
            counts=chosen.counts,
            hold_ns=chosen.hold_ns,
        )
    elif chosen.count:
        names = chosen.only or []
        for part in () if chosen.only else [chosen.part] if chosen.part else PARTS:
            of_part = [one.name for one in listed(part)]
            names += of_part[:: max(1, len(of_part) // chosen.count)][: chosen.count]
        count(chosen.cubins, names, chosen.output, chosen.limit_s)
    else:
        names = chosen.only or [one.name for one in listed(chosen.part)]
        command = child_of(chosen.cubins, chosen.output, chosen.hold_ns)
        in_children(command, names, chosen.output, chosen.limit_s)
        rows = [row for row in rows_of(chosen.output) if "name" in row]
        failed = [row for row in rows if "failed" in row]
        print(f"{len(rows) - len(failed)} of {len(names)} launches timed, {len(failed)} failed")


if __name__ == "__main__":
    main()
