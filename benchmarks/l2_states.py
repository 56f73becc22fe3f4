"""Times of streams that find L2 clean, dirty or warm. Needs a GPU.

python -m benchmarks.l2_states --output validation/timing/recorded/l2_states_h200.json

Each thread reads, writes or copies 16 bytes of 1 to 256 MiB, writes 4 bytes of them, or reads 32
pieces one after the other. From the difference between a dirty and a clean L2 follow the bytes that
have to be written back (`analysis.timing.modelled_sm`).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from analysis.device_table import MIB
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.gpu.context import Gpu
from validation import recordings

KERNELS = """
extern "C" __global__ void reads(const float4 *from, float4 *to)
{
    float4 four = from[blockIdx.x * blockDim.x + threadIdx.x];
    if (four.x + four.y + four.z + four.w == 1e30f) to[0] = four;
}
extern "C" __global__ void writes(const float4 *from, float4 *to)
{
    to[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(1, 2, 3, 4);
}
extern "C" __global__ void copies(const float4 *from, float4 *to)
{
    to[blockIdx.x * blockDim.x + threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
}
extern "C" __global__ void parts(const float4 *from, float4 *to)
{
    to[blockIdx.x * blockDim.x + threadIdx.x].x = 1;  // two parts of each sector
}
extern "C" __global__ void lone_parts(const float4 *from, float4 *to)
{
    if (threadIdx.x % 8 == 0) to[blockIdx.x * blockDim.x + threadIdx.x].x = 1;  // one of each line
}
extern "C" __global__ void chains(const float4 *from, float4 *to)
{   // each load waits for the one before
    unsigned at = blockIdx.x * blockDim.x * CHAIN + threadIdx.x;
    for (int k = 0; k < CHAIN; ++k) at += blockDim.x + __float_as_uint(__ldcg(from + at).x);
    if (at == 12345) to[0].x = 1;
}
"""
NAMES = ("reads", "writes", "copies", "parts", "lone_parts", "chains")
CHAIN = 32  # loads of a thread of `chains`
SIZES_MIB = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
SAMPLES, WARM_UP = 15, 500
THREADS, BYTES_OF_ONE = 256, 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    rows = []
    with Gpu() as gpu:
        first = gpu.load(KERNELS, NAMES[0], name="l2_states.cu", defines={"CHAIN": CHAIN})
        buffers = [gpu.allocate(max(SIZES_MIB) * MIB) for _ in range(2)]
        for buffer in buffers:
            gpu.fill(buffer, 0, max(SIZES_MIB) * MIB // 4)
        for _ in range(WARM_UP):
            gpu.timer.fill_l2()
        for name in NAMES:
            for size in SIZES_MIB:
                threads = size * MIB // BYTES_OF_ONE // (CHAIN if name == "chains" else 1)
                geometry = Geometry.of(threads // THREADS, THREADS)
                launch = first.of_same_module(name).prepared(geometry, buffers)
                times = {
                    str(state): median(gpu.timer.time(launch, l2=state) for _ in range(SAMPLES))
                    for state in L2State
                }
                rows.append({"kernel": name, "mib": size, "times_s": times})
                shown = "".join(f"{one * 1e6:9.2f}" for one in times.values())
                print(f"{name:8}{size:5} MiB{shown} µs")
        recordings.write(output, {"device": gpu.device.key, "samples": SAMPLES, "cells": rows})


if __name__ == "__main__":
    main()
