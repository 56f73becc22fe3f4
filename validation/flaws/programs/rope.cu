// Rotary position embedding of queries in place, with tables of sines and cosines. At the roof of DRAM.
#include <cuda_fp16.h>

constexpr int HEAD = 128;

__global__ void rope(__half2 *__restrict__ x, const float2 *__restrict__ table, int heads) {
    // grid: tokens; block: 256 threads, each takes pairs of all heads
    const int token = blockIdx.x;
    __half2 *row = x + (size_t)token * heads * (HEAD / 2);
    for (int i = threadIdx.x; i < heads * HEAD / 8; i += blockDim.x) {
        uint4 packed = reinterpret_cast<uint4 *>(row)[i];
        __half2 *pair = reinterpret_cast<__half2 *>(&packed);
        const int first = i * 4 % (HEAD / 2);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 angle = table[token * (HEAD / 2) + first + k];
            const float2 v = __half22float2(pair[k]);
            pair[k] = __floats2half2_rn(v.x * angle.x - v.y * angle.y, v.x * angle.y + v.y * angle.x);
        }
        reinterpret_cast<uint4 *>(row)[i] = packed;
    }
}

int main() {
    const int tokens = 8192, heads = 32;
    __half2 *x;
    float2 *table;
    cudaMalloc(&x, sizeof(__half2) * tokens * heads * HEAD / 2);
    cudaMalloc(&table, sizeof(float2) * tokens * HEAD / 2);
    rope<<<tokens, 256>>>(x, table, heads);
    cudaDeviceSynchronize();
}
