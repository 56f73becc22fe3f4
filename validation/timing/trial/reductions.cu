// Reductions and scans: of a whole array, of segments, of columns and of rows.

#define EXPORT extern "C" __global__ void

static __device__ float warp_sum(float x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

EXPORT squares_total(float* total, const float* in, int n)  // one atomic per block
{
    __shared__ float sums[8];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i] * in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += sums[w];
        atomicAdd(total, sum);
    }
}

EXPORT dot_wide(float* parts, const float4* x, const float4* y, int n)  // four pairs in flight
{
    __shared__ float sums[4];
    const int stride = gridDim.x * blockDim.x;
    float sum = 0.0f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 4
    for (; i < n; i += stride) {
        const float4 a = x[i], b = y[i];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) parts[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}

EXPORT least_of_blocks(int* where, const float* in, int n)  // index of the least of 1024 elements
{
    __shared__ float values[256];
    __shared__ int places[256];
    const int first = blockIdx.x * 1024 + threadIdx.x;
    float least = 3.0e38f;
    int place = -1;
    for (int j = 0; j < 4; ++j) {
        const int i = first + 256 * j;
        if (i < n && in[i] < least) least = in[i], place = i;
    }
    values[threadIdx.x] = least, places[threadIdx.x] = place;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && values[threadIdx.x + half] < values[threadIdx.x]) {
            values[threadIdx.x] = values[threadIdx.x + half];
            places[threadIdx.x] = places[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) where[blockIdx.x] = places[0];
}

EXPORT count_between(unsigned* counts, const int* in, int low, int high, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned votes = __ballot_sync(~0u, i < n && in[i] >= low && in[i] < high);
    if (threadIdx.x % 32 == 0) counts[i / 32] = __popc(votes);
}

EXPORT segment_sums(float* sums, const int* starts, const float* in, int segments)
{
    const int segment = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (segment >= segments) return;
    float sum = 0.0f;
    const int end = starts[segment + 1];
    for (int i = starts[segment] + threadIdx.x % 32; i < end; i += 32) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[segment] = sum;
}

EXPORT column_means(float* means, const float* in, int rows, int columns)  // blocks of 32×8
{
    __shared__ float parts[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < columns)
        for (int row = threadIdx.y; row < rows; row += 8) sum += in[row * columns + column];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= columns) return;
    for (int y = 1; y < 8; ++y) sum += parts[y][threadIdx.x];
    means[column] = sum / rows;
}

EXPORT row_variances(float* variances, const float* in, int rows, int columns)  // warp per row
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float x = in[row * columns + i];
        sum += x, squares += x * x;
    }
    sum = warp_sum(sum), squares = warp_sum(squares);
    const float mean = sum / columns;
    if (threadIdx.x == 0) variances[row] = squares / columns - mean * mean;
}

EXPORT scan_quads(int* out, int* totals, const int* in, int n)  // 1024 elements of a block
{
    __shared__ int sums[8];
    const int at = blockIdx.x * 1024 + threadIdx.x * 4, lane = threadIdx.x % 32;
    int x[4], sum = 0;
    for (int j = 0; j < 4; ++j) x[j] = at + j < n ? in[at + j] : 0, sum += x[j];
    int before = sum;
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, before, step);
        if (lane >= step) before += other;
    }
    if (lane == 31) sums[threadIdx.x / 32] = before;
    __syncthreads();
    int running = before - sum;
    for (int w = 0; w < threadIdx.x / 32; ++w) running += sums[w];
    for (int j = 0; j < 4; ++j) {
        running += x[j];
        if (at + j < n) out[at + j] = running;
    }
    if (threadIdx.x == 255) totals[blockIdx.x] = running;
}

EXPORT shift_blocks(int* out, const int* in, const int* offsets, int n)  // 1024 of each offset
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + offsets[i / 1024];
}

EXPORT running_columns(float* out, const float* in, int rows, int columns)  // thread per column
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        out[row * columns + column] = sum += in[row * columns + column];
}

EXPORT running_maxima(int* out, const int* in, int rows, int columns)  // warp per row
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    int carried = -2147483647 - 1;
    for (int first = 0; first < columns; first += 32) {
        const int i = first + lane;
        int x = i < columns ? in[row * columns + i] : carried;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, x, step);
            if (lane >= step) x = max(x, other);
        }
        x = max(x, carried);
        if (i < columns) out[row * columns + i] = x;
        carried = __shfl_sync(~0u, x, 31);
    }
}
