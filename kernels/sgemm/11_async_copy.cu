// Rung 11, asynchronous copies: tiles go from global to shared memory past the registers.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      An asynchronous copy (cp.async, since sm_80) needs no register to arrive in: several
//           phases are under way at once, in a ring of STAGES pairs of tiles. A is transposed on
//           its way, 4 bytes at a time; B is copied by 16 bytes where its rows begin on 16, else
//           by 4. Copies fill in zeros beyond the edges: no shape needs padding.
// Mapping   block tile 128 x 128 in phases of depth BK, warp tiles of 64 x 32, lanes and 8 x 8
//           elements per thread as in rung 9. Rows of the transposed tile of A are swizzled twice,
//           so that the lanes that copy neighbouring k of a row write to different banks.
// Traffic   at BM = 128, BN = 128, BK = 16, STAGES = 3, multiples of 128:
//           per element of C: K/64 global loads in 5K/512, that end in shared memory; 1 global
//                             store in 1/4; K/4 shared loads in K/16
//           intensity:        32 FLOP per byte loaded
// Warp      A: 4 sectors per request (two rows of 64 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     Instructions that do no arithmetic: a copy of 4 bytes needs as many as one of 16. The
//           model finds them dearer than the waiting that they save on sm_80 and sm_86, where rung
//           10 is predicted to stay ahead, but not on sm_90.
// Source    CUDA C++ Programming Guide, "Asynchronous Data Copies"; PTX ISA, cp.async.

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

constexpr int WM = 64, WN = 32;  // of a warp
constexpr int TM = 8, TN = 8;    // of a thread

#include "copies.cuh"

// 512 threads per SM, and therefore at most 128 registers
extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
sgemm_async_copy(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
#include "start_copies.cuh"

    float sum[TM][TN] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) start(stages[stage], stage * BK);
    int current = 0, free = STAGES - 1;
    for (int phase = 0; phase < K; phase += BK) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();  // this phase's tiles are complete, and the last one's are not read any more
        start(stages[free], phase + (STAGES - 1) * BK);
        const Stage& tiles = stages[current];
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(&a[half * 4]) =
                    *reinterpret_cast<const float4*>(&tiles.a[k][(c_row ^ quad_swizzle(k)) + half * WM / 2]);
                *reinterpret_cast<float4*>(&b[half * 4]) =
                    *reinterpret_cast<const float4*>(&tiles.b[k][c_col + half * WN / 2]);
            }
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    sum[i][j] += a[i ^ float_swizzle(k)] * b[j];
        }
        current = current + 1 < STAGES ? current + 1 : 0;
        free = free + 1 < STAGES ? free + 1 : 0;
    }

#include "store_guarded.cuh"
}
