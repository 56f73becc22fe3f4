// Tiles of 32 × 32 by way of shared memory; a block of 32 × 8 threads.
extern "C" __global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += 8)
        tile[j][threadIdx.x] = in[(size_t)(y + j) * n + x + threadIdx.x];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8)
        out[(size_t)(x + j) * n + y + threadIdx.x] = tile[threadIdx.x][j];
}
