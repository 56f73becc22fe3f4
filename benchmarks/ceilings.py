"""The ceilings that the GPU here really reaches: FP32, DRAM, L2 and shared memory.

    python -m benchmarks.ceilings

Each is the best of several timed launches that do nothing else, beside the nominal figure of the
device database. What it prints goes into `measured` of the device's record.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.geometry import Geometry
from analysis.l2_state import L2State
from reports import text
from toolkit.gpu.context import Gpu

SAMPLES = 20
THREADS = 1024
SOURCE = """
// 8 independent chains per thread: more than the latency of an FFMA asks for
extern "C" __global__ void __launch_bounds__(1024)
reach_fp32(float* out, float a, float b, int rounds)
{
    float x[8];
    for (int j = 0; j < 8; ++j) x[j] = threadIdx.x + j;
    for (int i = 0; i < rounds; ++i)
#pragma unroll
        for (int j = 0; j < 64; ++j) x[j % 8] = x[j % 8] * a + b;
    float sum = 0.0f;
    for (int j = 0; j < 8; ++j) sum += x[j];
    if (sum == 1.2345f) out[0] = sum;  // never true, and the compiler does not know
}

extern "C" __global__ void __launch_bounds__(1024)
reach_l2(const float4* in, float* out, int pieces, int rounds)
{
    float4 v;
    float sum = 0.0f;
    const int step = gridDim.x * blockDim.x;
    for (int round = 0; round < rounds; ++round)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pieces; i += step) {
            asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"  // cg: past L1
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(in + i));
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == 1.2345f) out[0] = sum;
}

extern "C" __global__ void __launch_bounds__(1024)
reach_shared(float* out, int rounds)
{
    __shared__ float4 tile[1024];
    tile[threadIdx.x] = make_float4(1, 2, 3, 4);
    __syncthreads();
    const unsigned base = unsigned(__cvta_generic_to_shared(tile + threadIdx.x % 512));
    float4 v;
    float sum = 0.0f;
    for (int i = 0; i < rounds; ++i) {
        const unsigned address = base + i % 8 * 512;  // another one every round: nothing to hoist
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address + j * 512));
            sum += v.x + v.y + v.z + v.w;
        }
    }
    if (sum == 1.2345f) out[0] = sum;
}
"""


def best(gpu: Gpu, launch: Callable[[], None]) -> float:
    """The least time of a launch in seconds, with L2 as it is."""
    return min(gpu.timer.time(launch, l2=L2State.WARM) for _ in range(SAMPLES))


def fp32(gpu: Gpu, out: object) -> float:
    rounds, blocks = 4096, 2 * gpu.device.sm_count
    kernel = gpu.load(SOURCE, "reach_fp32", name="ceilings.cu")
    geometry = Geometry(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
    factor, term = np.float32(0.999), np.float32(0.001)
    launch = kernel.prepared(geometry, [out, factor, term, np.int32(rounds)])
    return 2 * 64 * rounds * geometry.threads / best(gpu, launch)


def dram(gpu: Gpu) -> float:
    import pycuda.driver as cuda

    size = min(4 << 30, gpu.free_bytes // 4)
    source, target = gpu.allocate(size), gpu.allocate(size)
    cuda.memset_d32(source, 0x3F8CCCCD, size // 4)
    # once read and once written
    return 2 * size / best(gpu, lambda: cuda.memcpy_dtod_async(target, source, size))


def l2(gpu: Gpu, out: object) -> float:
    size, rounds = gpu.device.l2_bytes // 4, 32  # a quarter: no slice of L2 overflows
    buffer = gpu.upload(np.ones(size // 4, np.float32))
    kernel = gpu.load(SOURCE, "reach_l2", name="ceilings.cu")
    geometry = Geometry(grid=(2 * gpu.device.sm_count, 1, 1), block=(THREADS, 1, 1))
    launch = kernel.prepared(geometry, [buffer, out, np.int32(size // 16), np.int32(rounds)])
    return rounds * (size // 16 * 16) / best(gpu, launch)


def shared(gpu: Gpu, out: object) -> float:
    rounds = 4096
    kernel = gpu.load(SOURCE, "reach_shared", name="ceilings.cu")
    geometry = Geometry(grid=(2 * gpu.device.sm_count, 1, 1), block=(THREADS, 1, 1))
    launch = kernel.prepared(geometry, [out, np.int32(rounds)])
    return rounds * 8 * 16 * geometry.threads / best(gpu, launch)


def main() -> None:
    with Gpu() as gpu:
        device, out = gpu.device, gpu.allocate(4)
        print(device.name)
        rows = (
            ("FP32", fp32(gpu, out), device.fp32_flop_per_s, text.flop_per_s),
            ("DRAM copy", dram(gpu), device.dram_bytes_per_s, text.bytes_per_s),
            ("L2 read", l2(gpu, out), device.l2_bytes_per_s, text.bytes_per_s),
            ("shared read", shared(gpu, out), device.shared_bytes_per_s, text.bytes_per_s),
        )
        for name, reached, nominal, show in rows:
            share = text.percent(reached / nominal) if nominal else "nominal not published"
            print(f"{name:>12}: {reached:.4g} = {show(reached)}, of {show(nominal)}: {share}")


if __name__ == "__main__":
    main()
