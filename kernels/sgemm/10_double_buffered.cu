// Rung 10, double-buffered: the next phase is under way from global memory while this one computes.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Everything is fetched before it is needed. The next tiles travel into registers
//           while this phase computes, then into a second pair of buffers, so that one barrier
//           per phase is enough; the values of the next k travel into a second set of registers
//           while this k computes.
// Mapping   as rung 9: block tile 128 x 128 in phases of depth BK, warp tiles of 64 x 32, 8 x 8
//           elements of C per thread; two buffers for the tiles of A and B.
// Traffic   at BM = 128, BN = 128, BK = 8, multiples of 128:
//           per element of C: K/64 global loads in K/256 instructions, 1 global store in 1/4;
//                             K/64 shared stores in 5K/512, K/4 shared loads in K/16
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (16 rows of 32 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2; stores of A 1, stores of B 4
// Limit     Registers: what is under way needs as many as it has bytes, so that only one phase can
//           be. N and K must be multiples of 4.
// Source    CUTLASS, "Efficient GEMM in CUDA", pipelining.

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 8
#endif

constexpr int WM = 64, WN = 32;  // of a warp
constexpr int TM = 8, TN = 8;    // of a thread
constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0, "lanes fill warp tiles, these the block's");

#include "passes.cuh"

constexpr int A_PASSES = BM / A_ROWS_PER_PASS, B_PASSES = BK / B_ROWS_PER_PASS;

struct Tiles {
    float a[BK][BM];  // transposed and swizzled
    float b[BK][BN];
};

// What is under way takes registers, of which threads have 128 where an SM holds 512 of them, and
// 168 where it holds 384.
constexpr int UNDER_WAY = 4 * (A_PASSES + B_PASSES);
constexpr int THREADS_PER_SM = UNDER_WAY > 8 ? 384 : 512;

extern "C" __global__ void __launch_bounds__(THREADS, THREADS_PER_SM / THREADS)
sgemm_double_buffered(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                      int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) Tiles tiles[2];

#include "warp_tile.cuh"
    const int a_row = t / (BK / 4), a_col = t % (BK / 4) * 4;
    const int b_row = t / (BN / 4), b_col = t % (BN / 4) * 4;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* from_a = A + size_t(first_row + a_row) * K + a_col;
    const float* from_b = B + size_t(b_row) * N + first_col + b_col;
    const int rows_left = M - first_row - a_row;
    const bool in_columns = first_col + b_col < N;

    float4 next_a[A_PASSES], next_b[B_PASSES];  // the next tiles, on their way
    const auto fetch = [&](int phase) {
        // N and K are multiples of 4: a float4 is inside of a matrix or outside, never half
#pragma unroll
        for (int pass = 0; pass < A_PASSES; ++pass) {
            const int down = pass * A_ROWS_PER_PASS;
            next_a[pass] = down < rows_left && phase + a_col < K
                ? *reinterpret_cast<const float4*>(from_a + size_t(down) * K) : zero;
        }
#pragma unroll
        for (int pass = 0; pass < B_PASSES; ++pass) {
            const int down = pass * B_ROWS_PER_PASS;
            next_b[pass] = phase + b_row + down < K && in_columns
                ? *reinterpret_cast<const float4*>(from_b + size_t(down) * N) : zero;
        }
        from_a += BK;
        from_b += size_t(BK) * N;
    };
    const auto store = [&](Tiles& to) {
#pragma unroll
        for (int pass = 0; pass < A_PASSES; ++pass) {
            const int column = swizzled(a_col, a_row + pass * A_ROWS_PER_PASS);
            to.a[a_col + 0][column] = next_a[pass].x;
            to.a[a_col + 1][column] = next_a[pass].y;
            to.a[a_col + 2][column] = next_a[pass].z;
            to.a[a_col + 3][column] = next_a[pass].w;
        }
#pragma unroll
        for (int pass = 0; pass < B_PASSES; ++pass)
            *reinterpret_cast<float4*>(&to.b[b_row + pass * B_ROWS_PER_PASS][b_col]) = next_b[pass];
    };

    float a[2][TM], b[2][TN];  // the values of this k and of the next
    const auto read = [&](const Tiles& from, int k, int into) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            *reinterpret_cast<float4*>(&a[into][half * 4]) =
                *reinterpret_cast<const float4*>(&from.a[k][swizzled(k, c_row + half * WM / 2)]);
            *reinterpret_cast<float4*>(&b[into][half * 4]) =
                *reinterpret_cast<const float4*>(&from.b[k][c_col + half * WN / 2]);
        }
    };

    float sum[TM][TN] = {};
    int current = 0;
    const auto compute = [&](int phase, bool more) {
        if (more) fetch(phase + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                read(tiles[current], k + 1, (k + 1) % 2);
            } else if (more) {
                store(tiles[current ^ 1]);  // last read one phase ago, before the barrier there
                __syncthreads();            // the next tiles are complete
                read(tiles[current ^ 1], 0, 0);
            }
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
        }
        current ^= 1;
    };

    fetch(0);
    store(tiles[0]);
    __syncthreads();  // the first tiles are complete
    read(tiles[0], 0, 0);
    int phase = 0;
    for (; phase + BK < K; phase += BK) compute(phase, true);
    compute(phase, false);

#include "store_quads.cuh"
}
