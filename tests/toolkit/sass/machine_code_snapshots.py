"""Record what the timing model is told of a small kernel's instructions, on each architecture.

    python -m tests.toolkit.sass.machine_code_snapshots

For test_timing_table.py; a row is an opcode and what `machine_code` makes of its instruction.
"""

from pathlib import Path

from analysis.sm import NO_SCOREBOARD, Kind, Unit
from tests.cubins import cubin_of
from toolkit.sass.timing_table import machine_code
from validation import recordings

RECORDED = Path(__file__).parent / "recorded/machine_code.json"
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


def program(arch):
    return cubin_of(SOURCE, "small", arch)


def told(arch):
    """One row per instruction, up to the jump to itself behind the code."""
    found = program(arch)
    pairs = zip(found.instructions, machine_code(found), strict=True)
    every = [{"opcode": instruction.opcode, **_told(row)} for instruction, row in pairs]
    last = max(n for n, row in enumerate(every) if row["opcode"] == "EXIT")
    return every[: last + 1]


def _told(row):
    """Fields that differ from those of an instruction without waits, results and sources."""
    told = {"stall": int(row["stall"])}
    for name, word in (("write_barrier", "sets"), ("read_barrier", "read")):
        if row[name] != NO_SCOREBOARD:
            told[word] = int(row[name])
    waits = [k for k in range(6) if row["wait"] >> k & 1]
    told |= {"waits": waits} if waits else {}
    told |= {"unit": Unit(row["unit"]).name, "kind": Kind(row["kind"]).name}
    told |= {name: int(row[name]) for name in ("registers", "operands", "reuse") if row[name]}
    sources = row["source"].tolist()
    return told if set(sources) == {-1} else told | {"reads": sources}


if __name__ == "__main__":
    recordings.write(RECORDED, {arch: told(arch) for arch in ARCHITECTURES})
    print(RECORDED)
