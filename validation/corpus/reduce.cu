// Reductions, softmax and dot products: shuffles, shared memory, float atomics.

__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
    return value;
}

__device__ float warp_max(float value)
{
    for (int mask = 16; mask > 0; mask /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, mask));
    return value;
}

extern "C" __global__ void block_sum(float* sums, const float* in, int n)
{
    __shared__ float partial[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        sum = warp_sum(sum);
        if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    }
}

// Sequential addressing in shared memory; blockDim.x is a power of two.
extern "C" __global__ void tree_max(int* maximum, const int* in, int n)
{
    extern __shared__ int staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < n ? in[i] : -2147483647 - 1;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) staged[threadIdx.x] = max(staged[threadIdx.x], staged[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicMax(maximum, staged[0]);
}

// One warp per row.
extern "C" __global__ void softmax_rows(float* out, const float* in, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float* x = in + row * columns;
    float largest = -1e30f;
    for (int j = threadIdx.x; j < columns; j += 32) largest = fmaxf(largest, x[j]);
    largest = warp_max(largest);
    float sum = 0;
    for (int j = threadIdx.x; j < columns; j += 32) sum += expf(x[j] - largest);
    sum = __shfl_sync(~0u, warp_sum(sum), 0);
    for (int j = threadIdx.x; j < columns; j += 32) out[row * columns + j] = expf(x[j] - largest) / sum;
}

extern "C" __global__ void dot_double(double* result, const double* x, const double* y, int n)
{
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i] * y[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

// Hardware reductions over a warp: sm_80 and later have them, sm_75 shuffles.
extern "C" __global__ void warp_reductions(unsigned* out, const unsigned* in)
{
    const unsigned value = in[threadIdx.x];
#if __CUDA_ARCH__ >= 800
    const unsigned sum = __reduce_add_sync(~0u, value), low = __reduce_min_sync(~0u, value);
    const int high = __reduce_max_sync(~0u, (int)value);
    const unsigned both = __reduce_and_sync(~0u, value), odd = __reduce_xor_sync(~0u, value);
#else
    unsigned sum = value, low = value, both = value, odd = value;
    int high = value;
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(~0u, sum, mask);
        low = min(low, __shfl_xor_sync(~0u, low, mask));
        high = max(high, __shfl_xor_sync(~0u, high, mask));
        both &= __shfl_xor_sync(~0u, both, mask);
        odd ^= __shfl_xor_sync(~0u, odd, mask);
    }
#endif
    unsigned* mine = out + 5 * threadIdx.x;
    mine[0] = sum;
    mine[1] = low;
    mine[2] = high;
    mine[3] = both;
    mine[4] = odd;
}
