// For many splits, whose blocks leave their sums: each block adds THREADS quads of a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_sums(float* __restrict__ C, int M, int N, int ldc, long long stride_c, float beta, int splits,
           const char* __restrict__ workspace)
{
    __shared__ __align__(16) float stage[WARPS * STAGE_FLOATS];
    const Tile tile(M, N, OWN);  // a block per tile and n
    const int n = tile.split;
    const float4* const sums = reinterpret_cast<const float4*>(workspace) + size_t(tile.number) * splits * TILE_QUADS + n * THREADS + threadIdx.x;
    float4 total[1] = {};
    wait_for_last_launch();
    add_in_order<16>(total, sums, 0, TILE_QUADS, splits);
    store(total, n, tile, C + blockIdx.z * stride_c, M, N, ldc, beta, stage);
}
