// Path bulk, small: rung 17 for rows of any length, with splits that do not wait for each other.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      The loop of rung 17 on tensor maps, whose rows may be longer than the matrix is wide. Blocks that share
//           a tile leave their sums, and the last of them, by an atomic ticket, adds all in the order
//           of k, or a second launch does, where there are many.
// Mapping   block tile BM x BN in phases of depth 64, warp tiles of 8 TM x 4 TN, as rung 17.
//           blockIdx.x: tiles in bands of 8 rows, splits innermost;
//           blockIdx.z: matrices of the batch, the third axis of the tensor maps.
// Traffic   loads: K (BM + BN) / (BM BN) floats per element of C
//           splits > 1: two more floats per split and element of C
// Limit     As rung 17.
// Source    rung 17; CUDA C++ Programming Guide, threadFenceReduction.

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 128
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 16
#endif
#ifndef SLICES
#define SLICES 4
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef BATCHED_A
#define BATCHED_A 1
#endif
#ifndef BATCHED_B
#define BATCHED_B 1
#endif

constexpr int BAND = 8, TOGETHER = 1, BLOCKS = 1;

#include "sliced.cuh"
#include "results.cuh"
#include "early_start.cuh"

// The tiles of A and B at (row, k) and (k, column) of matrix blockIdx.z go to `stage`; `barrier` counts
// their bytes. A matrix that all products share has one in its map, at 0.
__device__ void copy(unsigned stage, unsigned barrier, const TensorMap& a, const TensorMap& b, int row, int column, int k)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
#pragma unroll
    for (int piece = 0; piece < BK / PIECE; ++piece) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %5}], [%4];"
                     :: "r"(stage + piece * A_PIECE), "l"(&a), "r"(k + piece * PIECE), "r"(row), "r"(barrier), "r"(BATCHED_A ? blockIdx.z : 0) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %5}], [%4];"
                     :: "r"(stage + A_BYTES + piece * B_PIECE), "l"(&b), "r"(column), "r"(k + piece * PIECE), "r"(barrier), "r"(BATCHED_B ? blockIdx.z : 0) : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sgemm_sliced(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
             int M, int N, int K, int ldc, long long stride_c, float alpha, float beta, int splits, int by_ticket, char* __restrict__ workspace)
{
#include "ring.cuh"

    const Tile tile(M, N, splits);
    const int first_row = tile.first_row, first_col = tile.first_col, split = tile.split;
    const int t = threadIdx.x, slice = t / SLICE, warp = t % SLICE / 32;
#include "place.cuh"

    wait_for_last_launch();
#include "sliced_loop.cuh"

    float* const parts = reinterpret_cast<float*>(ring_of_tiles);
    leave_sums(sum, parts, alpha);
    finish(parts, tile, C + blockIdx.z * stride_c, M, N, ldc, beta, splits, workspace, by_ticket);
}

#include "sums.cuh"
