// Rung 15, rasterised: blocks take tiles of C in bands, so that neighbours in time share A and B.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Blocks start by their number. Row by row, those of one time need a few rows of tiles of A
//           and all of B; column by column within a band of rows, a compact piece of C, and of A and B
//           what L2 holds. Nothing else changes.
// Mapping   as rung 13: block tile 128 x 128 in phases of depth 32, 8 x 16 elements per thread; bands
//           are BAND tiles high.
// Traffic   at STAGES = 3, BAND = 8, multiples of 128:
//           per element of C: K/64 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     As rung 14. Where the tiles are no multiple of the blocks that run at a time, the last of
//           them leave SMs idle: at 4096, 1,024 tiles on 132 SMs take 4 turns for 3.9.
// Source    CUTLASS, "Efficient GEMM in CUDA", on rasterization of thread blocks.

#ifndef STAGES
#define STAGES 3
#endif
#ifndef BAND
#define BAND 8
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr bool FENCED = true, TURNED = false;  // rungs 14, 18

#include "bulk.cuh"

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_rasterised(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
#include "ring.cuh"

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int band = blockIdx.z * gridDim.y + blockIdx.y;
    const int first_row = (band * BAND + blockIdx.x % BAND) * BM, first_col = blockIdx.x / BAND * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting

#include "whole_tile.cuh"
}
