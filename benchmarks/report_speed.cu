// Kernels as users write them, none of them a rung: `report_speed.py` simulates each at its size.

#include <math.h>

// C = A·B, row-major, n a multiple of 128. A block of 256 threads computes 128 × 128 elements of C,
// a thread 8 × 8 of them.
extern "C" __global__ void sgemm(float *c, const float *a, const float *b, int n) {
    __shared__ float tile_a[8][128], tile_b[8][128];
    const int row = blockIdx.y * 128, column = blockIdx.x * 128;
    const int first_row = threadIdx.x / 16 * 8, first_column = threadIdx.x % 16 * 8;
    float sums[8][8] = {};
    for (int k = 0; k < n; k += 8) {
        for (int i = threadIdx.x; i < 8 * 128; i += 256) {
            tile_a[i % 8][i / 8] = a[(size_t)(row + i / 8) * n + k + i % 8];
            tile_b[i / 128][i % 128] = b[(size_t)(k + i / 128) * n + column + i % 128];
        }
        __syncthreads();
        for (int j = 0; j < 8; ++j)
            for (int y = 0; y < 8; ++y)
                for (int x = 0; x < 8; ++x)
                    sums[y][x] += tile_a[j][first_row + y] * tile_b[j][first_column + x];
        __syncthreads();
    }
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 8; ++x)
            c[(size_t)(row + first_row + y) * n + column + first_column + x] = sums[y][x];
}

// C = A·B with one thread per element of C, in blocks of 16 × 16.
extern "C" __global__ void one_thread_per_element(float *c, const float *a, const float *b, int n) {
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[(size_t)row * n + k] * b[(size_t)k * n + column];
    c[(size_t)row * n + column] = sum;
}

struct Add {
    __device__ float operator()(float x, float y) const { return x + y; }
};

struct Max {
    __device__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

// The values of all 256 threads of a block, combined; every thread gets the result.
template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float of_warps[8];
    for (int lane = 16; lane; lane /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffff, value, lane));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warps[0];
    for (int warp = 1; warp < 8; ++warp) value = combine(value, of_warps[warp]);
    __syncthreads();
    return value;
}

// One block per row of n elements.
extern "C" __global__ void softmax(float *out, const float *in, int n) {
    const float *row = in + (size_t)blockIdx.x * n;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, row[i]);
    most = over_block(most, Max());
    for (int i = threadIdx.x; i < n; i += 256) sum += __expf(row[i] - most);
    sum = over_block(sum, Add());
    for (int i = threadIdx.x; i < n; i += 256)
        out[(size_t)blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}

// One block per row of n elements.
extern "C" __global__ void layernorm(float *out, const float *in, const float *scale,
                                     const float *shift, int n) {
    const float *row = in + (size_t)blockIdx.x * n;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += 256) {
        sum += row[i];
        squares += row[i] * row[i];
    }
    const float mean = over_block(sum, Add()) / n;
    const float variance = over_block(squares, Add()) / n - mean * mean;
    for (int i = threadIdx.x; i < n; i += 256)
        out[(size_t)blockIdx.x * n + i] =
            (row[i] - mean) * rsqrtf(variance + 1e-5f) * scale[i] + shift[i];
}

// GELU by the approximation with tanh, four elements per thread.
extern "C" __global__ void gelu(float4 *out, const float4 *in) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float4 x = in[i];
    float *parts[] = {&x.x, &x.y, &x.z, &x.w};
    for (int k = 0; k < 4; ++k) {
        const float v = *parts[k];
        *parts[k] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
    out[i] = x;
}

// 5 × 5 weights, zeros beyond the borders; a block of 32 × 8 threads, one element per thread.
extern "C" __global__ void conv2d(float *out, const float *in, const float *weights, int n) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx)
            if (y + dy >= 0 && y + dy < n && x + dx >= 0 && x + dx < n)
                sum += in[(size_t)(y + dy) * n + x + dx] * weights[(dy + 2) * 5 + dx + 2];
    out[(size_t)y * n + x] = sum;
}

// The sum of n elements into *out, by a loop over the grid and one atomic addition per block.
extern "C" __global__ void reduction(float *out, const float *in, int n) {
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
    sum = over_block(sum, Add());
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

// Tiles of 32 × 32 by way of shared memory; a block of 32 × 8 threads.
extern "C" __global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += 8)
        tile[j][threadIdx.x] = in[(size_t)(y + j) * n + x + threadIdx.x];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8)
        out[(size_t)(x + j) * n + y + threadIdx.x] = tile[threadIdx.x][j];
}
