// Rung 13, bulk copy: one thread has whole tiles copied, and barriers in shared memory count bytes.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      The copy engine of sm_90 moves a tile per instruction, past registers and the load/store
//           unit; zeros come in beyond the edges. A tile of a ring is full when all its bytes have
//           arrived, and empty when every warp has read it: warps wait for these two barriers, and
//           for each other nowhere. A stays row-major, as it cannot be transposed on the way: its
//           rows of 128 bytes are swizzled in pieces of 16, and a thread reads 4 k of a row at once.
// Mapping   block tile 128 x 128 in phases of depth 32, warp tiles of 64 x 64; lanes as in rung 9; a
//           thread owns 8 rows that are 8 apart and 4 times 4 columns that are 16 apart. 128
//           threads, two blocks per SM.
// Traffic   at STAGES = 3, multiples of 128:
//           per element of C: K/64 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     As rung 12: the compiler mixes the steps in k, and operands that were to stay are read
//           again. N and K must be multiples of 4, as rows of a tensor map begin on 16 bytes.
// Source    PTX ISA, "Tensors", "mbarrier" and "cp.async.bulk.tensor"; CUTLASS, "Efficient GEMM in CUDA".

#ifndef STAGES
#define STAGES 3
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr bool FENCED = false, TURNED = false;  // rungs 14, 18

#include "bulk.cuh"

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_bulk_copy(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
                int M, int N, int K, float alpha, float beta)
{
#include "ring.cuh"

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int first_row = (blockIdx.z * gridDim.y + blockIdx.y) * BM, first_col = blockIdx.x * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting

#include "whole_tile.cuh"
}
