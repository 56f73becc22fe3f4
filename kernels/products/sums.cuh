// For many splits, whose blocks leave their sums: each block adds THREADS quads of a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_sums(float* __restrict__ C, int M, int N, int ldc, long long stride_c, float beta, int splits,
           const char* __restrict__ workspace)
{
    const Tile tile(M, N, OWN);  // OWN blocks per tile, with a quad per thread
    const int quad = tile.split * THREADS + threadIdx.x;
    const int row = tile.first_row + quad / (BN / 4), col = tile.first_col + quad % (BN / 4) * 4;
    if (quad >= TILE_QUADS || row >= M || col >= N) return;
    const float4* const sums = reinterpret_cast<const float4*>(workspace) + size_t(tile.number) * splits * SHARE + quad;
    float4 total[1] = {};
    wait_for_last_launch();
    add_in_order<16>(total, sums, 0, SHARE, splits);
    C += blockIdx.z * stride_c;
    float* const to = C + size_t(row) * ldc + col;
    if (is_in_quads(C, N, ldc)) {
        float4* const place = reinterpret_cast<float4*>(to);
        *place = scaled_sum(total[0], beta, beta != 0.0f ? *place : float4{});
        return;
    }
    const float values[4] = {total[0].x, total[0].y, total[0].z, total[0].w};
    float old[4] = {};
#pragma unroll
    for (int n = 0; n < 4; ++n)
        if (beta != 0.0f && col + n < N) old[n] = to[n];
#pragma unroll
    for (int n = 0; n < 4; ++n)
        if (col + n < N) to[n] = scaled_sum(values[n], beta, old[n]);
}
