// Rung 14, fenced: the multiply-adds stay in the order in which they are written.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      The order of rungs 12 and 13 reads two operands per multiply-add where there were three:
//           to and fro along the rows of the thread's tile, a value of A stays 16 times (.reuse), a
//           value of B at each turn, and the two that are read come from both register banks. The
//           compiler undoes it by mixing steps in k. An instruction that it moves nothing across
//           ends each step: pmevent, which triggers a profiler's event and does nothing else.
// Mapping   as rung 13: block tile 128 x 128 in phases of depth 32, 8 x 16 elements per thread.
// Traffic   at STAGES = 3, multiples of 128:
//           per element of C: K/64 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     The issue of instructions, and reads of shared memory, whose results take turns with those
//           of multiply-adds on the way to the registers. N and K must be multiples of 4.
// Source    Scott Gray, maxas, "SGEMM"; "Dissecting the Volta architecture" (Jia et al., 2018) on register
//           banks and reuse; PTX ISA, "pmevent".

#ifndef STAGES
#define STAGES 3
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr bool FENCED = true, TURNED = false;  // rungs 14, 18

#include "bulk.cuh"

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_fenced(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
             int M, int N, int K, float alpha, float beta)
{
#include "ring.cuh"

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int first_row = (blockIdx.z * gridDim.y + blockIdx.y) * BM, first_col = blockIdx.x * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting

#include "whole_tile.cuh"
}
