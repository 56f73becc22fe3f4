"""Record what hardware counts below L1, as golden data for the model of traffic.

    python -m validation.traffic.record prepare FOLDER            # needs NVRTC, no GPU
    python -m validation.traffic.record record FOLDER --into FILE # needs a GPU, PyCUDA and ncu

`prepare` compiles the kernels; `record` launches those very cubins under Nsight Compute, which
flushes caches before each, several times over: L2's traffic differs a little from run to run.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np

from validation import recordings
from validation.traffic.launches import LAUNCHES, SOURCE

REPEATS = 5
METRICS = (
    "l1tex__m_xbar2l1tex_read_sectors.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)


def prepare(folder: Path) -> None:
    from toolkit.machine_code.compile import compile_cubin, compiler_version

    folder.mkdir(parents=True, exist_ok=True)
    source = SOURCE.read_text(encoding="utf-8")
    for kernel in {launch.kernel for launch in LAUNCHES}:
        cubin = compile_cubin(source, name=SOURCE.name, kernel=kernel, arch="sm_90")
        (folder / f"{kernel}.cubin").write_bytes(cubin.image)
    (folder / "compiler").write_text(compiler_version(), encoding="utf-8")


def launch_all(folder: Path) -> None:
    import pycuda.driver as cuda

    cuda.init()
    device = cuda.Device(0)
    context = device.make_context()
    try:
        most = max(launch.elements for launch in LAUNCHES)
        given = np.random.default_rng().random(most, dtype=np.float32)
        out, into = cuda.mem_alloc(given.nbytes), cuda.mem_alloc(given.nbytes)
        cuda.memcpy_htod(into, given)
        cuda.memcpy_htod(out, given)
        for launch in LAUNCHES:
            module = cuda.module_from_buffer((folder / f"{launch.kernel}.cubin").read_bytes())
            function = module.get_function(launch.kernel)
            function.prepare("PPi")
            cuda.start_profiler()
            for _ in range(REPEATS):
                function.prepared_call(launch.grid, launch.block, out, into, launch.side)
            context.synchronize()
            cuda.stop_profiler()
        print(device.name(), file=sys.stderr)
    finally:
        context.pop()


def record(folder: Path, into: Path) -> None:
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
    command += ["--print-units", "base", "--metrics", ",".join(METRICS)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "validation.traffic.record", "launch", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    runs: dict[str, dict[str, int]] = {}
    for row in rows:
        value = float(row["Metric Value"].replace(",", ""))
        runs.setdefault(row["ID"], {})[row["Metric Name"]] = round(value)
    if len(runs) != REPEATS * len(LAUNCHES):
        sys.exit(f"{len(runs)} launches were counted: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    counted = iter(runs.values())
    launches = []
    for launch in LAUNCHES:
        of_launch = [next(counted) for _ in range(REPEATS)]
        samples = {name: sorted(run[name] for run in of_launch) for name in METRICS}
        launches.append(
            {
                "label": launch.label,
                "counters": {name: int(median(values)) for name, values in samples.items()},
                "lowest": {name: values[0] for name, values in samples.items()},
                "highest": {name: values[-1] for name, values in samples.items()},
            }
        )
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True)
    recording = {
        "device": done.stderr.strip().splitlines()[-1],
        "compiler": (folder / "compiler").read_text(encoding="utf-8"),
        "ncu": version.stdout.strip().splitlines()[-1],
        "recorded": datetime.now(UTC).date().isoformat(),
        "repeats": REPEATS,
        "launches": launches,
    }
    recordings.write(into, recording)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("prepare", "record", "launch"):
        commands.add_parser(name).add_argument("folder", type=Path)
    commands.choices["record"].add_argument("--into", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.command == "prepare":
        prepare(chosen.folder)
    elif chosen.command == "record":
        record(chosen.folder, chosen.into)
    else:
        launch_all(chosen.folder)


if __name__ == "__main__":
    main()
