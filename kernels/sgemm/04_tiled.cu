// Rung 4, tiled: a block stages square tiles of A and B in shared memory.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      The TILE x TILE threads of a block need the same rows of A and columns of B:
//           each element is loaded once per block and read TILE times from shared memory.
// Mapping   thread (x, y) of block (bx, by) -> C[by * TILE + y][bx * TILE + x]; in every
//           phase it loads one element of A and one of B.
// Traffic   at TILE = 32, multiples of 32:
//           per thread: K/16 global loads, 1 global store; K/16 shared stores, 2 K shared loads
//           intensity:  8 FLOP per byte loaded
// Warp      A, B, C: 4 sectors per request; shared: no bank conflict
// Limit     Shared memory: every multiply-add reads two values from it. (The compiler merges
//           four reads along a row of A; they take 2 wavefronts instead of 4.)
//           Wider tiles are out of reach: 33 x 33 threads are more than 1,024.
// Source    xGeMM chapter on tiling; CS 380 lecture 14, "Multiply Using Several Blocks".

#ifndef TILE
#define TILE 32
#endif

extern "C" __global__ void __launch_bounds__(TILE * TILE)
sgemm_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
            int M, int N, int K, float alpha, float beta)
{
    __shared__ __align__(16) float tile_a[TILE][TILE];  // aligned: reads along k are merged
    __shared__ __align__(16) float tile_b[TILE][TILE];

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int block_row = blockIdx.z * gridDim.y + blockIdx.y;
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int row = block_row * TILE + y;
    const int col = blockIdx.x * TILE + x;
    if (block_row * TILE >= M) return;  // the whole block: no barrier is left waiting

    // A thread outside of C still loads: others need its element. Outside of A and B it
    // stores the zero that leaves every sum unchanged.
    const float* a = A + size_t(row) * K + x;
    const float* b = B + size_t(y) * N + col;
    float sum = 0.0f;
    for (int phase = 0; phase < K; phase += TILE) {
        tile_a[y][x] = row < M && phase + x < K ? *a : 0.0f;
        tile_b[y][x] = phase + y < K && col < N ? *b : 0.0f;
        a += TILE;
        b += size_t(TILE) * N;
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();  // the tiles may be overwritten
    }

    if (row < M && col < N) {
        float* const c = C + size_t(row) * N + col;
        *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
    }
}
