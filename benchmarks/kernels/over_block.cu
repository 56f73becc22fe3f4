#include <math.h>

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

// The sum of n elements into *out, by a grid-stride loop and one atomic addition per block.
extern "C" __global__ void reduction(float *out, const float *in, int n) {
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
    sum = over_block(sum, Add());
    if (threadIdx.x == 0) atomicAdd(out, sum);
}
