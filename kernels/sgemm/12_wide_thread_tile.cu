// Rung 12, wide thread tile: 8 x 16 elements of C per thread, in an order that reuses operands.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      128 multiply-adds for 24 values read, where 8 x 8 needs 16 for 64; few warps with many
//           registers. Registers have two banks, even and odd, of which each gives one value per
//           clock: three operands take two clocks, but for a value that stays from the last
//           instruction (.reuse). Row by row, to and fro, a value of A stays 16 times, and a
//           value of B at each turn. Values of the next k are read before this k computes,
//           across the barrier too; alpha is for the end, so that sums may be in any register.
// Mapping   block tile 128 x 128 in phases of depth BK, warp tiles of 64 x 64; lanes as in rung 9;
//           a thread owns 4 rows and 4 more 32 below, and 4 times 4 columns that are 16 apart.
//           128 threads, two blocks per SM; copies as in rung 11.
// Traffic   at BM = 128, BN = 128, BK = 16, STAGES = 3, FENCE = 0, multiples of 128:
//           per element of C: K/64 global loads in 5K/512, that end in shared memory; 1 global
//                             store in 1/4; 3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      A: 4 sectors per request (two rows of 64 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     What the compiler makes of it: it moves multiply-adds apart, and a value that was to
//           stay is read again. Two warps per scheduler cover little waiting.
// Source    Scott Gray, maxas, "SGEMM"; "Dissecting the Volta architecture" (Jia et al., 2018) on register
//           banks and reuse; CUTLASS, "Efficient GEMM in CUDA".

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 16
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef FENCE
#define FENCE 0
#endif

constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread

#include "copies.cuh"

// 256 threads per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)
sgemm_wide_thread_tile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
#include "start_copies.cuh"

    float a[2][TM], b[2][TN];  // the values of this k and of the next
    const auto read = [&](const Stage& from, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a[k % 2][i]) =
                *reinterpret_cast<const float4*>(&from.a[k][(c_row ^ quad_swizzle(k)) + i / 4 * WM / 2]);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b[k % 2][j]) =
                *reinterpret_cast<const float4*>(&from.b[k][c_col + j * WN / TN]);
    };
    // the next phase's tiles are complete, and those of the last one are not read any more
    const auto arrive = [&] {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
    };

    float sum[TM][TN] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) start(stages[stage], stage * BK);
    int current = 0, free = STAGES - 1;
    arrive();
    read(stages[0], 0);
    for (int phase = 0; phase < K; phase += BK) {
        start(stages[free], phase + (STAGES - 1) * BK);
        const Stage& tiles = stages[current];
        current = current + 1 < STAGES ? current + 1 : 0;
        free = free + 1 < STAGES ? free + 1 : 0;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                read(tiles, k + 1);
            } else if (phase + BK < K) {
                arrive();
                read(stages[current], 0);
            }
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 ? TN - 1 - step : step;  // to and fro
                    sum[i][j] += a[k % 2][i ^ float_swizzle(k)] * b[k % 2][j];
                }
            if (FENCE) asm volatile("pmevent 0;");  // see rung 14
        }
    }

#include "store_guarded.cuh"
}
