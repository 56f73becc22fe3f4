// Two rows: a block stages tiles of A and B, and a thread computes two rows of a column of C.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major

#ifndef ROWS
#define ROWS 16
#endif
#ifndef DEPTH
#define DEPTH 8
#endif
#define COLUMNS 32
#define THREADS (COLUMNS * ROWS / 2)

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_two_rows(int K, int N, int M, float* __restrict__ C, float beta, float alpha,
               const float* __restrict__ B, const float* __restrict__ A)
{
    __shared__ __align__(16) float tile_a[ROWS][DEPTH], tile_b[DEPTH][COLUMNS];
    const int thread = threadIdx.y * COLUMNS + threadIdx.x;
    const int first_row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS + threadIdx.x;
    float sums[2] = {0.0f, 0.0f};
    for (int phase = 0; phase < K; phase += DEPTH) {
        for (int i = thread; i < ROWS * DEPTH; i += THREADS) {
            const int row = first_row + i / DEPTH, k = phase + i % DEPTH;
            tile_a[i / DEPTH][i % DEPTH] = row < M && k < K ? A[size_t(row) * K + k] : 0.0f;
        }
        for (int y = threadIdx.y; y < DEPTH; y += ROWS / 2)
            tile_b[y][threadIdx.x] = phase + y < K && column < N ? B[size_t(phase + y) * N + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            sums[0] += tile_a[2 * threadIdx.y][k] * tile_b[k][threadIdx.x];
            sums[1] += tile_a[2 * threadIdx.y + 1][k] * tile_b[k][threadIdx.x];
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i) {
        const int row = first_row + 2 * threadIdx.y + i;
        if (row < M && column < N) {
            float* const c = C + size_t(row) * N + column;
            *c = beta == 0.0f ? alpha * sums[i] : alpha * sums[i] + beta * *c;
        }
    }
}
