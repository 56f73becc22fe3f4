"""Programs of nvcc on a GPU and on the simulator: chosen, linked and compiled machine code.

`python -m validation.linked_programs` builds programs with nvcc, launches their kernels on the GPU
that is here, and compares the outputs with those of the simulator, bit by bit. It takes a minute.
It prints a table, and writes JSON to $OUT if that is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from analysis.errors import ToolkitError
from toolkit.execution.simulate import simulate
from toolkit.gpu.context import gpu_here
from toolkit.gpu.launch import run
from toolkit.launch.launch import Argument

KERNEL = """
__device__ float other(float x, int n);
__global__ void linked(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = other(x[i], i & 15) / (3.0f + i);
}
"""
FUNCTION = """
__device__ float other(float x, int n)
{
    float sum[8];
    for (int k = 0; k < 8; k++)
        sum[k] = x * k;
    for (int k = 0; k < n; k++)
        sum[k * 5 & 7] = sum[k & 7] * 1.5f + 1;
    return sum[n & 7] / (x + 2);
}
"""
MAIN = "int main() {}\n"
# name, sources, options of nvcc before the architecture, and whether the code is PTX alone
CASES = (
    ("one source", (FUNCTION + KERNEL + MAIN,), (), False),
    ("-rdc, linked", (KERNEL, FUNCTION + MAIN), ("-rdc=true",), False),
    ("-rdc, a library", (KERNEL, FUNCTION), ("-rdc=true", "-lib"), False),
    ("compressed", (FUNCTION + KERNEL + MAIN,), ("--compress-mode=size",), False),
    ("PTX", (FUNCTION + KERNEL + MAIN,), (), True),
)


def main() -> None:
    arch = gpu_here().device.sm_arch
    number = arch.removeprefix("sm_")
    rows = []
    for name, sources, options, is_ptx in CASES:
        code = f"compute_{number}" if is_ptx else arch
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / f"{n}.cu" for n, _ in enumerate(sources)]
            for file, text in zip(files, sources, strict=True):
                file.write_text(text, encoding="utf-8")
            program = Path(folder) / "program"
            target = f"arch=compute_{number},code={code}"
            command = ["nvcc", *options, "-lineinfo", "-gencode", target, "-o", str(program)]
            subprocess.run([*command, *map(str, files)], check=True)
            rows.append({"program": name, "verdict": _compared(program, arch)})
        print(f"{name:<20}{rows[-1]['verdict']}")
    if out := os.environ.get("OUT"):
        Path(out, "linked_programs.json").write_text(json.dumps(rows), encoding="utf-8")


def _compared(program: Path, arch: str) -> str:
    x = np.random.default_rng(1).random(4096, np.float32)
    arguments: list[Argument] = [x, np.int32(4000)]
    try:
        simulated = simulate(
            program, "linked", grid=16, block=256, arguments=arguments, arch=arch, predict=False
        )
        measured = run(program, "linked", grid=16, block=256, arguments=arguments)
    except ToolkitError as error:
        return str(error)
    differ = int((simulated.outputs[0].view("u4") != measured.outputs[0].view("u4")).sum())
    facts = f"{simulated.resources.compiler}, {simulated.resources.local_bytes} B local memory"
    return f"{differ} of {x.size} values differ ({facts})"


if __name__ == "__main__":
    main()
