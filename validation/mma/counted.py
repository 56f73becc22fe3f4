"""Launches whose instructions on tensor cores Nsight Compute counted, on an H200.

ncu --csv --page raw --metrics METRICS python -m validation.mma.counted    launches them on a GPU
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from toolkit import simulate
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import placed
from toolkit.launch.launch import buffers_of
from toolkit.machine_code.compile import compile_cubin
from validation import recordings
from validation.mma.forms import FORMS, THREADS, arguments, blocks, source
from validation.mma.random_products import ARCHITECTURE, classes, operands

TILES = 64
RECORD = Path(__file__).parent / "recorded" / "counters_sm_90.json"
WMMA = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_f16(const half *a, const half *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < 4; ++k) {
        wmma::load_matrix_sync(x, a + 16 * k, 64);
        wmma::load_matrix_sync(y, b + 16 * k, 64);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""


def launches() -> dict[str, tuple[str, int, int, list[Any]]]:
    """Source, blocks, threads of a block and arguments of each kernel, by its name."""
    found = {}
    for name in (row["kernel"] for row in recorded() if row["kernel"] in FORMS):
        form = FORMS[name]
        given = [x[:TILES] for x in operands(form, next(iter(classes(form))))]
        found[name] = (source(form), blocks(TILES), THREADS, arguments(form, *given))
    ones = np.ones((16, 64), np.float16)
    found["wmma_f16"] = (WMMA, 3, 64, [ones, ones, np.zeros((16, 16), np.float32)])
    return found


def recorded() -> list[dict[str, Any]]:
    """Rows with a kernel and its counters."""
    found: list[dict[str, Any]] = recordings.read(RECORD)["rows"]
    return found


def of_simulator(name: str) -> dict[str, int]:
    text, grid, block, given = launches()[name]
    execution = simulate(
        text, name, grid=grid, block=block, arguments=given, arch=ARCHITECTURE, predict=False
    )
    return {x: int(count) for x, count in execution.counters.items()}


def main() -> None:
    with Gpu() as gpu:
        for name, (text, grid, block, given) in launches().items():
            code = compile_cubin(text, name=f"{name}.cu", kernel=name, arch=gpu.device.sm_arch)
            kernel = gpu.load_image(code.image, name)
            buffers = {place: gpu.upload(array) for place, array in buffers_of(given).items()}
            kernel.prepared(
                Geometry(grid=(grid, 1, 1), block=(block, 1, 1)), placed(given, buffers, {})
            )()


if __name__ == "__main__":
    main()
