// Counts of a pass of a radix sort: how many keys of each block have each digit of 8 bits.
// The flaw: each block adds each of its keys to the global counts with an atomic operation.
#include <cuda_runtime.h>
#include <cstdint>
#include <vector>

constexpr int RADIX = 256;
constexpr int KEYS_PER_THREAD = 16;

__global__ void count_digits(const uint32_t *__restrict__ keys, uint32_t *counts, uint32_t n, int shift) {
    uint32_t begin = blockIdx.x * blockDim.x * KEYS_PER_THREAD;
#if FIXED
    __shared__ uint32_t local[RADIX];
    local[threadIdx.x] = 0;
    __syncthreads();
#endif
    for (int i = 0; i < KEYS_PER_THREAD; i++) {
        uint32_t index = begin + i * blockDim.x + threadIdx.x;
        if (index < n) {
            uint32_t digit = (keys[index] >> shift) & (RADIX - 1);
#if FIXED
            atomicAdd(&local[digit], 1u);
#else
            atomicAdd(&counts[digit], 1u);
#endif
        }
    }
#if FIXED
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
#endif
}

int main() {
    const uint32_t n = 1u << 22;
    std::vector<uint32_t> host(n);
    uint32_t state = 1;
    for (auto &key : host) key = state = state * 1664525u + 1013904223u;
    uint32_t *keys, *counts;
    cudaMalloc(&keys, n * sizeof(uint32_t));
    cudaMalloc(&counts, RADIX * sizeof(uint32_t));
    cudaMemcpy(keys, host.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice);
    for (int shift = 0; shift < 32; shift += 8) {
        cudaMemset(counts, 0, RADIX * sizeof(uint32_t));
        count_digits<<<n / (RADIX * KEYS_PER_THREAD), RADIX>>>(keys, counts, n, shift);
    }
    cudaDeviceSynchronize();
}
