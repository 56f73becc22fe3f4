"""Count the configurations of a recording again under Nsight Compute; print JSON of the same form.

    python -m validation.counters.hardware_counters 256x256x256 > new.json

Needs a GPU, PyCUDA, nvcc, and ncu with permission to read hardware counters.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import numpy as np

from analysis.problem import Gemm, parse_shape
from kernels import Variant, parse_selection
from validation import ROOT, recordings

RECORDING = ROOT / "tests/kernels/recorded/counters_sm_90.json"

METRICS = (
    "smsp__inst_executed.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
)


def cases(shapes: list[Gemm]) -> Iterator[tuple[Variant, dict[str, int], Gemm]]:
    """The configurations of the recording, at every shape that they take."""
    launches = recordings.read(RECORDING)["launches"]
    for shape, label in product(shapes, dict.fromkeys(x["label"] for x in launches)):
        selection = parse_selection(label)
        variant = selection.variant
        assert isinstance(variant, Variant)
        if not variant.max_extent or max(shape.m, shape.n) <= variant.max_extent:
            yield variant, dict(selection.parameters), variant.executed(shape)


def launch_all(shapes: list[Gemm]) -> None:
    from toolkit.gpu.context import Gpu
    from toolkit.gpu.launch import OnGpu, task_of
    from toolkit.launch.launch import Launch

    rng = np.random.default_rng()
    with Gpu() as gpu:
        print(gpu.device.name, file=sys.stderr)
        architecture = int(gpu.device.sm_arch.removeprefix("sm_"))
        for variant, parameters, shape in cases(shapes):
            if not variant.runs_on(architecture):
                continue
            a = rng.random((shape.m, shape.k), dtype=np.float32)
            b = rng.random((shape.k, shape.n), dtype=np.float32)
            c = np.zeros((shape.m, shape.n), dtype=np.float32)
            sizes = map(np.int32, (shape.m, shape.n, shape.k))
            launch = Launch(
                source=variant.source,
                name=variant.file,
                kernel=variant.entry,
                geometry=variant.geometry(parameters, shape),
                arguments=[a, b, c, *sizes, np.float32(1), np.float32(0)],
                defines=variant.macros(parameters),
            )
            with OnGpu(task_of(launch), gpu) as held:
                held.execution()


def collect(shapes: list[Gemm]) -> dict[str, object]:
    """One entry per launch: label, executed shape and counters, with their provenance."""
    names = [str(shape) for shape in shapes]
    command = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(METRICS)]
    command += [
        "-k",
        "regex:^sgemm_",
        sys.executable,
        "-m",
        "validation.counters.hardware_counters",
        "--launch",
        *names,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    counters: dict[str, dict[str, int]] = {}
    for row in rows:
        value = int(row["Metric Value"].replace(",", ""))
        counters.setdefault(row["ID"], {})[row["Metric Name"]] = value
    return {
        "device": done.stderr.strip().splitlines()[-1],
        "compute_capability": rows[0]["CC"],
        "compiler": nvcc(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"python -m validation.counters.hardware_counters {' '.join(names)}",
        "launches": [
            {"label": variant.label(parameters), "executed_shape": str(shape), "counters": found}
            for (variant, parameters, shape), found in zip(
                cases(shapes), counters.values(), strict=True
            )
        ],
    }


def nvcc() -> str:
    from toolkit.gpu.nvcc import nvcc_version

    return nvcc_version()


def main(arguments: list[str]) -> None:
    launching = arguments[:1] == ["--launch"]
    shapes = [parse_shape(text) for text in arguments[launching:]]
    if launching:
        launch_all(shapes)
    else:
        print(recordings.text_of(collect(shapes)), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
