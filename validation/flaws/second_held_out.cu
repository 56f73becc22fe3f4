// Kernels with one flaw each, and the same without it, and kernels at a roof
// (`cases.SECOND_HELD_OUT`). They were written before rules of decisions 109 and 110, and judge them.

#ifndef FIXED
#define FIXED 0
#endif
#define I (blockIdx.x * blockDim.x + threadIdx.x)

// Transposition of complex numbers: the lanes of a warp read one column of the tile.
extern "C" __global__ void transposed_pairs(float2 *out, const float2 *in, int n) {
    __shared__ float2 tile[32][32 + FIXED];
    for (int y = threadIdx.y; y < 32; y += 8)
        tile[y][threadIdx.x] = in[(size_t)(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
        out[(size_t)(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][y];
}

// Squares: each thread has 32 elements of its own, or each warp has them.
extern "C" __global__ void chunks(float *out, const float *in) {
    int first = FIXED ? I / 32 * 1024 + threadIdx.x % 32 : I * 32, step = FIXED ? 32 : 1;
    for (int k = 0; k < 32; k++) {
        int i = first + k * step;
        out[i] = in[i] * in[i];
    }
}

// Gradient of an embedding: rows of `gradient` are added to the row of their word. Words are sorted.
extern "C" __global__ void embedding_gradient(float *weight, const float *gradient, const int *word,
                                              int tokens) {
    int column = threadIdx.x, first = blockIdx.x * tokens;
#if FIXED
    float sum = 0;
    for (int k = first; k < first + tokens; k++) {
        sum += gradient[(size_t)k * blockDim.x + column];
        if (k + 1 == first + tokens || word[k + 1] != word[k]) {
            atomicAdd(&weight[word[k] * blockDim.x + column], sum);
            sum = 0;
        }
    }
#else
    for (int k = first; k < first + tokens; k++)
        atomicAdd(&weight[word[k] * blockDim.x + column], gradient[(size_t)k * blockDim.x + column]);
#endif
}

// Loops of 16 lengths: the lanes of a warp have all of them, or one.
extern "C" __global__ void uneven_loops(float *out, const float *in) {
    int steps = 32 * ((FIXED ? I / 32 : I) % 16 + 1);
    float v = in[I];
#pragma unroll 4
    for (int k = 0; k < steps; k++) v = v * v - 0.5f;
    out[I] = v;
}

// Sorts eight values of each thread: by insertion, or by a network of fixed comparisons.
extern "C" __global__ void sorted_eight(float *out, const float *in, int n) {
    float v[8];
#if FIXED
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = in[k * n + I];
#pragma unroll
    for (int round = 0; round < 8; round++)
#pragma unroll
        for (int k = round % 2; k < 7; k += 2) {
            float low = fminf(v[k], v[k + 1]), high = fmaxf(v[k], v[k + 1]);
            v[k] = low, v[k + 1] = high;
        }
#else
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        float x = in[k * n + I];
        int at = k;
        for (; at && v[at - 1] > x; at--) v[at] = v[at - 1];
        v[at] = x;
    }
#endif
#pragma unroll
    for (int k = 0; k < 8; k++) out[k * n + I] = v[k];
}

// Polynomials of degree 4095: one chain of multiply-adds, or eight of every eighth coefficient.
extern "C" __global__ void horner(float *out, const float *in) {
    float x = in[I];
#if FIXED
    float x8 = x * x * x * x * x * x * x * x, part[8] = {};
#pragma unroll 4
    for (int k = 4088; k >= 0; k -= 8)
#pragma unroll
        for (int j = 0; j < 8; j++) part[j] = part[j] * x8 + (k + j);
    float sum = 0;
#pragma unroll
    for (int j = 7; j >= 0; j--) sum = sum * x + part[j];
#else
    float sum = 0;
#pragma unroll 8
    for (int k = 4095; k >= 0; k--) sum = sum * x + k;
#endif
    out[I] = sum;
}

// Bytes are replaced 16 times by a table of 256 words.
__constant__ unsigned substitute[256];
extern "C" __global__ void substituted(unsigned *out, const unsigned *in) {
#if FIXED
    __shared__ unsigned own[256];
    own[threadIdx.x] = substitute[threadIdx.x];
    __syncthreads();
#else
    const unsigned *own = substitute;
#endif
    unsigned v = in[I];
#pragma unroll 1
    for (int round = 0; round < 16; round++) v = (v << 8 | v >> 24) * 5 ^ own[v >> 11 & 255];
    out[I] = v;
}

// Means of 5 x 5 values: tiles of 128 x 128 values for a block, or of 32 x 8.
#define WIDTH (FIXED ? 32 : 128)
#define HEIGHT (FIXED ? 8 : 128)
extern "C" __global__ void large_tiles(float *out, const float *in, int n) {
    for (int k = threadIdx.x; k < WIDTH * HEIGHT; k += blockDim.x) {
        int x = blockIdx.x * WIDTH + k % WIDTH, y = blockIdx.y * HEIGHT + k / WIDTH;
        float sum = 0;
#pragma unroll
        for (int dy = -2; dy <= 2; dy++)
#pragma unroll
            for (int dx = -2; dx <= 2; dx++)
                sum += in[min(max(y + dy, 0), n - 1) * n + min(max(x + dx, 0), n - 1)];
        out[y * n + x] = 0.04f * sum;
    }
}

// At a roof.

extern "C" __global__ void added_doubles(double2 *out, const double2 *a, const double2 *b) {
    double2 x = a[I], y = b[I];
    out[I] = make_double2(x.x + y.x, x.y + y.y);
}

// The largest of 4096 values of each row; a block has a row.
extern "C" __global__ void row_maximum(float *out, const float4 *in) {
    __shared__ float part[8];
    const float4 *row = in + (size_t)blockIdx.x * 1024;
    float most = -1e30f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float4 v = row[threadIdx.x + 256 * k];
        most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++) most = fmaxf(most, part[k]);
        out[blockIdx.x] = most;
    }
}

// Products of small matrices in registers.
extern "C" __global__ void powers_of_matrices(float *out, const float *in) {
    float m[3][3], v[3][3], x = in[I];
#pragma unroll
    for (int k = 0; k < 9; k++) m[k / 3][k % 3] = v[k / 3][k % 3] = x * (k + 1);
#pragma unroll 2
    for (int round = 0; round < 512; round++) {
        float w[3][3];
#pragma unroll
        for (int i = 0; i < 3; i++)
#pragma unroll
            for (int j = 0; j < 3; j++)
                w[i][j] = fmaf(v[i][0], m[0][j], fmaf(v[i][1], m[1][j], fmaf(v[i][2], m[2][j], x)));
#pragma unroll
        for (int k = 0; k < 9; k++) v[k / 3][k % 3] = w[k / 3][k % 3];
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) sum += v[k / 3][k % 3];
    out[I] = sum;
}

// Roots of eight chains.
extern "C" __global__ void roots(float *out, const float *in) {
    float v[8], x = in[I];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = x + j;
#pragma unroll 16
    for (int k = 0; k < 1024; k++)
#pragma unroll
        for (int j = 0; j < 8; j++) asm("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(v[j]));
    float sum = v[0];
#pragma unroll
    for (int j = 1; j < 8; j++) sum += v[j];
    out[I] = sum;
}
