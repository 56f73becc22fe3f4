// Kernels with the flaw of a kernel of a public repository (`cases.PUBLIC`), and without it.

// C = A B of n x n floats: the threads of a warp walk down a column of C.
extern "C" __global__ void naive_sgemm(float *c, const float *a, const float *b, int n) {
    int row = blockIdx.x * 32 + (FIXED ? threadIdx.y : threadIdx.x);
    int column = blockIdx.y * 32 + (FIXED ? threadIdx.x : threadIdx.y);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// A thread for each row, or a warp for each row.
extern "C" __global__ void softmax(float *out, const float *in, int columns) {
#if FIXED
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, first = threadIdx.x % 32, step = 32;
#else
    int row = blockIdx.x * blockDim.x + threadIdx.x, first = 0, step = 1;
#endif
    const float *x = in + (size_t)row * columns;
    float *y = out + (size_t)row * columns, most = -1e30f, sum = 0;
    for (int k = first; k < columns; k += step) most = fmaxf(most, x[k]);
#if FIXED
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
#endif
    for (int k = first; k < columns; k += step) {
        float each = __expf(x[k] - most);
        y[k] = each;
        sum += each;
    }
#if FIXED
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
#endif
    float scale = 1 / sum;
    for (int k = first; k < columns; k += step) y[k] *= scale;
}

// Gradient of 768 weights: an atomic addition for each row, or for each block.
extern "C" __global__ void weight_gradient(float *dweight, const float *dout, const float *x, int rows) {
    float own[3] = {0, 0, 0};
    for (int row = blockIdx.x; row < rows; row += gridDim.x)
        for (int k = 0; k < 3; k++) {
            int column = threadIdx.x + 256 * k;
            float part = dout[row * 768 + column] * x[row * 768 + column];
#if FIXED
            own[k] += part;
#else
            atomicAdd(&dweight[column], part);
#endif
        }
    if (FIXED)
        for (int k = 0; k < 3; k++) atomicAdd(&dweight[threadIdx.x + 256 * k], own[k]);
}

// Sum of a block in shared memory: additions at a growing stride, or at a falling one.
extern "C" __global__ void strided_reduction(float *out, const float *in) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
#if FIXED
    for (int d = 128; d; d /= 2) {
        if (t < d) part[t] += part[t + d];
        __syncthreads();
    }
#else
    for (int d = 1; d < 256; d *= 2) {
        int at = 2 * d * t;
        if (at < 256) part[at] += part[at + d];
        __syncthreads();
    }
#endif
    if (!t) out[blockIdx.x] = part[0];
}

// Sums of the columns of a matrix: a block for each column, or for 32 of them.
extern "C" __global__ void bias_gradient(float *dbias, const float *dout, int rows, int columns) {
    __shared__ float part[32][33];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float sum = 0;
#if FIXED
    for (int row = y; row < rows; row += 32) sum += dout[row * columns + blockIdx.x * 32 + x];
    part[y][x] = sum;
    __syncthreads();
    sum = part[x][y];
#else
    for (int row = threadIdx.x; row < rows; row += 1024) sum += dout[row * columns + blockIdx.x];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (!x) part[0][y] = sum;
    __syncthreads();
    if (y) return;
    sum = part[0][x];
#endif
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (!x) dbias[FIXED ? blockIdx.x * 32 + y : blockIdx.x] = sum;
}
