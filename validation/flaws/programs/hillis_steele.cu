// Inclusive prefix sums of 1,024 values per block (Hillis and Steele).
// The flaw: two barriers of the whole block per step, where shuffles need none within a warp.
#include <iostream>

const int SIZE = 1024;

__global__ void prefix_sum(const int *in, int *out, int *block_sums) {
    int tid = threadIdx.x;
    int gid = blockIdx.x * SIZE + tid;
#if FIXED
    __shared__ int sums[32];
    int value = in[gid];
    for (int offset = 1; offset < 32; offset *= 2) {
        int left = __shfl_up_sync(0xffffffff, value, offset);
        if (tid % 32 >= offset) value += left;
    }
    if (tid % 32 == 31) sums[tid / 32] = value;
    __syncthreads();
    if (tid < 32) {
        int sum = sums[tid];
        for (int offset = 1; offset < 32; offset *= 2) {
            int left = __shfl_up_sync(0xffffffff, sum, offset);
            if (tid >= offset) sum += left;
        }
        sums[tid] = sum;
    }
    __syncthreads();
    if (tid >= 32) value += sums[tid / 32 - 1];
#else
    __shared__ int temp[SIZE];
    temp[tid] = in[gid];
    __syncthreads();
    for (int offset = 1; offset < SIZE; offset *= 2) {
        int left = 0;
        if (tid >= offset) left = temp[tid - offset];
        __syncthreads();
        temp[tid] += left;
        __syncthreads();
    }
    int value = temp[tid];
#endif
    out[gid] = value;
    if (tid == SIZE - 1) block_sums[blockIdx.x] = value;
}

int main() {
    const int n = 8 * 1024 * 1024;
    int *in, *out, *sums;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    cudaMalloc(&sums, n / SIZE * sizeof(int));
    int *host = new int[n];
    for (int i = 0; i < n; i++) host[i] = i % 7;
    cudaMemcpy(in, host, n * sizeof(int), cudaMemcpyHostToDevice);
    prefix_sum<<<n / SIZE, SIZE>>>(in, out, sums);
    cudaMemcpy(host, out, n * sizeof(int), cudaMemcpyDeviceToHost);
    std::cout << host[SIZE - 1] << std::endl;
    delete[] host;
}
