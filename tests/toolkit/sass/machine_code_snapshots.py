"""Record what the timing model is told of a small kernel's instructions, on each architecture.

    python -m tests.toolkit.sass.machine_code_snapshots

For test_machine_code.py; a line is the text of nvdisasm and what `machine_code` makes of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.sm import NO_SCOREBOARD, Kind, Unit
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.timing_table import machine_code

RECORDED = Path(__file__).parent / "recorded/machine_code.txt"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SOURCE = r"""
extern "C" __global__ void small(float *out, const float4 *in, int n)
{
    __shared__ float4 tile[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    const float4 a = tile[31 - threadIdx.x], b = tile[threadIdx.x ^ 1];
    float sum = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    sum += __shfl_xor_sync(~0u, sum, 1) + __expf(a.x);
    out[i] = sum;
}
"""


def program(arch: str) -> Kernel:
    return compile_cubin(SOURCE, name="small.cu", kernel="small", arch=arch)


def lines(arch: str) -> list[str]:
    """One line per instruction, up to the jump to itself behind the code."""
    found = program(arch)
    rows = zip(found.instructions, machine_code(found), strict=True)
    kept = [f"{instruction.text:60} {_told(row)}" for instruction, row in rows]
    last = max(n for n, line in enumerate(kept) if line.startswith(("EXIT", "@!P0 EXIT")))
    return [f"== {arch}", *(line.rstrip() for line in kept[: last + 1])]


def _told(row: Any) -> str:
    parts = [f"stall {row['stall']}"]
    for name, word in (("write_barrier", "sets"), ("read_barrier", "read")):
        if row[name] != NO_SCOREBOARD:
            parts.append(f"{word} {row[name]}")
    waits = [str(k) for k in range(6) if row["wait"] >> k & 1]
    if waits:
        parts.append(f"waits {' '.join(waits)}")
    parts += [Unit(row["unit"]).name, Kind(row["kind"]).name]
    parts += [f"{name} {row[name]}" for name in ("registers", "operands", "reuse") if row[name]]
    sources = [str(register) for register in row["source"]]
    return ", ".join(parts + ([] if set(sources) == {"-1"} else [f"reads {' '.join(sources)}"]))


if __name__ == "__main__":
    text = "\n".join(line for arch in ARCHITECTURES for line in lines(arch))
    RECORDED.write_text(text + "\n", encoding="utf-8")
    print(RECORDED)
