// Rung 3, naive and coalesced: threadIdx.x along the columns of C.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Rung 2 with x and y exchanged: the lanes of a warp now read neighbouring
//           floats of B and the same float of A. Same loads, a fraction of the sectors.
// Mapping   thread (x, y) of block (bx, by) -> C[by * WIDTH + y][bx * WIDTH + x]
// Traffic   per thread: 2 K global loads, 1 global store; no shared memory
//           in all:     2 M N K global loads, M N global stores
//           intensity:  0.25 FLOP per byte loaded
// Warp      A: 1 sector per request (broadcast); B: 4; C: 4
// Limit     The load/store unit: two requests for every multiply-add of a warp.
// Source    xGeMM chapter on memory coalescing (its first code snippet).

#ifndef WIDTH
#define WIDTH 32
#endif

extern "C" __global__ void __launch_bounds__(WIDTH * WIDTH)
sgemm_naive_coalesced(const float* __restrict__ A, const float* __restrict__ B,
                      float* __restrict__ C, int M, int N, int K, float alpha, float beta)
{
    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int row = (blockIdx.z * gridDim.y + blockIdx.y) * WIDTH + threadIdx.y;
    const int col = blockIdx.x * WIDTH + threadIdx.x;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
#pragma unroll 8  // eight pairs of loads in flight: 4 hide less latency, 16 run out of registers
    for (int k = 0; k < K; ++k)
        sum += A[size_t(row) * K + k] * B[size_t(k) * N + col];

    float* const c = C + size_t(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}
