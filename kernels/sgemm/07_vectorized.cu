// Rung 7, vectorized: float4 from global memory, A transposed in shared memory, float4 out.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      One instruction moves four floats. The tile of A is stored transposed, so that
//           the 8 values of A that a thread needs for one k stand side by side like those of B.
// Mapping   as rung 6: block tile 128 x 128 in phases of depth BK, 8 x 8 elements of C per
//           thread; a thread copies float4 pieces.
// Traffic   at BK = 8, multiples of 128:
//           per element of C: K/64 global loads in K/256 instructions, 1 global store in 1/4;
//                             K/64 shared stores in 5K/512, K/4 shared loads in K/16
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (16 rows of 32 bytes); B: 16; C: 32
//           shared: A 2 wavefronts per read, B 8 where 2 would do (bank conflicts as in rung 6);
//           the transposing stores of A 2 where 1 would do, the stores of B 4
// Limit     The multiply-add pipe and what feeds it; N and K must be multiples of 4.
// Source    xGeMM chapter 6; "Vectorized mem access" of "An Optimization Procedure on Matrix
//           Multiplication".

#ifndef BK
#define BK 8
#endif

constexpr int BM = 128, BN = 128;
constexpr int TM = 8, TN = 8;
constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_ROWS_PER_PASS = THREADS / (BK / 4);
constexpr int B_ROWS_PER_PASS = THREADS / (BN / 4);
static_assert(BK % 4 == 0 && TM % 4 == 0 && TN % 4 == 0, "a float4 never leaves its row of a tile");
static_assert(THREADS % (BK / 4) == 0 && BM % A_ROWS_PER_PASS == 0, "every pass over the tile of A is full");
static_assert(THREADS % (BN / 4) == 0 && BK % B_ROWS_PER_PASS == 0, "every pass over the tile of B is full");

// two blocks per SM, and therefore at most 128 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_vectorized(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[BK][BM];  // transposed
    __shared__ __align__(16) float tile_b[BK][BN];

#include "block_tile.cuh"

    const int t = threadIdx.x;
    const int c_row = t / (BN / TN) * TM;
    const int c_col = t % (BN / TN) * TN;
    const int a_row = t / (BK / 4), a_col = t % (BK / 4) * 4;
    const int b_row = t / (BN / 4), b_col = t % (BN / 4) * 4;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float sum[TM][TN] = {};
    for (int phase = 0; phase < K; phase += BK) {
        // N and K are multiples of 4: a float4 is inside of a matrix or outside, never half
#pragma unroll
        for (int pass = 0; pass < BM; pass += A_ROWS_PER_PASS) {
            const int row = first_row + a_row + pass, col = phase + a_col;
            const float4 a = row < M && col < K
                ? *reinterpret_cast<const float4*>(A + size_t(row) * K + col) : zero;
            tile_a[a_col + 0][a_row + pass] = a.x;
            tile_a[a_col + 1][a_row + pass] = a.y;
            tile_a[a_col + 2][a_row + pass] = a.z;
            tile_a[a_col + 3][a_row + pass] = a.w;
        }
#pragma unroll
        for (int pass = 0; pass < BK; pass += B_ROWS_PER_PASS) {
            const int row = phase + b_row + pass, col = first_col + b_col;
            *reinterpret_cast<float4*>(&tile_b[b_row + pass][b_col]) = row < K && col < N
                ? *reinterpret_cast<const float4*>(B + size_t(row) * N + col) : zero;
        }
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                *reinterpret_cast<float4*>(&a[i]) = *reinterpret_cast<const float4*>(&tile_a[k][c_row + i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *reinterpret_cast<float4*>(&b[j]) = *reinterpret_cast<const float4*>(&tile_b[k][c_col + j]);
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
        for (int j = 0; j < TN; j += 4)
            if (first_col + c_col + j < N) {
                float4* const quad = reinterpret_cast<float4*>(c + j);
                const float4 old = beta == 0.0f ? zero : *quad;
                *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                    alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
            }
    }
}
