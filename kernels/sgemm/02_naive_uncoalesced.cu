// Rung 2, naive and uncoalesced: many blocks, threadIdx.x along the rows of C.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      A grid of blocks lifts the size limit of rung 1. The mapping of threads to
//           elements is the unlucky one: neighbouring threads own neighbouring rows.
// Mapping   thread (x, y) of block (bx, by) -> C[bx * WIDTH + x][by * WIDTH + y]
// Traffic   per thread: 2 K global loads, 1 global store; no shared memory
//           in all:     2 M N K global loads, M N global stores
//           intensity:  0.25 FLOP per byte loaded
// Warp      A: 32 sectors per request (a column: every lane in another row); B: 1; C: 32
// Limit     The load/store unit: where K is a multiple of 32, the 32 words of A that a warp loads
//           lie in one bank of L1 and take 32 clocks, one after the other.
// Source    xGeMM chapter on memory coalescing (its second code snippet).

#ifndef WIDTH
#define WIDTH 32
#endif

extern "C" __global__ void __launch_bounds__(WIDTH * WIDTH)
sgemm_naive_uncoalesced(const float* __restrict__ A, const float* __restrict__ B,
                        float* __restrict__ C, int M, int N, int K, float alpha, float beta)
{
    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int row = blockIdx.x * WIDTH + threadIdx.x;
    const int col = (blockIdx.z * gridDim.y + blockIdx.y) * WIDTH + threadIdx.y;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
#pragma unroll 8  // eight pairs of loads in flight: 4 hide less latency, 16 run out of registers
    for (int k = 0; k < K; ++k)
        sum += A[size_t(row) * K + k] * B[size_t(k) * N + col];

    float* const c = C + size_t(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}
