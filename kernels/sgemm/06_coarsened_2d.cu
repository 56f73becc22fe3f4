// Rung 6, 2D thread coarsening: a thread computes an 8 x 8 tile of C in registers.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Reuse in both directions: 8 values of A and 8 of B, once in registers, make 64
//           multiply-adds. The block tile grows to 128 x 128 with 256 threads.
// Mapping   block tile 128 x 128 in phases of depth BK; thread t owns the 8 x 8 tile at row
//           t / 16 * 8, column t % 16 * 8.
// Traffic   at BK = 8, multiples of 128:
//           per element of C: K/64 global loads, 1 global store; K/64 shared stores, K/4 shared loads
//           intensity:        32 FLOP per byte loaded
// Warp      A: 4 sectors per request (four rows of 8 floats); B: 4; C: 32 (every lane 32 bytes
//           on from the last); shared reads, merged by the compiler to 16 bytes: A 2 wavefronts,
//           B 8 where 2 would do (bank conflicts)
// Limit     The multiply-add pipe and what feeds it: scalar copies, and conflicts in B.
// Source    "An Optimization Procedure on Matrix Multiplication", Thread tiling - 2D; xGeMM.

#ifndef BK
#define BK 8
#endif

constexpr int BM = 128, BN = 128;
constexpr int TM = 8, TN = 8;
constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_ROWS_PER_PASS = THREADS / BK;
constexpr int B_ROWS_PER_PASS = THREADS / BN;
static_assert(THREADS % BK == 0 && BM % A_ROWS_PER_PASS == 0, "every pass over the tile of A is full");
static_assert(THREADS % BN == 0 && BK % B_ROWS_PER_PASS == 0, "every pass over the tile of B is full");

// two blocks per SM, and therefore at most 128 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_coarsened_2d(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                   int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[BM][BK];  // aligned: neighbouring reads are merged
    __shared__ __align__(16) float tile_b[BK][BN];

#include "block_tile.cuh"

    const int t = threadIdx.x;
    const int c_row = t / (BN / TN) * TM;
    const int c_col = t % (BN / TN) * TN;
    const int a_row = t / BK, a_col = t % BK;
    const int b_row = t / BN, b_col = t % BN;

    float sum[TM][TN] = {};
    for (int phase = 0; phase < K; phase += BK) {
#include "load_floats.cuh"
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = tile_a[c_row + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b[j] = tile_b[k][c_col + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();  // the tiles may be overwritten
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i;
        if (row >= M) break;
        float* const c = C + size_t(row) * N + first_col + c_col;
#pragma unroll
        for (int j = 0; j < TN; ++j)
            if (first_col + c_col + j < N)
                c[j] = beta == 0.0f ? alpha * sum[i][j] : alpha * sum[i][j] + beta * c[j];
    }
}
