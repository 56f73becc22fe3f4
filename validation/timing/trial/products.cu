// Matrix products in styles of their own. Row-major; C = A·B unless a comment says otherwise.

#define EXPORT extern "C" __global__ void

EXPORT product_by_dots(float* c, const float* a, const float* bt, int m, int n, int k)
{
    const int row = blockIdx.y, column = blockIdx.x * 8 + threadIdx.y;  // warp per element; A·Bᵀ
    if (column >= n) return;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < k; i += 32) sum += a[row * k + i] * bt[column * k + i];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) c[row * n + column] = sum;
}

EXPORT product_24(float* c, const float* a, const float* b, int m, int n, int k)  // 24×24 threads
{
    __shared__ float left[24][24], right[24][25];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * 24 + y, column = blockIdx.x * 24 + x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += 24) {
        left[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0.0f;
        right[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 24; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// 80×80 of C by 16×16 threads; each has 5×5 elements, 16 apart.
EXPORT product_fives(float* c, const float* a, const float* b, int m, int n, int k)
{
    __shared__ float left[10][81], right[10][80];
    const int x = threadIdx.x, y = threadIdx.y, t = y * 16 + x;
    const int top = blockIdx.y * 80, side = blockIdx.x * 80;
    float sums[5][5] = {};
    for (int first = 0; first < k; first += 10) {
        for (int i = t; i < 800; i += 256) {
            const int r = i / 10, d = i % 10;
            left[d][r] = top + r < m && first + d < k ? a[(top + r) * k + first + d] : 0.0f;
        }
        for (int i = t; i < 800; i += 256) {
            const int d = i / 80, s = i % 80;
            right[d][s] = first + d < k && side + s < n ? b[(first + d) * n + side + s] : 0.0f;
        }
        __syncthreads();
#pragma unroll 2
        for (int d = 0; d < 10; ++d) {
            float u[5], v[5];
#pragma unroll
            for (int j = 0; j < 5; ++j) u[j] = left[d][y + 16 * j], v[j] = right[d][x + 16 * j];
#pragma unroll
            for (int i = 0; i < 5; ++i)
#pragma unroll
                for (int j = 0; j < 5; ++j) sums[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 5; ++i)
        for (int j = 0; j < 5; ++j) {
            const int row = top + y + 16 * i, column = side + x + 16 * j;
            if (row < m && column < n) c[row * n + column] = sums[i][j];
        }
}

// 32 rows by 128 columns; A alone is shared, a thread reads its own column of B.
EXPORT product_columns(float* c, const float* a, const float* b, int m, int n, int k)
{
    __shared__ float left[16][32];
    const int column = blockIdx.x * 128 + threadIdx.x, top = blockIdx.y * 32;
    float sums[32] = {};
    for (int first = 0; first < k; first += 16) {
        for (int i = threadIdx.x; i < 512; i += 128) {
            const int r = i / 16, d = i % 16;
            left[d][r] = top + r < m && first + d < k ? a[(top + r) * k + first + d] : 0.0f;
        }
        __syncthreads();
        for (int d = 0; d < 16 && first + d < k; ++d) {
            const float v = column < n ? b[(first + d) * n + column] : 0.0f;
#pragma unroll
            for (int r = 0; r < 32; ++r) sums[r] += left[d][r] * v;
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 32; ++r)
        if (top + r < m && column < n) c[(top + r) * n + column] = sums[r];
}

// 64×64 of C by 64 threads; next slices wait in registers. Multiples of 64 and 8, no checks.
EXPORT product_ahead(float4* c, const float4* a, const float4* b, int m, int n, int k)
{
    __shared__ float left[8][68], right[8][64];
    const int t = threadIdx.x, x = t % 8, y = t / 8, n4 = n / 4, k4 = k / 4;
    const float4* from_a = a + (blockIdx.y * 64 + t) * k4;
    const float4* from_b = b + (t / 16) * n4 + blockIdx.x * 16 + t % 16;
    float sums[8][8] = {};
    float4 a0 = from_a[0], a1 = from_a[1], b0 = from_b[0], b1 = from_b[4 * n4];
    for (int first = 0; first < k; first += 8) {
        left[0][t] = a0.x, left[1][t] = a0.y, left[2][t] = a0.z, left[3][t] = a0.w;
        left[4][t] = a1.x, left[5][t] = a1.y, left[6][t] = a1.z, left[7][t] = a1.w;
        reinterpret_cast<float4*>(right[t / 16])[t % 16] = b0;
        reinterpret_cast<float4*>(right[t / 16 + 4])[t % 16] = b1;
        __syncthreads();
        if (first + 8 < k) {
            from_a += 2, from_b += 8 * n4;
            a0 = from_a[0], a1 = from_a[1], b0 = from_b[0], b1 = from_b[4 * n4];
        }
#pragma unroll
        for (int d = 0; d < 8; ++d) {
            float u[8], v[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) u[j] = left[d][y * 8 + j], v[j] = right[d][x * 4 + j % 4 + j / 4 * 32];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float4* row = c + (blockIdx.y * 64 + y * 8 + i) * n4 + blockIdx.x * 16 + x;
        row[0] = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
        row[8] = make_float4(sums[i][4], sums[i][5], sums[i][6], sums[i][7]);
    }
}

// Each z takes a slice of K and adds to C; 32×32 tiles, 4 rows of each thread.
EXPORT product_sliced(float* c, const float* a, const float* b, int m, int n, int k, int slice)
{
    __shared__ float left[32][33], right[32][32];
    const int x = threadIdx.x, column = blockIdx.x * 32 + x, top = blockIdx.y * 32;
    const int end = min(k, int(blockIdx.z + 1) * slice);
    float sums[4] = {};
    for (int first = blockIdx.z * slice; first < end; first += 32) {
        for (int j = threadIdx.y; j < 32; j += 8) {
            left[j][x] = top + j < m && first + x < end ? a[(top + j) * k + first + x] : 0.0f;
            right[j][x] = first + j < end && column < n ? b[(first + j) * n + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int d = 0; d < 32; ++d) {
#pragma unroll
            for (int j = 0; j < 4; ++j) sums[j] += left[threadIdx.y + 8 * j][d] * right[d][x];
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j) {
        const int row = top + threadIdx.y + 8 * j;
        if (row < m && column < n) atomicAdd(c + row * n + column, sums[j]);
    }
}

EXPORT product_double(double* c, const double* a, const double* b, int m, int n, int k)
{
    __shared__ double left[16][17], right[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    double sum = 0.0;
    for (int first = 0; first < k; first += 16) {
        left[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0.0;
        right[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

EXPORT products_of_sixes(float* c, const float* a, const float* b, int n)  // entry e at e * n + i
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float right[36];
#pragma unroll
    for (int e = 0; e < 36; ++e) right[e] = b[e * n + i];
#pragma unroll
    for (int r = 0; r < 6; ++r) {
        float sums[6] = {};
#pragma unroll
        for (int d = 0; d < 6; ++d) {
            const float u = a[(6 * r + d) * n + i];
#pragma unroll
            for (int s = 0; s < 6; ++s) sums[s] += u * right[6 * d + s];
        }
#pragma unroll
        for (int s = 0; s < 6; ++s) c[(6 * r + s) * n + i] = sums[s];
    }
}

EXPORT products_of_twenties(float* c, const float* a, const float* b)  // 20×20, a block each
{
    __shared__ float left[400], right[400];
    const size_t first = size_t(blockIdx.x) * 400;
    const int t = threadIdx.x, x = t % 20, y = t / 20;
    for (int e = t; e < 400; e += 100) left[e] = a[first + e], right[e] = b[first + e];
    __syncthreads();
    for (int r = y; r < 20; r += 5) {
        float sum = 0.0f;
        for (int d = 0; d < 20; ++d) sum += left[20 * r + d] * right[20 * d + x];
        c[first + 20 * r + x] = sum;
    }
}

EXPORT product_bytes(int* c, const int* a, const int* bt, int m, int n, int k4)  // four bytes each
{
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= n || y >= m) return;
    int sum = 0;
    for (int i = 0; i < k4; ++i) sum = __dp4a(a[y * k4 + i], bt[x * k4 + i], sum);
    c[y * n + x] = sum;
}

EXPORT vector_matrix(float* y, const float* x, const float* b, int n, int k)  // xᵀ·B, split by rows
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    float sum = 0.0f;
    for (int i = blockIdx.y; i < k; i += gridDim.y) sum += x[i] * b[size_t(i) * n + column];
    atomicAdd(y + column, sum);
}
