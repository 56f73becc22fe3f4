// Kernels of other kinds than the ladder's, whose traffic at L2 and DRAM is held to hardware.
// Every one takes (float* out, const float* in, int n); n is the side of a matrix.

#define EXPORT extern "C" __global__ void

EXPORT copy(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

EXPORT copy_wide(float4* out, const float4* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

EXPORT axpy(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += 2.0f * in[i];
}

EXPORT transpose_plain(float* out, const float* in, int n)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

EXPORT transpose_padded(float* out, const float* in, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

EXPORT stencil(float* out, const float* in, int n)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int left = max(x - 1, 0), right = min(x + 1, n - 1);
    const int up = max(y - 1, 0), down = min(y + 1, n - 1);
    out[y * n + x] = in[y * n + x] + 0.1f * (in[y * n + left] + in[y * n + right] +
                                             in[up * n + x] + in[down * n + x]);
}

EXPORT softmax(float* out, const float* in, int n)  // a block per row, three passes over it
{
    __shared__ float part[8];
    const float* row = in + size_t(blockIdx.x) * n;
    float most = -1e30f, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < 8; ++w) most = fmaxf(most, part[w]);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf(row[i] - most);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < 8; ++w) sum += part[w];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[size_t(blockIdx.x) * n + i] = __expf(row[i] - most) / sum;
}

EXPORT row_sums(float* out, const float* in, int n)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) sum += in[size_t(blockIdx.x * 8 + threadIdx.y) * n + i];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x * 8 + threadIdx.y] = sum;
}

EXPORT column_sums(float* out, const float* in, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int y = 0; y < n; ++y) sum += in[size_t(y) * n + x];
    out[x] = sum;
}

EXPORT matrix_vector(float* out, const float* in, int n)  // the vector is the matrix's first row
{
    float sum = 0.0f;
    const size_t row = blockIdx.x * 8 + threadIdx.y;
    for (int i = threadIdx.x; i < n; i += 32) sum += in[row * n + i] * in[i];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) out[row] = sum;
}

EXPORT strided(float* out, const float* in, int n)  // one float of every sector
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[8 * i];
}

EXPORT scattered(float* out, const float* in, int n)  // a permutation of odd steps
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i * 2654435761u) & (unsigned(n) * n - 1)];
}
