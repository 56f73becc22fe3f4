// Loss of cross-entropy of 1,024 rows of 32,000 logits in one pass (online softmax). At the roof of DRAM.
#include <cuda_runtime.h>
#include <cfloat>

struct State {
    float maximum, sum;
};

__device__ __forceinline__ State merge(State a, State b) {
    const bool a_is_larger = a.maximum > b.maximum;
    const State large = a_is_larger ? a : b, small = a_is_larger ? b : a;
    return {large.maximum, large.sum + small.sum * __expf(small.maximum - large.maximum)};
}

template <int THREADS>
__global__ void cross_entropy(const float *__restrict__ logits, const int *__restrict__ targets,
                              float *__restrict__ losses, int vocabulary) {
    const float4 *row = reinterpret_cast<const float4 *>(logits + (size_t)blockIdx.x * vocabulary);
    State state{-FLT_MAX, 0.f};
#pragma unroll 4
    for (int i = threadIdx.x; i < vocabulary / 4; i += THREADS) {
        const float4 v = row[i];
        const float m = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        const float maximum = fmaxf(state.maximum, m);
        state.sum = state.sum * __expf(state.maximum - maximum) + __expf(v.x - maximum) +
                    __expf(v.y - maximum) + __expf(v.z - maximum) + __expf(v.w - maximum);
        state.maximum = maximum;
    }
    for (int offset = 16; offset > 0; offset >>= 1)
        state = merge(state, {__shfl_xor_sync(0xffffffff, state.maximum, offset),
                              __shfl_xor_sync(0xffffffff, state.sum, offset)});
    __shared__ State parts[THREADS / 32];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = state;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; i++) state = merge(state, parts[i]);
        const float target = logits[(size_t)blockIdx.x * vocabulary + targets[blockIdx.x]];
        losses[blockIdx.x] = logf(state.sum) + state.maximum - target;
    }
}

int main() {
    const int rows = 1024, vocabulary = 32000;
    float *logits, *losses;
    int *targets;
    cudaMalloc(&logits, sizeof(float) * rows * vocabulary);
    cudaMalloc(&losses, sizeof(float) * rows);
    cudaMalloc(&targets, sizeof(int) * rows);
    cudaMemset(targets, 0, sizeof(int) * rows);
    cross_entropy<512><<<rows, 512>>>(logits, targets, losses, vocabulary);
    cudaDeviceSynchronize();
}
