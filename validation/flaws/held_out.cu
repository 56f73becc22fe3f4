// Kernels with one flaw each, and the same without it, and kernels at a roof (`cases.HELD_OUT`).
// They were written before the ranking was changed, and judge it.

#ifndef FIXED
#define FIXED 0
#endif
#define I (blockIdx.x * blockDim.x + threadIdx.x)

// Means of five columns, transposed: the lanes of a warp read one column of the tile.
extern "C" __global__ void smoothed_columns(float *out, const float *in, int n) {
    __shared__ float tile[32][128 + FIXED];
    int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int y = row; y < 32; y += 8)
        for (int x = lane; x < 128; x += 32)
            tile[y][x] = in[(size_t)(blockIdx.y * 32 + y) * n + blockIdx.x * 128 + x];
    __syncthreads();
    for (int x = row; x < 128; x += 8) {
        float sum = 0;
        for (int d = -2; d <= 2; d++) sum += tile[lane][min(max(x + d, 0), 127)];
        out[(size_t)(blockIdx.x * 128 + x) * n + blockIdx.y * 32 + lane] = 0.2f * sum;
    }
}

// A warp normalises a row; blocks of 32 rows are too few for all SMs.
extern "C" __global__ void normalized_rows(float *out, const float *in, int columns) {
    int row = I / 32, lane = threadIdx.x % 32;
    const float *x = in + (size_t)row * columns;
    float sum = 0, squares = 0;
    for (int k = lane; k < columns; k += 32) {
        sum += x[k];
        squares += x[k] * x[k];
    }
    for (int d = 16; d; d /= 2) {
        sum += __shfl_xor_sync(~0u, sum, d);
        squares += __shfl_xor_sync(~0u, squares, d);
    }
    float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
    for (int k = lane; k < columns; k += 32) out[(size_t)row * columns + k] = (x[k] - mean) * scale;
}

// The largest value of each of 64 groups.
extern "C" __global__ void group_maximum(int *most, const int *value, const int *group, int n) {
#if FIXED
    __shared__ int own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = I; i < n; i += gridDim.x * blockDim.x) atomicMax(&own[group[i] & 63], value[i]);
    __syncthreads();
    if (threadIdx.x < 64) atomicMax(&most[threadIdx.x], own[threadIdx.x]);
#else
    for (int i = I; i < n; i += gridDim.x * blockDim.x) atomicMax(&most[group[i] & 63], value[i]);
#endif
}

// Exchange of the two middle dimensions: indices are divided in 64 bits, or in 32.
#if FIXED
typedef unsigned Index;
#else
typedef long long Index;
#endif
extern "C" __global__ void permuted(float *out, const float *in, int b, int c, int d) {
    Index i = I, of_d = d, of_c = c, of_b = b;
    Index at_d = i % of_d, at_b = i / of_d % of_b;
    Index at_c = i / of_d / of_b % of_c, at_a = i / of_d / of_b / of_c;
    out[i] = in[((at_a * of_b + at_b) * of_c + at_c) * of_d + at_d];
}

// Sums of 64 values per thread, one load after the other; shared memory leaves 16 warps per SM.
extern "C" __global__ void late_loads(float *out, const float *in, int n) {
    __shared__ float own[FIXED ? 768 : 12288];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; k++) sum += in[(size_t)k * n + I];
    own[threadIdx.x] = sum;
    __syncthreads();
    out[I] = sum - own[threadIdx.x ^ 1];
}

// At a roof.

extern "C" __global__ void reversed(float4 *out, const float4 *in, int n) { out[I] = in[n - 1 - I]; }

// Eight halves to eight floats.
extern "C" __global__ void widened(float4 *out, const uint4 *in) {
    uint4 x = in[I];
    unsigned words[4] = {x.x, x.y, x.z, x.w};
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        unsigned short half = words[k / 2] >> (k % 2 * 16);
        asm("cvt.f32.f16 %0, %1;" : "=f"(v[k]) : "h"(half));
    }
    out[2 * I] = make_float4(v[0], v[1], v[2], v[3]);
    out[2 * I + 1] = make_float4(v[4], v[5], v[6], v[7]);
}

// Sums of 64 rows of a matrix, four columns per thread.
extern "C" __global__ void partial_columns(float4 *out, const float4 *in, int columns) {
    int x = I;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int k = 0; k < 64; k++) {
        float4 v = in[(size_t)(blockIdx.y * 64 + k) * columns + x];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[(size_t)blockIdx.y * columns + x] = sum;
}

// Eight chains of each thread, of one operation.
extern "C" __global__ void half_pairs(unsigned *out, const unsigned *in) {
    unsigned v[8], x = in[I];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = x + j;
#pragma unroll 16
    for (int k = 0; k < 1024; k++)
#pragma unroll
        for (int j = 0; j < 8; j++) asm("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(v[j]) : "r"(x));
    unsigned all = v[0];
#pragma unroll
    for (int j = 1; j < 8; j++) all ^= v[j];
    out[I] = all;
}

extern "C" __global__ void powers_of_two(float *out, const float *in) {
    float v[8], x = in[I];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = x + j;
#pragma unroll 16
    for (int k = 0; k < 1024; k++)
#pragma unroll
        for (int j = 0; j < 8; j++) asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v[j]));
    float sum = v[0];
#pragma unroll
    for (int j = 1; j < 8; j++) sum += v[j];
    out[I] = sum;
}
