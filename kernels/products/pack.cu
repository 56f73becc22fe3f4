// Path bulk, first launch: op(A) and op(B) are copied to rows that begin on 16 bytes.
//
//   A' = op(A): M x K, B' = op(B): K x N, row-major, float32, batched
//
// Idea      Bulk copies and the loops of rungs 16 to 18 want row-major matrices whose rows begin on 16
//           bytes. A copy costs reading and writing a matrix once, which a large product hardly feels.
// Mapping   a block has 64 x 64 elements of a stored matrix, those of A first, and turns them
//           over in shared memory if the matrix is transposed. blockIdx.z: matrices of the batch.
// Traffic   one load and one store per element of what is copied
// Limit     DRAM, or L2 where both fit.
// Source    CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication (C = AA^T)".

constexpr int THREADS = 256, TILE = 64, PAD = 1;

#include "early_start.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_pack(const float* __restrict__ from_a, float* __restrict__ to_a, int rows_a, int columns_a, int pitch_a, int to_pitch_a,
           int transposed_a, long long stride_a, long long to_stride_a, const float* __restrict__ from_b, float* __restrict__ to_b, int rows_b, int columns_b,
           int pitch_b, int to_pitch_b, int transposed_b, long long stride_b, long long to_stride_b, int tiles_a)
{
    __shared__ float tile[TILE][TILE + PAD];
    let_next_launch_start();
    wait_for_last_launch();
    const bool is_a = int(blockIdx.x) < tiles_a;
    const long long stride = is_a ? stride_a : stride_b;
    if (stride == 0 && blockIdx.z > 0) return;  // all products share it
    const float* const from = (is_a ? from_a : from_b) + blockIdx.z * stride;
    float* const to = (is_a ? to_a : to_b) + blockIdx.z * (is_a ? to_stride_a : to_stride_b);
    const int rows = is_a ? rows_a : rows_b, columns = is_a ? columns_a : columns_b, pitch = is_a ? pitch_a : pitch_b;
    const int to_pitch = is_a ? to_pitch_a : to_pitch_b;
    const bool transposed = is_a ? transposed_a : transposed_b;
    const int number = is_a ? blockIdx.x : blockIdx.x - tiles_a, across = (columns + TILE - 1) / TILE;
    const int first_row = number / across * TILE, first_col = number % across * TILE;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    constexpr int STEP = THREADS / TILE, PASSES = TILE / STEP;

    float value[PASSES];
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
        const int row = first_row + y + pass * STEP, col = first_col + x;
        if (row < rows && col < columns) value[pass] = __ldcs(from + size_t(row) * pitch + col);
    }
    if (!transposed) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int row = first_row + y + pass * STEP, col = first_col + x;
            if (row < rows && col < columns) to[size_t(row) * to_pitch + col] = value[pass];
        }
        return;
    }
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) tile[y + pass * STEP][x] = value[pass];
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
        const int row = first_col + y + pass * STEP, col = first_row + x;  // of the copy
        if (row < columns && col < rows) to[size_t(row) * to_pitch + col] = tile[x][y + pass * STEP];
    }
}
