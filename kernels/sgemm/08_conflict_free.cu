// Rung 8, conflict-free: the lanes of a warp never wait for each other at a bank of shared memory.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Shared memory has 32 banks of 4 bytes. A thread's 8 columns are two float4 half a
//           tile apart, so that neighbouring lanes read neighbouring float4 of B. The columns of
//           the transposed tile of A are swizzled: those that one warp stores at the same time
//           begin in different banks.
// Mapping   block tile 128 x 128 in phases of depth BK; thread t owns rows t / 16 * 4 ... + 3 and
//           64 below, columns t % 16 * 4 ... + 3 and 64 on.
// Traffic   at BK = 8, multiples of 128:
//           per element of C: K/64 global loads in K/256 instructions, 1 global store in 1/4;
//                             K/64 shared stores in 5K/512, K/4 shared loads in K/16
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (16 rows of 32 bytes); B: 16; C: 16 (two rows of 256 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 4 (16 float4 for 32 lanes, but
//           lanes that are 16 apart are not served together); stores of A 1, stores of B 4
// Limit     Shared memory beside the multiply-adds: 12 wavefronts per k and warp for 64 FFMA, and
//           a barrier before and after every phase. N and K must be multiples of 4.
// Source    CUDA C++ Programming Guide, "Shared Memory" of the compute capabilities, on banks;
//           the swizzle by XOR as in CUTLASS, "Permuted shared memory layouts".

#ifndef BK
#define BK 8
#endif

constexpr int BM = 128, BN = 128;
constexpr int TM = 8, TN = 8;
constexpr int THREADS = (BM / TM) * (BN / TN);

#include "passes.cuh"

// two blocks per SM, and therefore at most 128 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_conflict_free(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                    int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[BK][BM];  // transposed and swizzled
    __shared__ __align__(16) float tile_b[BK][BN];

#include "block_tile.cuh"

    const int t = threadIdx.x;
    const int c_row = t / (BN / TN) * 4;
    const int c_col = t % (BN / TN) * 4;
    const int a_row = t / (BK / 4), a_col = t % (BK / 4) * 4;
    const int b_row = t / (BN / 4), b_col = t % (BN / 4) * 4;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float sum[TM][TN] = {};
    for (int phase = 0; phase < K; phase += BK) {
#include "load_tiles.cuh"
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(&a[half * 4]) =
                    *reinterpret_cast<const float4*>(&tile_a[k][swizzled(k, c_row) + half * BM / 2]);
                *reinterpret_cast<float4*>(&b[half * 4]) =
                    *reinterpret_cast<const float4*>(&tile_b[k][c_col + half * BN / 2]);
            }
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();  // the tiles may be overwritten
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i / 4 * BM / 2 + i % 4;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j / 4 * BN / 2;
            if (col < N) {
                float4* const quad = reinterpret_cast<float4*>(C + size_t(row) * N + col);
                const float4 old = beta == 0.0f ? zero : *quad;
                *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                    alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
            }
        }
    }
}
