// Path bulk, large: rungs 16 and 18 for rows of any length, with workers that are numbered by a ticket.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major, batched
//
// Idea      The loop of rungs 16 and 18 on tensor maps, whose rows may be longer than the matrix is wide.
//           A block takes its number when it starts, of a counter: it waits for lower numbers only, which
//           have started, whatever the order of blocks and whatever else runs on the device.
// Mapping   block tile 16 TM x 128 in phases of depth 32: 128 rows as rung 16, or 160 as rung 18.
// Traffic   loads: K (BM + BN) / (BM BN) floats per element of C; sums that workers leave
// Limit     As rungs 16 and 18.
// Source    rungs 16 and 18.

#ifndef TM
#define TM 10
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef WORKERS
#define WORKERS 264
#endif
#ifndef BATCHED_A
#define BATCHED_A 1
#endif
#ifndef BATCHED_B
#define BATCHED_B 1
#endif

constexpr int BAND = 8;
constexpr int WM = 8 * TM, WN = 64;  // of a warp
constexpr int TN = 16;  // of a thread
constexpr int BM = 2 * WM, BN = 128, BK = 32;
constexpr bool FENCED = true, TURNED = TM > 8;  // rungs 14, 18
constexpr int COPIERS = 0;  // rung 19
constexpr bool ROWS_ANYWHERE = true;

#include "bulk.cuh"
#include "early_start.cuh"

// Matrices of a batch lie below each other, each in whole tiles: `rows` are those of one. Its number is the third
// coordinate of the tensor maps, 0 in a map of a matrix that all products share.
struct OfBatch {
    const TensorMap& map;
    int rows;
};
__device__ void copy(unsigned stage, unsigned barrier, const OfBatch& a, const OfBatch& b, int row, int column, int k)
{
    const int matrix = row < a.rows ? 0 : row / a.rows;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %5}], [%4];"
                 :: "r"(stage), "l"(&a.map), "r"(k), "r"(row - matrix * a.rows), "r"(barrier), "r"(BATCHED_A ? matrix : 0) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %5}], [%4];"
                 :: "r"(stage + A_BYTES), "l"(&b.map), "r"(column), "r"(k), "r"(barrier), "r"(BATCHED_B ? matrix : 0) : "memory");
}

// A flag of each worker, the counter of blocks, then the sums of each worker, in the order of threads.
constexpr int FLAGS_BYTES = ((WORKERS + 1) * 4 + 127) / 128 * 128;

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_streamed(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, float* __restrict__ C,
               int rows, int N, int K, int pitch_c, int batch, long long stride_c, float alpha, float beta, char* __restrict__ workspace)
{
    const int rows_in_tiles = (rows + BM - 1) / BM * BM, M = batch * rows_in_tiles;
    const OfBatch A{map_a, rows_in_tiles}, B{map_b, rows_in_tiles};
    wait_for_last_launch();
    if (threadIdx.x == 0) {
        int* const counter = reinterpret_cast<int*>(workspace) + WORKERS;
        extern __shared__ __align__(1024) char ring_of_tiles[];
        const int number = atomicAdd(counter, 1);
        if (number == gridDim.x - 1) *counter = 0;  // for the next launch
        *reinterpret_cast<volatile int*>(ring_of_tiles) = number;
    }
    __syncthreads();
    __shared__ __align__(16) float staging[WARPS][LANES_M][4 * LANES_N];  // more would leave room for one block only
#include "workers.cuh"
    const int block = *reinterpret_cast<volatile int*>(ring_of_tiles);
    __syncthreads();  // everyone knows the number: the ring may be filled
    const bool by_quads = pitch_c % 4 == 0 && N % 4 == 0 && size_t(C) % 16 == 0 && (batch == 1 || stride_c % 4 == 0);

#include "stream_k.cuh"
}
