// Rung 9, warp-tiled: a warp owns a compact tile of C, and its lanes are laid out for merged reads.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      A level between block and thread: the 64 x 32 tile of a warp needs 64 values of A and
//           32 of B per k instead of 16 and 128. Of its 8 x 4 lanes, neighbours in one bit of
//           the lane's number share their rows, neighbours in the next their columns: then the
//           quarter-warps of a 16-byte read are served in pairs, for A and for B.
// Mapping   block tile 128 x 128 in phases of depth BK, cut into warp tiles of 64 x 32; bits 1, 3
//           and 4 of a lane choose among 8 groups of rows, bits 0 and 2 among 4 groups of columns;
//           a thread owns 4 rows, 4 more 32 below, 4 columns and 4 more 16 on.
// Traffic   at BM = 128, BN = 128, BK = 8, multiples of 128:
//           per element of C: K/64 global loads in K/256 instructions, 1 global store in 1/4;
//                             K/64 shared stores in 5K/512, K/4 shared loads in K/16
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (16 rows of 32 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2; stores of A 1, stores of B 4
// Limit     Waiting: in each phase all warps load, store, meet, compute and meet again, and what
//           two blocks of an SM do is not enough to cover it. N and K must be multiples of 4.
// Source    CUTLASS, "Efficient GEMM in CUDA", warp-level tiles; the map of lanes follows from
//           how 16-byte reads are grouped (analysis/coalescing.py).

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

// 512 threads per SM, and therefore at most 128 registers
extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
sgemm_warp_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[BK][BM];  // transposed and swizzled
    __shared__ __align__(16) float tile_b[BK][BN];

#include "warp_tile.cuh"
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
                    *reinterpret_cast<const float4*>(&tile_a[k][swizzled(k, c_row + half * WM / 2)]);
                *reinterpret_cast<float4*>(&b[half * 4]) =
                    *reinterpret_cast<const float4*>(&tile_b[k][c_col + half * WN / 2]);
            }
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();  // the tiles may be overwritten
    }

#include "store_quads.cuh"
}
