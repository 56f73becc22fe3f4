// Bug       the tile of B is filled at the row of the column: most of it never is
// Launch    -g 1 -b 8,8 -a f32[8,8] -a f32[8,8] -a f32[8,8]=unwritten
// Expected  racecheck WAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* a, const float* b, float* c)
{
    __shared__ float tile_a[8][8], tile_b[8][8];
    const int row = threadIdx.y, col = threadIdx.x;
    tile_a[row][col] = a[8 * row + col];
    tile_b[col][col] = b[8 * row + col];  // <-
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += tile_a[row][k] * tile_b[k][col];
    c[8 * row + col] = sum;
}
