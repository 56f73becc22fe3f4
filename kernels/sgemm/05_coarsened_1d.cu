// Rung 5, 1D thread coarsening: a thread computes TM elements of one column of C.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Fewer threads than elements: the tile of C grows to 64 x 64 beyond the limit of
//           1,024 threads, and a value of B, once in a register, serves TM multiply-adds.
// Mapping   block tile 64 x 64 in phases of depth BK; thread t owns rows
//           t / 64 * TM ... + TM - 1 of column t % 64. A warp reads one value of A at a time
//           (broadcast) and 32 neighbouring values of B.
// Traffic   at BK = 4, TM = 16, multiples of 64:
//           per element of C: K/32 global loads, 1 global store; K/32 shared stores, 17K/16 shared loads
//           intensity:        16 FLOP per byte loaded
// Warp      A: 8 sectors per request (eight rows of 16 bytes); B: 4; C: 4; shared: no bank conflict
// Limit     Shared memory still: TM + 1 values read for TM multiply-adds.
// Source    "An Optimization Procedure on Matrix Multiplication", Thread Tiling - 1D; xGeMM.

#ifndef BK
#define BK 4
#endif
#ifndef TM
#define TM 16
#endif

constexpr int BM = 64;
constexpr int BN = 64;
constexpr int THREADS = BM * BN / TM;
constexpr int A_ROWS_PER_PASS = THREADS / BK;
constexpr int B_ROWS_PER_PASS = THREADS / BN;
static_assert(BM % TM == 0, "the rows of a block tile are shared out evenly");
static_assert(THREADS % BK == 0 && BM % A_ROWS_PER_PASS == 0, "every pass over the tile of A is full");
static_assert(THREADS % BN == 0 && BK % B_ROWS_PER_PASS == 0, "every pass over the tile of B is full");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_coarsened_1d(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                   int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[BM][BK];  // aligned: reads along k are merged
    __shared__ __align__(16) float tile_b[BK][BN];

#include "block_tile.cuh"

    const int t = threadIdx.x;
    const int c_row = t / BN * TM;
    const int c_col = t % BN;
    const int a_row = t / BK, a_col = t % BK;
    const int b_row = t / BN, b_col = t % BN;

    float sum[TM] = {};
    for (int phase = 0; phase < K; phase += BK) {
#include "load_floats.cuh"
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float b = tile_b[k][c_col];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                sum[i] += tile_a[c_row + i][k] * b;
        }
        __syncthreads();  // the tiles may be overwritten
    }

    const int col = first_col + c_col;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i;
        if (row < M && col < N) {
            float* const c = C + size_t(row) * N + col;
            *c = beta == 0.0f ? alpha * sum[i] : alpha * sum[i] + beta * *c;
        }
    }
}
