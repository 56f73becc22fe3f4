"""Count the configurations of a recording again under Nsight Compute; print JSON of the same form.

    python -m validation.counters.hardware_counters 256x256x256 > new.json

Needs a GPU, PyCUDA, nvcc, and ncu with permission to read hardware counters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import product

import numpy as np

from analysis.problem import Gemm, parse_shape
from kernels import Variant, parse_selection
from kernels.selection import Selection
from toolkit.gpu.context import Gpu
from toolkit.gpu.nvcc import nvcc_version
from validation import ROOT, recordings
from validation.counters.counting import counted, launch
from validation.counters.record_counters import Product

RECORDING = ROOT / "tests/kernels/recorded/counters_sm_90.json"
MODULE = "validation.counters.hardware_counters"

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


def cases(shapes: Sequence[Gemm]) -> Iterator[tuple[Selection, Variant, Gemm]]:
    """The configurations of the recording, at every shape that they take."""
    launches = recordings.read(RECORDING)["launches"]
    for shape, label in product(shapes, dict.fromkeys(x["label"] for x in launches)):
        selection = parse_selection(label)
        variant = selection.variant
        assert isinstance(variant, Variant)
        if not variant.max_extent or max(shape.m, shape.n) <= variant.max_extent:
            yield selection, variant, variant.executed(shape)


def launch_all(shapes: Sequence[Gemm]) -> None:
    with Gpu() as gpu:
        for selection, variant, shape in cases(shapes):
            kernel = gpu.load(
                variant.source,
                variant.entry,
                name=variant.file,
                defines=variant.macros(selection.parameters),
            )
            arguments = Product(selection.label, shape).make(np.random.default_rng())
            geometry = variant.geometry(selection.parameters, shape)
            launch(gpu, kernel.cubin, geometry, arguments)


def collect(shapes: Sequence[Gemm]) -> dict[str, object]:
    """One entry per launch: label, executed shape and counters, with their provenance."""
    names, launched = [str(shape) for shape in shapes], list(cases(shapes))
    found = counted(METRICS, MODULE, "--launch", *names, launches=len(launched))
    with Gpu() as gpu:
        device = gpu.device
    return {
        "device": device.name,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        "compiler": nvcc_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"python -m {MODULE} {' '.join(names)}",
        "launches": [
            {"label": selection.label, "executed_shape": str(shape), "counters": counters}
            for (selection, _, shape), (_, counters) in zip(launched, found, strict=True)
        ],
    }


def main(arguments: list[str]) -> None:
    launching = arguments[:1] == ["--launch"]
    shapes = [parse_shape(text) for text in arguments[launching:]]
    if launching:
        launch_all(shapes)
    else:
        print(recordings.text_of(collect(shapes)), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
