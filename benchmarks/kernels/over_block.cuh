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
