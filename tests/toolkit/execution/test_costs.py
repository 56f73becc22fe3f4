"""Costs of launches: by cause and by source line, compared with launches that lack the cause."""

from functools import cache
from math import fsum

import numpy as np
import pytest

from analysis.timing.costs import OF_INTEGERS
from analysis.timing.predicted import Effect
from toolkit.execution.simulate import simulate

CLOSE = 0.1  # relative, of a cost to the difference of two predictions
MOST_REMAINDER = 0.1  # of the time
NEGLIGIBLE = 0.02
N = 2048

TRANSPOSE = """extern "C" __global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}"""
SAXPY = """extern "C" __global__ void saxpy(float *y, const float *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 2 * x[i] + y[i];
}"""
STRIDED = """extern "C" __global__ void strided(float *y, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[STRIDE * i];
}"""
DOUBLE = """extern "C" __global__ void step(float *y, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < 64; k++)
        v = v * 1.000001 + 0.5;
    y[i] = v;
}"""
DIVERGENT = """extern "C" __global__ void branches(float *y, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if ((i >> SHIFT) & 1)
        for (int k = 0; k < 200; k++) v = v * 1.01f + 0.5f;
    else
        for (int k = 0; k < 200; k++) v = v * 0.99f - 0.5f;
    y[i] = v;
}"""
RESIDUAL = """extern "C" __global__ void residual(float *sum, float *y, const float *x, int n) {
    __shared__ float left[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    left[threadIdx.x] = x[i];
    __syncthreads();
    float a = left[(threadIdx.x + 1) % 256] * x[i + n];
    float b = left[(threadIdx.x + 255) % 256] * x[i + 2 * n];
    float c = left[(threadIdx.x + 16) % 256] * x[i + 3 * n];
    float d = left[(threadIdx.x + 240) % 256] * x[i + 4 * n];
    float e = 0.25f * (a + b + c + d);
    y[i] = e;
    atomicAdd(sum, fabsf(e - left[threadIdx.x]));
}"""
SINES = """extern "C" __global__ void sines(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < 64; k++) v = __sinf(v) + __expf(v);
    x[i] = v;
}"""
REMAINDERS = """extern "C" __global__ void sums(float *x) {
    __shared__ float part[256];
    part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (unsigned k = 1; k < blockDim.x; k *= 2) {
        if (threadIdx.x % (2 * k) == 0) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) x[blockIdx.x * 256] = part[0];
}"""
POLYNOMIALS = """extern "C" __global__ void polynomials(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, bits = i;
    float v = x[i], w = v + 1;
    for (int k = 0; k < 64; k++) {
        v = v * v + w;
        w = w * v + v;
        bits = bits >> 3 ^ i;
    }
    x[i] = v + w + bits;
}"""
ONE_THREAD = """extern "C" __global__ void recurrence(float *y, const float *x) {
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = x[i];
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < STEPS; k++) part[k] += 0.5f * part[k - 1];
    __syncthreads();
    y[i] = part[threadIdx.x];
}"""
GEMV = """extern "C" __global__ void gemv(float *y, const float *a, const float *x, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int k = lane; k < n; k += 32)
        sum += a[(size_t)warp * n + k] * x[k];
    for (int d = 16; d; d /= 2)
        sum += __shfl_down_sync(~0u, sum, d);
    if (!lane) y[warp] = sum;
}"""


def of(count):
    return np.zeros(count, dtype=np.float32)


@cache
def predicted(source, grid, block, sizes, *values, **defines):
    arguments = [*map(of, sizes), *map(np.int32, values)]
    for name, value in defines.items():
        source = source.replace(name, str(value))
    found = simulate(source, grid=grid, block=block, arguments=arguments, device="h200").predicted
    assert found is not None
    return found


def transposed(pad):
    return predicted(TRANSPOSE, (N // 32, N // 32), (32, 8), (N * N, N * N), N, PAD=pad)


def strided(stride):
    return predicted(STRIDED, 4096, 256, (1 << 20, stride << 20), STRIDE=stride)


def divergent(shift):
    return predicted(DIVERGENT, 4096, 256, (1 << 20, 1 << 20), SHIFT=shift)


LAUNCHES = {
    "conflicts": lambda: transposed(0),
    "padded": lambda: transposed(1),
    "few blocks": lambda: predicted(SAXPY, 8, 256, (1 << 22, 1 << 22), 1 << 22),
    "32 blocks": lambda: predicted(GEMV, 32, 256, (256, 256 * 4096, 4096), 4096),
    "copy": lambda: strided(1),
    "strided": lambda: strided(8),
    "FP64": lambda: predicted(DOUBLE, 4096, 256, (1 << 20, 1 << 20)),
    "divergent": lambda: divergent(0),
    "uniform": lambda: divergent(5),
}


def cost(found, effect):
    return next((one.time_s for one in found.costs if one.effect == effect), 0.0)


def largest(found):
    return max(found.costs, key=lambda one: one.time_s)


@pytest.mark.parametrize("name", LAUNCHES)
def test_parts_sum_to_the_time_and_little_remains(name):
    found = LAUNCHES[name]()
    assert fsum(one.time_s for one in found.costs) == pytest.approx(found.time_s)
    assert fsum(one.time_s for one in found.lines) == pytest.approx(found.time_s)
    assert all(one.time_s >= 0 for one in (*found.costs, *found.lines))
    assert cost(found, Effect.REMAINDER) < MOST_REMAINDER * found.time_s


@pytest.mark.parametrize("name", LAUNCHES)
def test_no_bound_exceeds_the_time(name):
    found = LAUNCHES[name]()
    assert max(bound.time_s for bound in found.bounds) <= found.time_s
    assert found.limiter_share <= 1


def test_bank_conflicts_cost_what_padding_saves():
    before, after = transposed(0), transposed(1)
    assert largest(before).effect == Effect.CONFLICTS
    saved = before.time_s - after.time_s
    assert cost(before, Effect.CONFLICTS) == pytest.approx(saved, rel=CLOSE)
    assert cost(after, Effect.CONFLICTS) < NEGLIGIBLE * after.time_s


def test_the_line_of_the_conflicts_costs_most():
    found = transposed(0)
    line = max(found.lines, key=lambda one: one.time_s)
    assert line.line == 10
    assert line.time_s > cost(found, Effect.CONFLICTS)


def test_a_kernel_at_a_roof_has_no_other_cause():
    found = transposed(1)
    roof = largest(found)
    assert (roof.effect, roof.is_roof) == (Effect.DRAM_BANDWIDTH, True)
    avoidable = [one for one in found.costs if not one.is_roof and one.effect != Effect.LAUNCH]
    hidden_s = [max(0.0, one.time_s - one.first_s) for one in avoidable]
    assert sum(hidden_s) < MOST_REMAINDER * found.time_s


@pytest.mark.parametrize("name", ["few blocks", "32 blocks"])
def test_idle_sms_are_the_cause_where_blocks_are_few(name):
    assert largest(LAUNCHES[name]()).effect == Effect.IDLE_SMS


def test_idle_sms_cost_what_more_blocks_save():
    few = LAUNCHES["few blocks"]()
    many = predicted(SAXPY, 132 * 8, 256, (1 << 22, 1 << 22), 1 << 22)
    assert cost(few, Effect.IDLE_SMS) == pytest.approx(few.time_s - many.time_s, rel=CLOSE)


def test_uncoalesced_accesses_cost_what_neighbouring_ones_save():
    saved = strided(8).time_s - strided(1).time_s
    assert cost(strided(8), Effect.UNCOALESCED) == pytest.approx(saved, rel=2 * CLOSE)
    assert cost(strided(1), Effect.UNCOALESCED) == 0


def test_accidental_fp64_is_at_the_roof_of_conversions():
    """On an H200, each FP64 operation of a float needs two conversions, which are slower."""
    found = largest(LAUNCHES["FP64"]())
    assert found.effect in (Effect.FP64_PIPE, Effect.SPECIAL_PIPE)
    assert found.time_s > LAUNCHES["FP64"]().time_s / 2
    assert found.detail == "mostly conversions between FP32 and FP64"


@pytest.mark.parametrize(("source", "detail"), [(REMAINDERS, OF_INTEGERS), (POLYNOMIALS, "")])
def test_integer_products_are_no_fp32_arithmetic(source, detail):
    """Both take the FP32 pipe."""
    found = predicted(source, 8448, 256, (8448 * 256,))
    pipe = next(one for one in found.costs if one.effect == Effect.FP32_PIPE)
    assert pipe.detail == detail


def test_a_roof_of_other_special_functions_names_no_conversions():
    found = largest(predicted(SINES, 4096, 256, (4096 * 256,)))
    assert (found.effect, found.detail) == (Effect.SPECIAL_PIPE, "")


def recurrence(steps):
    return predicted(ONE_THREAD, 132, 256, (132 * 256, 132 * 256), STEPS=steps)


def test_work_of_one_thread_is_not_called_divergence():
    saved = recurrence(256).time_s - recurrence(1).time_s
    assert cost(recurrence(256), Effect.ONE_THREAD) == pytest.approx(saved, rel=2 * CLOSE)
    assert cost(recurrence(256), Effect.DIVERGENCE) == 0


def test_divergence_costs_what_whole_warps_save():
    saved = divergent(0).time_s - divergent(5).time_s
    assert cost(divergent(0), Effect.DIVERGENCE) == pytest.approx(saved, rel=2 * CLOSE)
    assert cost(divergent(5), Effect.DIVERGENCE) == 0
    assert cost(divergent(0), Effect.ONE_THREAD) == 0


def test_the_line_of_atomic_operations_is_named_where_others_execute_more():
    found = predicted(RESIDUAL, 1024, 256, (1, 1024 * 256, 5 * 1024 * 256), 1024 * 256)
    assert largest(found).effect == Effect.ATOMICS
    first = max(found.lines[:-1], key=lambda one: one.time_s)
    at = RESIDUAL.partition("atomicAdd")[0].count("\n") + 1
    assert (first.line, first.time_s > 0.8 * found.time_s) == (at, True)


# A thread per row: 32 lines per request, of which each sector serves 16 passes of the loop.
ROWS = r"""
#include <cuda_bf16.h>
extern "C" __global__ void rows(
        __nv_bfloat16 *out, const int *which, const __nv_bfloat16 *table, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_bfloat16 *x = table + which[row] * n;
    for (int i = 0; i < n; i++)
        out[row * n + i] = (__nv_bfloat16)(2.0f * (float)x[i]);
}"""


@pytest.mark.parametrize("seed", [1, 2])
def test_uncoalesced_accesses_are_the_cause_where_waits_hide_what_they_cost(seed):
    n, many = 768, 4096
    which = np.random.default_rng(seed).integers(0, many, 8192).astype(np.int32)
    found = simulate(
        ROWS,
        grid=256,
        block=32,
        arguments=[np.zeros(8192 * n, np.uint16), which, np.ones(many * n, np.uint16), np.int32(n)],
        device="h200",
        outputs=False,
    )
    largest = max((one for one in found.causes if one.is_avoidable), key=lambda one: one.time_s)
    assert largest.cause == Effect.UNCOALESCED
    assert largest.time_s > 0.5 * found.predicted.time_s
