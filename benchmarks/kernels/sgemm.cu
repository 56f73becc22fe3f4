// C = A·B, row-major, n a multiple of 128. A block of 256 threads computes 128 × 128 elements of C,
// a thread 8 × 8 of them.
extern "C" __global__ void sgemm(float *c, const float *a, const float *b, int n) {
    __shared__ float tile_a[8][128], tile_b[8][128];
    const int row = blockIdx.y * 128, column = blockIdx.x * 128;
    const int first_row = threadIdx.x / 16 * 8, first_column = threadIdx.x % 16 * 8;
    float sums[8][8] = {};
    for (int k = 0; k < n; k += 8) {
        for (int i = threadIdx.x; i < 8 * 128; i += 256) {
            tile_a[i % 8][i / 8] = a[(size_t)(row + i / 8) * n + k + i % 8];
            tile_b[i / 128][i % 128] = b[(size_t)(k + i / 128) * n + column + i % 128];
        }
        __syncthreads();
        for (int j = 0; j < 8; ++j)
            for (int y = 0; y < 8; ++y)
                for (int x = 0; x < 8; ++x)
                    sums[y][x] += tile_a[j][first_row + y] * tile_b[j][first_column + x];
        __syncthreads();
    }
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 8; ++x)
            c[(size_t)(row + first_row + y) * n + column + first_column + x] = sums[y][x];
}
