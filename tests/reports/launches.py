"""Launches of small kernels, executed on the CPU, whose reports are pages."""

from dataclasses import replace
from functools import cache

import numpy as np

from analysis.records.remedy import Remedy
from analysis.timing.predicted import Effect
from reports.pages.kernel import page
from toolkit import simulate

LONG_NAME = ("k" + "abcdefghij" * 30)[:300]

TRANSPOSE = """\
#define TILE 32
extern "C" __global__ void transpose(float *out, const float *in, int n)
{
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""
COPY = """\
extern "C" __global__ void copy(float4 *out, const float4 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
"""
SAXPY = """\
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
"""
HISTOGRAM = """\
extern "C" __global__ void histogram(unsigned *bins, const unsigned char *in, int n)
{
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
"""
SOFTMAX = """\
extern "C" __global__ void softmax(float *out, const float *in)
{
    __shared__ float part[8];
    const float v = in[blockIdx.x * 256 + threadIdx.x];
    float most = v;
    for (int d = 16; d; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        most = fmaxf(most, part[k]);
    __syncthreads();
    float sum = __expf(v - most);
    const float own = sum;
    for (int d = 16; d; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++)
        sum += part[k];
    out[blockIdx.x * 256 + threadIdx.x] = own / sum;
}
"""
FP64 = """\
extern "C" __global__ void poly(double *out, const double *in, int terms)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = in[i], sum = 0;
    for (int k = 0; k < terms; k++)
        sum = sum * x + 1.0 / 3;
    out[i] = sum;
}
"""
SPIN = """\
extern "C" __global__ void spin(float seed)
{
    float v = seed + threadIdx.x;
    for (int k = 0; k < 100; k++)
        v = v * 1.0001f + 0.5f;
    if (v == 12345.f)
        __trap();
}
"""
ONE = 'extern "C" __global__ void one(float *out)\n{\n    out[0] = 1;\n}\n'
LONG = ONE.replace("one", LONG_NAME)
MARKUP = """\
extern "C" __global__ void markup(float *out)
{
    // </script><b>bold</b> <img src="http://example.com/x.png" onerror="alert(1)"> {{ 7 * 7 }}
    out[threadIdx.x * 32] = 1; // </script><b>&amp; </style><!-- <svg onload=alert(1)>
}
"""


def floats(count, dtype=np.float32):
    return np.ones(count, dtype)


# Name, source, grid, block, arguments
LAUNCHES = {
    name: (source, grid, block, arguments)
    for name, source, grid, block, arguments in (
        (
            "transpose",
            TRANSPOSE,
            (16, 16),
            (32, 8),
            [floats((512, 512)), floats((512, 512)), np.int32(512)],
        ),
        ("copy", COPY, 1024, 256, [floats(2**20), floats(2**20)]),
        ("saxpy", SAXPY, 8, 256, [floats(2**16), floats(2**16), np.float32(2), np.int32(2**16)]),
        (
            "histogram",
            HISTOGRAM,
            132,
            256,
            [np.zeros(256, np.uint32), np.arange(2**17).astype(np.uint8), np.int32(2**17)],
        ),
        ("softmax", SOFTMAX, 512, 256, [floats(2**17), floats(2**17)]),
        ("fp64", FP64, 264, 256, [floats(2**17, np.float64)] * 2 + [np.int32(100)]),
        ("no memory", SPIN, 264, 256, [np.float32(1)]),
        ("one thread", ONE, 1, 1, [floats(4)]),
        ("long name", LONG, 1, 32, [floats(4)]),
        ("markup", MARKUP, 264, 256, [floats(2**13)]),
    )
}
REMEDIES = (
    Remedy(
        number=1,
        effect=Effect.CONFLICTS,
        lines=(4,),
        title="pad each row of tile: tile[TILE][TILE + 1]",
        before_s=6e-6,
        after_s=4e-6,
        compared="40 of 256 blocks compared: equal bit for bit",
        diff="--- a\n+++ b\n@@ -4 +4 @@\n-    __shared__ float tile[TILE][TILE];\n"
        "+    __shared__ float tile[TILE][TILE + 1];\n",
    ),
    Remedy(
        number=2,
        effect=Effect.CONFLICTS,
        lines=(7, 12),
        title="swizzle the column of tile",
        before_s=6e-6,
        after_s=4.1e-6,
        instead_of=(1,),
    ),
    Remedy(
        number=3,
        effect=Effect.DRAM_LATENCY,
        lines=(),
        title="launch smaller blocks",
        before_s=6e-6,
        after_s=None,
        most_s=0.5e-6,
        arguments=("--block", "32,4"),
    ),
)


@cache
def executed(name):
    source, grid, block, arguments = LAUNCHES[name]
    return simulate(
        source,
        grid=grid,
        block=block,
        arguments=arguments,
        blocks="representative",
        device="h100-sxm",
        outputs=False,
    )


@cache
def reports():
    """Reports of one launch on all grades, and of what can be missing, by name."""
    one = executed("transpose").report
    time_s = one.predicted.time_s
    without = [replace(i, file=None, line=None) for i in one.instructions]
    lines = [replace(line, file=None, line=None) for line in one.predicted.lines]
    return {
        "remedies": replace(one, remedies=REMEDIES),
        "measured": replace(
            one, samples_s=(1.2 * time_s,), predicted=None, prediction_basis=None, instructions=()
        ),
        "both": replace(one, samples_s=(1.2 * time_s,), remedies=REMEDIES),
        "faster": replace(one, samples_s=(0.8 * time_s,)),
        "not predicted": replace(
            one, predicted=None, prediction_basis="not predicted: blocks wait for each other"
        ),
        "no lines": replace(
            one, instructions=without, predicted=replace(one.predicted, lines=tuple(lines))
        ),
        "earlier version": replace(one, predicted=replace(one.predicted, costs=(), lines=())),
    }


CASES = (
    "remedies",
    "measured",
    "both",
    "faster",
    "not predicted",
    "no lines",
    "earlier version",
)


@cache
def page_of(name):
    return page(reports()[name] if name in CASES else executed(name).report)
