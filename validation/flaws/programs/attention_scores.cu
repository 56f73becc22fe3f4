// Scores of attention: queries times keys, with a tile of keys in shared memory.
// The flaw: each lane reads the row of its key, and rows of 64 floats begin in the same bank.
#include <cuda_runtime.h>
#include <cmath>

template <int HEAD_DIM>
__global__ void __launch_bounds__(256)
    attention_scores(const float *__restrict__ q, const float *__restrict__ k,
                     float *__restrict__ scores, int length, float scale) {
#if FIXED
    __shared__ float keys[32][HEAD_DIM + 1];
#else
    __shared__ float keys[32][HEAD_DIM];
#endif
    __shared__ float queries[8][HEAD_DIM];
    const int head = blockIdx.z;
    const float *qh = q + (size_t)head * length * HEAD_DIM;
    const float *kh = k + (size_t)head * length * HEAD_DIM;
    const int tid = threadIdx.y * 32 + threadIdx.x;

    for (int i = tid; i < 32 * HEAD_DIM; i += 256)
        keys[i / HEAD_DIM][i % HEAD_DIM] = kh[(blockIdx.x * 32 + i / HEAD_DIM) * HEAD_DIM + i % HEAD_DIM];
    for (int i = tid; i < 8 * HEAD_DIM; i += 256)
        queries[i / HEAD_DIM][i % HEAD_DIM] = qh[(blockIdx.y * 8 + i / HEAD_DIM) * HEAD_DIM + i % HEAD_DIM];
    __syncthreads();

    float dot = 0.f;
#pragma unroll
    for (int d = 0; d < HEAD_DIM; d++) dot += queries[threadIdx.y][d] * keys[threadIdx.x][d];
    scores[((size_t)head * length + blockIdx.y * 8 + threadIdx.y) * length + blockIdx.x * 32 + threadIdx.x] =
        dot * scale;
}

int main() {
    constexpr int heads = 16, length = 1024, dim = 64;
    float *q, *k, *scores;
    cudaMalloc(&q, heads * length * dim * sizeof(float));
    cudaMalloc(&k, heads * length * dim * sizeof(float));
    cudaMalloc(&scores, (size_t)heads * length * length * sizeof(float));
    attention_scores<dim><<<dim3(length / 32, length / 8, heads), dim3(32, 8)>>>(
        q, k, scores, length, 1.0f / sqrtf(dim));
    cudaDeviceSynchronize();
}
