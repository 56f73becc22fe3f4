// Path short-k: tiny products, and products whose K is so short that storing C is most of the work.
//
//   C = alpha * op(A) * op(B) + beta * C     op(A): M x K, op(B): K x N, C: M x N, float32, batched
//
// Idea      There is little to start: DEPTH of K go to shared memory by way of registers, and
//           the next ones are on their way meanwhile. The lanes of a warp have neighbouring columns of C, so that
//           they store whole sectors wherever a row begins.
// Mapping   block tile 8 ROWS x 32 COLUMNS; a thread has ROWS neighbouring rows and COLUMNS columns
//           that are 32 apart. blockIdx.x: tiles, down first; blockIdx.z: matrices of the batch.
// Traffic   loads: K (BM + BN) / (BM BN) floats per element of C, of 4 bytes each
// Limit     DRAM or L2, which take C; a product of one block: latency of its loads.
// Source    CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication (C = AB)".

#ifndef ROWS
#define ROWS 8
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef A_ALONG_K
#define A_ALONG_K 1
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif

constexpr int THREADS = 256, WARPS = THREADS / 32, BM = WARPS * ROWS, BN = 32 * COLUMNS, DEPTH = 16;
constexpr int PAD_A = ROWS < 4 ? ROWS : 4, PAD_B = 1;
constexpr int BLOCKS = ROWS * COLUMNS > 8 ? 3 : ROWS * COLUMNS > 2 ? 4 : 6;  // on an SM, by registers

#include "early_start.cuh"

// A tile of DEPTH x X floats, [k][x], on its way through registers.
template <bool ALONG_K, int X, int PAD>
struct Tile {
    static constexpr int PASSES = (DEPTH * X + THREADS - 1) / THREADS;
    float value[PASSES];

    __device__ static int x_of(int n) { return ALONG_K ? n / DEPTH : n % X; }
    __device__ static int k_of(int n) { return ALONG_K ? n % DEPTH : n / X; }

    __device__ void load(const float* from, int pitch, int left_x, int left_k)
    {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int n = threadIdx.x + pass * THREADS, x = x_of(n), k = k_of(n);
            value[pass] = x < left_x && k < left_k && n < DEPTH * X ? __ldca(from + (ALONG_K ? size_t(x) * pitch + k : size_t(k) * pitch + x)) : 0.0f;
        }
    }
    __device__ void store(float (&to)[DEPTH][X + PAD]) const
    {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int n = threadIdx.x + pass * THREADS;
            if (n < DEPTH * X) to[k_of(n)][x_of(n)] = value[pass];
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sgemm_short_k(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
              int lda, int ldb, int ldc, long long stride_a, long long stride_b, long long stride_c, float alpha, float beta)
{
    __shared__ __align__(16) float a[DEPTH][BM + PAD_A];
    __shared__ __align__(16) float b[DEPTH][BN + PAD_B];
    A += blockIdx.z * stride_a, B += blockIdx.z * stride_b, C += blockIdx.z * stride_c;
    const int down = (M + BM - 1) / BM, first_row = blockIdx.x % down * BM, first_col = blockIdx.x / down * BN;
    const int lane = threadIdx.x % 32, own_row = threadIdx.x / 32 * ROWS;

    float sum[ROWS][COLUMNS] = {};
    let_next_launch_start_beside_few_blocks();
    wait_for_last_launch();
    Tile<A_ALONG_K, BM, PAD_A> of_a;
    Tile<B_ALONG_K, BN, PAD_B> of_b;
    const auto load = [&](int k) {
        of_a.load(A + (A_ALONG_K ? size_t(first_row) * lda + k : size_t(k) * lda + first_row), lda, M - first_row, K - k);
        of_b.load(B + (B_ALONG_K ? size_t(first_col) * ldb + k : size_t(k) * ldb + first_col), ldb, N - first_col, K - k);
    };
    load(0);
    for (int k = 0; k < K; k += DEPTH) {
        if (k > 0) __syncthreads();  // everyone has read
        of_a.store(a);
        of_b.store(b);
        __syncthreads();
        if (k + DEPTH < K) load(k + DEPTH);  // on its way while this one is computed
#pragma unroll
        for (int kk = 0; kk < DEPTH; ++kk) {  // behind K are zeros
            float rows[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) rows[i] = a[kk][own_row + i];  // the same address in all lanes
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                const float column = b[kk][lane + 32 * j];
#pragma unroll
                for (int i = 0; i < ROWS; ++i) sum[i][j] += rows[i] * column;
            }
        }
    }
    float* const c = C + size_t(first_row + own_row) * ldc + first_col + lane;
    const int left_rows = M - first_row - own_row, left_columns = N - first_col - lane;
    float old[ROWS][COLUMNS] = {};  // all loads come before the stores
    if (beta != 0.0f)
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                if (i < left_rows && 32 * j < left_columns) old[i][j] = c[size_t(i) * ldc + 32 * j];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            if (i < left_rows && 32 * j < left_columns) c[size_t(i) * ldc + 32 * j] = alpha * sum[i][j] + beta * old[i][j];
}
