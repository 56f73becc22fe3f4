// Behind a product on tensor cores: rows of A and columns of B with Inf or NaN, by multiply-adds of float32.
//
//   C = alpha * A * B + beta * C, for elements whose row of A or column of B has a NaN for its root
//
// Idea      Scales and parts of Inf and NaN mean nothing, and split_product leaves such rows and columns as they are. As a
//           rule there are none, and this launch only sets to zero what the next call expects to be zero.
// Mapping   256 threads a tile of 64 x 64, 4 x 4 each; blocks take every gridDim.x-th tile and skip those without
//           such rows or columns
// Traffic   as a tile of 64 x 64 x 16 in shared memory
// Limit     the launch; multiply-adds where many rows have Inf or NaN
// Source    rung 6 of the ladder

#ifndef CONTROL_BYTES
#define CONTROL_BYTES 256
#endif

#include "places.cuh"

constexpr int THREADS = 256, TILE = 64, DEPTH = 16, EACH = 4;

extern "C" __global__ void __launch_bounds__(THREADS)
split_special_rows(const float* A, const float* B, float* C, int M, int N, int K, int a_row, int a_k, int b_k, int b_column,
                   int ldc, float alpha, float beta, char* workspace, long long zero_bytes)
{
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    __shared__ bool is_last;
    const int t = threadIdx.x;
    const Places places(workspace, zero_bytes, M);
    Control* const control = places.control;
    const float *const root_a = places.root_a, *const root_b = places.root_b;
    wait_for_last_launch();
    const bool has_special = control->special != 0;
    for (long long i = blockIdx.x * THREADS + t; i < (zero_bytes - CONTROL_BYTES) / 4; i += gridDim.x * THREADS) places.maxima[i] = 0;
    __syncthreads();
    if (t == 0) {
        __threadfence();
        is_last = atomicAdd(&control->leavers, 1) == gridDim.x - 1;  // all blocks have read `special`
    }
    __syncthreads();
    if (is_last)
        for (int i = t; i < CONTROL_BYTES / 4; i += THREADS) reinterpret_cast<unsigned*>(workspace)[i] = 0;
    if (!has_special) return;

    const int columns = (N + TILE - 1) / TILE, tiles = (M + TILE - 1) / TILE * columns;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int first_row = tile / columns * TILE, first_column = tile % columns * TILE, one = t % TILE;
        const float of_row = first_row + one < M ? root_a[first_row + one] : 0.0f;
        const float of_column = first_column + one < N ? root_b[first_column + one] : 0.0f;
        if (!__syncthreads_or(of_row != of_row || of_column != of_column)) continue;
        float sum[EACH][EACH] = {};
        for (int begin = 0; begin < K; begin += DEPTH) {
            __syncthreads();
            for (int x = t; x < TILE * DEPTH; x += THREADS) {
                // neighbours of the stored rows to neighbouring threads
                const int row = a_k == 1 ? x / DEPTH : x % TILE, k = a_k == 1 ? x % DEPTH : x / TILE;
                a[k][row] = first_row + row < M && begin + k < K ? A[size_t(first_row + row) * a_row + size_t(begin + k) * a_k] : 0.0f;
            }
            for (int x = t; x < TILE * DEPTH; x += THREADS) {
                const int column = b_k == 1 ? x / DEPTH : x % TILE, k = b_k == 1 ? x % DEPTH : x / TILE;
                b[k][column] = first_column + column < N && begin + k < K ? B[size_t(begin + k) * b_k + size_t(first_column + column) * b_column] : 0.0f;
            }
            __syncthreads();
            const int depth = min(DEPTH, K - begin);
            for (int k = 0; k < depth; ++k)
#pragma unroll
                for (int i = 0; i < EACH; ++i)
#pragma unroll
                    for (int j = 0; j < EACH; ++j) sum[i][j] += a[k][t / 16 + 16 * i] * b[k][t % 16 + 16 * j];
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i)
#pragma unroll
            for (int j = 0; j < EACH; ++j) {
                const int row = first_row + t / 16 + 16 * i, column = first_column + t % 16 + 16 * j;
                if (row >= M || column >= N || (root_a[row] == root_a[row] && root_b[column] == root_b[column])) continue;
                float* const c = C + size_t(row) * ldc + column;
                *c = beta != 0.0f ? alpha * sum[i][j] + beta * *c : alpha * sum[i][j];
            }
    }
}
