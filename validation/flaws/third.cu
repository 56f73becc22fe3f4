// Ten kernels as users write them: five with one flaw, which FIXED removes, and five without.

#define I (blockIdx.x * blockDim.x + threadIdx.x)

// Softmax of rows with a temperature: its literal makes the exponentials FP64.
extern "C" __global__ void softmax_temperature(float *out, const float *in, int columns) {
    __shared__ float part[8];
    const float *row = in + blockIdx.x * columns;
    float largest = -1e30f, sum = 0;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) largest = fmaxf(largest, row[k]);
    for (int d = 16; d; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int k = 0; k < 8; k++) largest = fmaxf(largest, part[k]);
    __syncthreads();
#if FIXED
#define TEMPERATURE 0.7f
#else
#define TEMPERATURE 0.7
#endif
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        sum += exp((row[k] - largest) / TEMPERATURE);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += part[k];
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        out[blockIdx.x * columns + k] = exp((row[k] - largest) / TEMPERATURE) / sum;
}

// The position of the largest value: an atomic operation per thread, or one per warp.
extern "C" __global__ void argmax(unsigned long long *best, const unsigned *in, int n) {
    unsigned long long key = 0;
    for (int k = I; k < n; k += gridDim.x * blockDim.x) {
        unsigned long long own = (unsigned long long)in[k] << 32 | k;
        key = own > key ? own : key;
#if !FIXED
        atomicMax(best, own);
#endif
    }
#if FIXED
    for (int d = 16; d; d /= 2) {
        unsigned long long other = __shfl_xor_sync(~0u, key, d);
        key = other > key ? other : key;
    }
    if (threadIdx.x % 32 == 0) atomicMax(best, key);
#endif
}

// Product of a sparse matrix (CSR) and a vector: a thread per row, or a warp per row.
extern "C" __global__ void spmv(float *y, const int *begin, const int *column, const float *value,
                                const float *x, int rows) {
    float sum = 0;
#if FIXED
    int row = I / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    for (int k = begin[row] + lane; k < begin[row + 1]; k += 32) sum += value[k] * x[column[k]];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (!lane) y[row] = sum;
#else
    int row = I;
    if (row >= rows) return;
    for (int k = begin[row]; k < begin[row + 1]; k++) sum += value[k] * x[column[k]];
    y[row] = sum;
#endif
}

// Convolution of rows with 16 taps: the window is a ring, indexed at run time or with constants.
extern "C" __global__ void convolution(float *out, const float *in, const float *taps, int columns,
                                       int rows) {
    float window[16];
    int x = I;
    if (x >= columns) return;
#pragma unroll
    for (int k = 0; k < 16; k++) window[k] = in[k * columns + x];
#if FIXED
#pragma unroll 16
#else
#pragma unroll 1
#endif
    for (int y = 0; y < rows - 16; y++) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < 16; k++) sum += taps[k] * window[(y + k) % 16];
        out[y * columns + x] = sum;
        window[y % 16] = in[(y + 16) * columns + x];
    }
}

// Work-efficient scan of 1,024 values per block (Blelloch), with or without padded indices.
#if FIXED
#define AT(i) ((i) + (i) / 32)
#else
#define AT(i) (i)
#endif
extern "C" __global__ void scan(float *out, const float *in) {
    __shared__ float part[1024 + 32];
    int t = threadIdx.x, first = blockIdx.x * 1024;
    part[AT(t)] = in[first + t];
    part[AT(t + 512)] = in[first + t + 512];
    int offset = 1;
    for (int d = 512; d; d /= 2) {
        __syncthreads();
        if (t < d) part[AT(offset * (2 * t + 2) - 1)] += part[AT(offset * (2 * t + 1) - 1)];
        offset *= 2;
    }
    if (!t) part[AT(1023)] = 0;
    for (int d = 1; d < 1024; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            int a = AT(offset * (2 * t + 1) - 1), b = AT(offset * (2 * t + 2) - 1);
            float left = part[a];
            part[a] = part[b];
            part[b] += left;
        }
    }
    __syncthreads();
    out[first + t] = part[AT(t)];
    out[first + t + 512] = part[AT(t + 512)];
}

// Without a flaw: rows of 4,096 values, 16 in the registers of each thread.
extern "C" __global__ void layernorm(float4 *out, const float4 *in, float epsilon) {
    __shared__ float parts[2][8];
    const float4 *row = in + blockIdx.x * 1024;
    float4 v[4];
    float sum = 0, squares = 0;
    for (int k = 0; k < 4; k++) v[k] = row[threadIdx.x + 256 * k];
    for (int k = 0; k < 4; k++) {
        sum += v[k].x + v[k].y + (v[k].z + v[k].w);
        squares += v[k].x * v[k].x + v[k].y * v[k].y + (v[k].z * v[k].z + v[k].w * v[k].w);
    }
    for (int d = 16; d; d /= 2) {
        sum += __shfl_xor_sync(~0u, sum, d);
        squares += __shfl_xor_sync(~0u, squares, d);
    }
    if (threadIdx.x % 32 == 0) parts[0][threadIdx.x / 32] = sum, parts[1][threadIdx.x / 32] = squares;
    __syncthreads();
    sum = squares = 0;
    for (int k = 0; k < 8; k++) sum += parts[0][k], squares += parts[1][k];
    float mean = sum / 4096, scale = rsqrtf(squares / 4096 - mean * mean + epsilon);
    for (int k = 0; k < 4; k++)
        out[blockIdx.x * 1024 + threadIdx.x + 256 * k] =
            make_float4((v[k].x - mean) * scale, (v[k].y - mean) * scale, (v[k].z - mean) * scale,
                        (v[k].w - mean) * scale);
}

// Without a flaw: a warp per row of a matrix, 16 bytes per load.
extern "C" __global__ void matrix_vector(float *y, const float4 *a, const float4 *x, int columns) {
    int row = I / 32, lane = threadIdx.x % 32;
    float sum = 0;
#pragma unroll 8
    for (int k = lane; k < columns / 4; k += 32) {
        float4 u = a[(size_t)row * (columns / 4) + k], v = x[k];
        sum += u.x * v.x + u.y * v.y + (u.z * v.z + u.w * v.w);
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (!lane) y[row] = sum;
}

// Without a flaw: forces of all sources on 256 targets per block, sources in shared memory.
extern "C" __global__ void bodies(float4 *force, const float4 *target, const float4 *source, int n) {
    __shared__ float4 tile[256];
    float4 own = target[I], sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < n; k += 256) {
        tile[threadIdx.x] = source[k + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; j++) {
            float4 other = tile[j];
            float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
            float inverse = rsqrtf(x * x + y * y + z * z + 1e-6f);
            float scale = other.w * inverse * inverse * inverse;
            sum.x += x * scale, sum.y += y * scale, sum.z += z * scale;
        }
        __syncthreads();
    }
    force[I] = sum;
}

// Without a flaw: seven points in three dimensions; planes stay in L2, rows in L1.
extern "C" __global__ void seven_points(float4 *out, const float4 *in, int nx, int ny) {
    int x = I, y = blockIdx.y * blockDim.y + threadIdx.y + 1, z = blockIdx.z + 1;
    size_t at = ((size_t)z * ny + y) * nx + x;
    float4 c = in[at], n = in[at - nx], s = in[at + nx];
    float4 u = in[at - (size_t)nx * ny], d = in[at + (size_t)nx * ny];
    float left = x ? in[at - 1].w : 0, right = x < nx - 1 ? in[at + 1].x : 0;
    out[at] = make_float4(n.x + s.x + u.x + d.x + left + c.y - 6 * c.x,
                          n.y + s.y + u.y + d.y + c.x + c.z - 6 * c.y,
                          n.z + s.z + u.z + d.z + c.y + c.w - 6 * c.z,
                          n.w + s.w + u.w + d.w + c.z + right - 6 * c.w);
}

// Without a flaw: each warp sorts 32 keys by a bitonic network, as often as given.
extern "C" __global__ void bitonic(unsigned *keys, int times) {
    unsigned key = keys[I];
    for (int k = 0; k < times; k++, key = key * 1664525 + 1013904223)
#pragma unroll
        for (int size = 2; size <= 32; size *= 2)
#pragma unroll
            for (int d = size / 2; d; d /= 2) {
                unsigned other = __shfl_xor_sync(~0u, key, d);
                bool is_low = !(threadIdx.x & d), is_up = !(threadIdx.x & size);
                key = is_low == is_up ? min(key, other) : max(key, other);
            }
    keys[I] = key;
}
