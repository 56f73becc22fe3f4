"""Rungs as they were compiled and with their multiply-adds reordered, timed beside cuBLAS.

    python -m benchmarks.reordered                          # needs a GPU, half a minute
    python -m benchmarks.reordered -v vectorized -s 4096 --json

Both images are loaded through PyCUDA and launched on the same matrices. Their outputs are compared
bit by bit before anything is timed; then plain, reordered and cuBLAS take turns. The same
difference on the model of an SM is printed by `python -m toolkit reorder`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from analysis.errors import ToolkitError
from analysis.problem import FLOAT_BYTES, Gemm, parse_shape
from benchmarks.gpu_operands import GpuOperands, Operands
from kernels.selection import parse_selection
from kernels.variant import Variant
from toolkit.gpu.context import POISON, Gpu
from toolkit.gpu.cublas import Cublas
from toolkit.reorder import Reordered, reorder
from toolkit.rungs.matrices import Workload

RUNGS = ("coarsened-2d", "vectorized")
SHAPES = ("1024", "2048", "4096")
SAMPLES = 31
SEED = 0

Launches = dict[str, Callable[[], None]]


def compared(gpu: Gpu, cublas: Cublas, rung: str, shape: str, samples: int) -> dict[str, Any]:
    """The times of one rung at one shape, before and after, and cuBLAS's."""
    selection = parse_selection(rung)
    assert isinstance(selection.variant, Variant)
    problem = selection.variant.executed(parse_shape(shape))
    held = GpuOperands(gpu, Workload(parse_shape(shape), SEED))
    operands = held.at(problem)
    variant, parameters = selection.variant, selection.parameters
    plain = gpu.load(
        variant.source, variant.entry, name=variant.file, defines=variant.macros(parameters)
    )
    found = reorder(plain.cubin)
    geometry = variant.geometry(parameters, problem)
    arguments = held.arguments(variant, parameters, problem)
    launches: Launches = {
        name: gpu.load_image(cubin.image, cubin.symbol).prepared(geometry, arguments)
        for name, cubin in (("plain", found.before), ("reordered", found.after))
    }
    is_equal = _equal(gpu, launches, operands)
    launches["cublas"] = cublas.sgemm(problem, operands.a, operands.b, operands.c)
    times = _timed(gpu, launches, samples)
    return _record(rung, problem, found, times, is_equal)


def _equal(gpu: Gpu, launches: Launches, operands: Operands) -> bool:
    """Whether both write the same bits over what was poisoned before."""
    shape = operands.shape
    outputs = []
    for launch in launches.values():
        gpu.fill(operands.c, POISON, shape.c_elements)
        with gpu.launch_errors("a launch whose output is compared"):
            launch()
            gpu.synchronize()
        outputs.append(np.empty(FLOAT_BYTES * shape.c_elements // 4, dtype=np.uint32))
        gpu.download(operands.c, into=outputs[-1])
    return all(np.array_equal(outputs[0], other) for other in outputs[1:])


def _timed(gpu: Gpu, launches: Launches, samples: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(samples + 1):
        for name, launch in launches.items():
            times[name].append(gpu.timer.time(launch, flush_l2=False))
    return {name: of[1:] for name, of in times.items()}  # the first round warms up


def _record(
    rung: str,
    problem: Gemm,
    found: Reordered,
    times: dict[str, list[float]],
    is_equal: bool,
) -> dict[str, Any]:
    middle = {name: median(of) for name, of in times.items()}
    return {
        "rung": rung,
        "shape": [problem.m, problem.n, problem.k],
        "compiler": found.before.compiler,
        "same_bits": is_equal,
        "median_s": middle,
        "samples_s": times,
        "plain_over_reordered": _paired(times["plain"], times["reordered"]),
        "cublas_over_reordered": _paired(times["cublas"], times["reordered"]),
    }


def _paired(a: Sequence[float], b: Sequence[float]) -> float:
    """The median ratio of samples that were taken one after the other."""
    return median(x / y for x, y in zip(a, b, strict=True))


def _line(record: dict[str, Any]) -> str:
    m, n, k = record["shape"]
    flop = 2 * m * n * k
    rates = ", ".join(
        f"{name} {flop / seconds / 1e12:.2f}" for name, seconds in record["median_s"].items()
    )
    bits = "the same bits" if record["same_bits"] else "OTHER BITS"
    return (
        f"{record['rung']} {m}x{n}x{k}: {bits}; {rates} TFLOP/s; reordered is "
        f"{record['plain_over_reordered']:.3f} times as fast as plain, "
        f"{record['cublas_over_reordered']:.3f} times as fast as cuBLAS"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", "--variant", action="append", help="a rung; repeatable")
    parser.add_argument("-s", "--shape", action="append", help="'4096' or 'MxNxK'; repeatable")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--json", action="store_true", help="print the records")
    chosen = parser.parse_args(arguments)
    records = []
    with Gpu() as gpu, Cublas() as cublas:
        for rung in chosen.variant or RUNGS:
            for shape in chosen.shape or SHAPES:
                records.append(compared(gpu, cublas, rung, shape, chosen.samples))
                if not chosen.json:
                    print(_line(records[-1]), flush=True)
    if chosen.json:
        print(json.dumps(records, indent=1))
    return 0 if all(record["same_bits"] for record in records) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ToolkitError as error:
        sys.exit(f"error: {error}")
