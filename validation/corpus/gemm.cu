// Products: double-buffered tiles, warp tiles, split K with atomics, transposed operands, integers.

extern "C" __global__ void gemm_double_buffered(float* c, const float* a, const float* b, int m, int n, int k)
{
    __shared__ float tile_a[2][16][17], tile_b[2][16][16];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float next_a = row < m && x < k ? a[row * k + x] : 0,
          next_b = y < k && column < n ? b[y * n + column] : 0, sum = 0;
    int now = 0;
    for (int start = 0; start < k; start += 16) {
        tile_a[now][y][x] = next_a, tile_b[now][y][x] = next_b;
        __syncthreads();
        const int kx = start + 16 + x, ky = start + 16 + y;
        next_a = row < m && kx < k ? a[row * k + kx] : 0,
        next_b = ky < k && column < n ? b[ky * n + column] : 0;
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += tile_a[now][y][i] * tile_b[now][i][x];
        now ^= 1;
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// 64x64 per block of 128 threads: a warp owns 32x32, a thread 4x8. Sizes are multiples of 64 and 8.
extern "C" __global__ void __launch_bounds__(128)
    gemm_warp_tiled(float* c, const float* a, const float* b, int n, int k)
{
    __shared__ float tile_a[8][64], tile_b[8][64];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    const int row = (warp / 2) * 32 + (lane / 4) * 4, column = (warp % 2) * 32 + (lane % 4) * 8;
    a += blockIdx.y * 64 * k, b += blockIdx.x * 64;
    float sum[4][8] = {};
    for (int start = 0; start < k; start += 8) {
        const float4 va = *(const float4*)&a[(t / 2) * k + start + (t % 2) * 4];
        const float4 vb = *(const float4*)&b[(start + t / 16) * n + (t % 16) * 4];
        for (int i = 0; i < 4; ++i) tile_a[(t % 2) * 4 + i][t / 2] = (&va.x)[i];
        *(float4*)&tile_b[t / 16][(t % 16) * 4] = vb;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float4 u = *(float4*)&tile_a[i][row], v = *(float4*)&tile_b[i][column],
                         w = *(float4*)&tile_b[i][column + 4];
            const float left[4] = {u.x, u.y, u.z, u.w}, right[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
            for (int p = 0; p < 4; ++p)
                for (int q = 0; q < 8; ++q) sum[p][q] += left[p] * right[q];
        }
        __syncthreads();
    }
    c += (blockIdx.y * 64 + row) * n + blockIdx.x * 64 + column;
    for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 8; q += 4)
            *(float4*)&c[p * n + q] = make_float4(sum[p][q], sum[p][q + 1], sum[p][q + 2], sum[p][q + 3]);
}

extern "C" __global__ void gemm_split_k(
    float* c, const float* a, const float* b, int m, int n, int k, int part)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = blockIdx.z * part; i < min(k, (int)(blockIdx.z + 1) * part); ++i)
        sum += a[row * k + i] * b[i * n + column];
    atomicAdd(&c[row * n + column], sum);
}

// C = Aᵀ·B in double precision.
extern "C" __global__ void gemm_double_transposed(
    double* c, const double* a, const double* b, int m, int n, int k)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += a[i * m + row] * b[i * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void gemm_bytes(int* c, const int* a, const int* b, int m, int n, int words)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    int sum = 0;
    for (int i = 0; i < words; ++i) sum = __dp4a(a[row * words + i], b[column * words + i], sum);
    c[row * n + column] = sum;
}

// y = A·x, one warp per row.
extern "C" __global__ void matrix_vector(float* y, const float* a, const float* x, int m, int n)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= m) return;
    float sum = 0;
    for (int j = lane; j < n; j += 32) sum += a[row * n + j] * x[j];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (lane == 0) y[row] = sum;
}

// Complex numbers as float2.
extern "C" __global__ void complex_products(float2* c, const float2* a, const float2* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = make_float2(a[i].x * b[i].x - a[i].y * b[i].y, a[i].x * b[i].y + a[i].y * b[i].x);
}
