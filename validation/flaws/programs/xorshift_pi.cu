// Estimate of pi with a xorshift generator per thread. At the roof of the ALU pipe.
#include <cuda_runtime.h>
#include <cstdio>

__device__ unsigned next(unsigned &state) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

__global__ void xorshift_pi(unsigned long long *hits, int samples) {
    unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 1;
    unsigned inside = 0;
    for (int i = 0; i < samples; i++) {
        const float x = next(state) * 2.3283064e-10f;
        const float y = next(state) * 2.3283064e-10f;
        if (x * x + y * y <= 1.0f) inside++;
    }
    inside = __reduce_add_sync(0xffffffff, inside);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)inside);
}

int main() {
    const int blocks = 132 * 8, threads = 256, samples = 1000;
    unsigned long long *hits, total = 0;
    cudaMalloc(&hits, sizeof(total));
    cudaMemset(hits, 0, sizeof(total));
    xorshift_pi<<<blocks, threads>>>(hits, samples);
    cudaMemcpy(&total, hits, sizeof(total), cudaMemcpyDeviceToHost);
    printf("%f\n", 4.0 * total / ((double)blocks * threads * samples));
}
