// Rung 19, realigned: rows that bulk copies cannot take are first copied to where they can.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Bulk copies want rows that begin on 16 bytes. Where those of A or of B do not, the first
//           WORKERS blocks copy them into the workspace, with room behind each, count, and leave;
//           nobody multiplies before the count is full. That takes as long as reading and writing a
//           matrix once, 3% of the time at 4096. Nothing is padded, and where all rows begin on 16
//           bytes this is rung 18.
// Mapping   as rung 18: block tile 160 x 128; to copy, a block takes every WORKERS-th row
// Traffic   at STAGES = 3, BAND = 8, WORKERS = 264, multiples of the tiles, sums for others left out:
//           per element of C: 9K/640 global loads, that end in shared memory; 1 global store in 1/4;
//                             13K/80 shared loads in 13K/320
//           intensity:        35.6 FLOP per byte loaded
//           Other rows: those of the copies come on top, and C is stored float by float.
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     As rung 18. A small product waits for its copies, which cuBLAS does not make.
// Source    PTX ISA, "Async proxy": what ordinary stores wrote, a bulk copy reads behind a proxy fence.

#ifndef STAGES
#define STAGES 3
#endif
#ifndef BAND
#define BAND 8
#endif
#ifndef WORKERS
#define WORKERS 264
#endif

constexpr int BM = 160, BN = 128, BK = 32;
constexpr int WM = 80, WN = 64;  // of a warp
constexpr int TM = 10, TN = 16;  // of a thread
constexpr bool FENCED = true, TURNED = true;  // rungs 14, 18
constexpr int COPIERS = WORKERS; constexpr bool ROWS_ANYWHERE = true;  // blocks that copy rows

#include "bulk.cuh"

// What workers leave for each other: a flag each, then the sums each, in the order of threads.
constexpr int FLAGS_BYTES = (WORKERS * 4 + 127) / 128 * 128;

// Behind the sums: how many blocks have copied and how many know it, then the rows of A and of B.
constexpr size_t SUMS_BYTES = size_t(WORKERS) * BM * BN * FLOAT;
constexpr int COUNTS_BYTES = 128, ROW_FLOATS = 4;  // of which a row of a copy is a multiple

__device__ constexpr size_t pitch(int columns) { return (size_t(columns) + ROW_FLOATS - 1) / ROW_FLOATS * ROW_FLOATS; }

// Rows `first`, first + step... of a matrix to rows of whole quads.
__device__ void realign(const float* __restrict__ from, float* __restrict__ to, int rows, int columns, int first, int step)
{
    constexpr int AT_ONCE = 16;  // loads on their way
    for (int row = first; row < rows; row += step)
        for (int begin = threadIdx.x; begin < columns; begin += AT_ONCE * THREADS) {
            float value[AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                if (begin + n * THREADS < columns) value[n] = __ldcs(&from[size_t(row) * columns + begin + n * THREADS]);
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                if (begin + n * THREADS < columns) to[row * pitch(columns) + begin + n * THREADS] = value[n];
        }
}

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_realigned(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
                int M, int N, int K, float alpha, float beta, char* __restrict__ workspace,
                const float* __restrict__ rows_of_a, const float* __restrict__ rows_of_b)
{
#include "workers.cuh"

    // The first blocks copy what is not aligned, and leave; the others wait for them. Blocks start in
    // the order of their numbers: whoever waits, waits for blocks that run or are done.
    const bool copies_a = K % ROW_FLOATS, copies_b = N % ROW_FLOATS;
    int* const counts = reinterpret_cast<int*>(workspace + FLAGS_BYTES + SUMS_BYTES);
    if (blockIdx.x < WORKERS) {
        float* const copies = reinterpret_cast<float*>(workspace + FLAGS_BYTES + SUMS_BYTES + COUNTS_BYTES);
        if (copies_a) realign(rows_of_a, copies, M, K, blockIdx.x, WORKERS);
        if (copies_b) realign(rows_of_b, copies + (copies_a ? M * pitch(K) : 0), K, N, blockIdx.x, WORKERS);
        if (!copies_a && !copies_b) return;
        asm volatile("fence.proxy.async;" ::: "memory");
        __threadfence();
        __syncthreads();
        if (t == 0) atomicAdd(&counts[0], 1);
        return;
    }
    if (copies_a || copies_b) {
        if (t == 0) {
            int copied;
            do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(copied) : "l"(counts) : "memory");
            while (copied < WORKERS);
            if (atomicAdd(&counts[1], 1) == gridDim.x - WORKERS - 1) counts[0] = counts[1] = 0;  // for the next launch
            asm volatile("fence.proxy.async;" ::: "memory");
        }
        __syncthreads();
    }
    const int block = blockIdx.x, pitch_c = N; const bool by_quads = N % 4 == 0;  // rows of C are without gaps
#include "stream_k.cuh"
}
