"""Rate at which each SM of a GPU fetches code that exceeds its instruction cache.

    python -m benchmarks.code_fetch [--kib 48] [--warps 4]     # needs a GPU

Runs one long loop of multiply-adds on every SM at once, then on one of them alone, and prints
clocks per 128 bytes of code: of the fastest, the median and the slowest SM, and the SMs by clocks.
docs/experiments.md has the results.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.gpu.context import Gpu, LoadedKernel
from toolkit.machine_code.compile import compile_cubin

KIB, INSTRUCTION_BYTES, LINE_BYTES, LANES = 1024, 16, 128, 32
OF_THE_LOOP = 16  # instructions, about
CHAINS = 8
ROUNDS = 12
MOST_OF_SHARED = 180 * KIB  # so that an SM has room for one block
ENTRY = "long_loop"


def source(kib: int) -> str:
    """A kernel that times a loop of so many KiB on the SMs that are chosen, all at once."""
    lines = "\n".join(
        f"fma.rn.f32 %{i % CHAINS}, %{i % CHAINS}, %{i % CHAINS}, %{i % CHAINS};"
        for i in range(instructions(kib))
    )
    chains = ", ".join(f'"+f"(x[{i}])' for i in range(CHAINS))
    return f"""
extern "C" __global__ void {ENTRY}(
    long long* noted, const int* chosen, int* arrived, int all, float start)
{{
    unsigned sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (threadIdx.x == 0) {{
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < all) {{}}
    }}
    __syncthreads();
    float x[{CHAINS}];
    for (int i = 0; i < {CHAINS}; i++) x[i] = start;
    long long began = 0;
#pragma unroll 1
    for (int round = 0; round <= (chosen[sm] ? {ROUNDS} : -1); round++) {{
        if (round == 1) began = clock64();
        asm volatile(R"({{
{lines}
        }})" : {chains} : : "memory");
    }}
    __syncthreads();
    if (threadIdx.x == 0) {{
        noted[2 * blockIdx.x] = sm;
        noted[2 * blockIdx.x + 1] = chosen[sm] ? clock64() - began : 0;
    }}
    float sum = 0;
    for (int i = 0; i < {CHAINS}; i++) sum += x[i];
    if (sum == 1.5f) noted[0] = 0;
}}
"""


def instructions(kib: int) -> int:
    return kib * KIB // INSTRUCTION_BYTES - OF_THE_LOOP


def clocks_per_line(
    gpu: Gpu, kernel: LoadedKernel, kib: int, warps: int, chosen: Sequence[int]
) -> NDArray[np.float64]:
    """Clocks per line of code for each SM if the chosen ones run the loop; NaN for all others."""
    sms = gpu.device.sm_count
    is_chosen = np.isin(np.arange(sms), chosen).astype(np.int32)
    noted = gpu.upload(np.zeros((sms, 2), np.int64))
    arguments = [
        noted,
        gpu.upload(is_chosen),
        gpu.upload(np.zeros(1, np.int32)),
        np.int32(sms),
        np.float32(0.5),
    ]
    geometry = Geometry(
        grid=(sms, 1, 1), block=(LANES * warps, 1, 1), dynamic_shared_bytes=MOST_OF_SHARED
    )
    with gpu.launch_errors(ENTRY):
        kernel.prepared(geometry, arguments)()
        gpu.synchronize()
    seen = np.empty((sms, 2), np.int64)
    gpu.download(noted, into=seen)
    clocks = np.full(sms, np.nan)
    lines = ROUNDS * instructions(kib) * INSTRUCTION_BYTES / LINE_BYTES
    clocks[seen[:, 0]] = np.where(seen[:, 1] > 0, seen[:, 1] / lines, np.nan)
    return clocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kib", type=int, default=48)
    parser.add_argument("--warps", type=int, default=4, help="of each SM")
    asked = parser.parse_args()
    with Gpu() as gpu:
        cubin = compile_cubin(
            source(asked.kib),
            name="code_fetch.cu",
            kernel=ENTRY,
            arch=gpu.device.sm_arch,
            options=(),
        )
        kernel = gpu.load_image(cubin.image, ENTRY)
        everyone = range(gpu.device.sm_count)
        for _ in range(2):  # the first fetches from DRAM
            found = clocks_per_line(gpu, kernel, asked.kib, asked.warps, everyone)
        alone = clocks_per_line(gpu, kernel, asked.kib, asked.warps, [0])[0]
    print(f"{gpu.device.name}: {asked.kib} KiB, {asked.warps} warps per SM, clocks per 128 bytes")
    low, middle, high = np.nanpercentile(found, (0, 50, 100))
    print(f"fastest {low:.2f}, median {middle:.2f}, slowest {high:.2f}; SM 0 alone {alone:.2f}")
    alike = defaultdict(list)
    for sm, clocks in enumerate(found):
        alike[round(float(clocks), 1)].append(sm)
    for clocks, members in sorted(alike.items()):
        print(f"{clocks:6.1f}  {' '.join(map(str, members))}")


if __name__ == "__main__":
    main()
