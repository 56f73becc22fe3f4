// Rung 1, one block: the whole product in a single thread block.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      One thread per element of C. This is where a first CUDA program starts, and
//           where it ends: a block has at most 1,024 threads, so C has at most 32 x 32.
// Mapping   thread (x, y) -> C[y][x]; block (32, 32), grid (1, 1).
// Traffic   per thread: 2 K global loads, 1 global store; no shared memory
//           in all:     2 M N K global loads, M N global stores
//           intensity:  0.25 FLOP per byte loaded
// Warp      A: 1 sector per request (broadcast); B: 4; C: 4
// Limit     One SM of the whole device works, and only one block of it.
// Source    CS 380 GPU and GPGPU Programming, lecture 14, "Multiply Using One Thread Block".

extern "C" __global__ void __launch_bounds__(1024)
sgemm_one_block(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                int M, int N, int K, float alpha, float beta)
{
    const int row = threadIdx.y;
    const int col = threadIdx.x;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
#pragma unroll 8  // eight pairs of loads in flight: 4 hide less latency, 16 run out of registers
    for (int k = 0; k < K; ++k)
        sum += A[size_t(row) * K + k] * B[size_t(k) * N + col];

    float* const c = C + size_t(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;  // as in BLAS: C is not read at beta 0
}
