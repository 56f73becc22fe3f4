// Work that depends on data: sparse matrices, graphs, tables, queues, sorting, unequal blocks.

#define EXPORT extern "C" __global__ void

EXPORT sparse_by_threads(float* y, const int* starts, const int* columns, const float* values,
                         const float* x, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = starts[row]; i < starts[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

EXPORT sparse_by_warps(float* y, const int* starts, const int* columns, const float* values,
                       const float* x, int rows)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32)
        sum += values[i] * x[columns[i]];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) y[row] = sum;
}

EXPORT sparse_ellpack(double* y, const int* columns, const double* values, const double* x,
                      int width, int rows)  // width entries of each row, column after column
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0.0;
    for (int j = 0; j < width; ++j)
        sum += values[size_t(j) * rows + row] * x[columns[size_t(j) * rows + row]];
    y[row] = sum;
}

EXPORT relax_vertices(int* out, const int* distances, const int* starts, const int* neighbours,
                      const int* lengths, int vertices)
{
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vertices) return;
    int best = distances[v];
    for (int i = starts[v]; i < starts[v + 1]; ++i)
        best = min(best, distances[neighbours[i]] + lengths[i]);
    out[v] = best;
}

EXPORT gather_quads(float4* out, const float4* in, const int* from, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[from[i]];
}

EXPORT scatter_words(unsigned* out, const unsigned* in, const int* to, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[to[i]] = in[i];
}

EXPORT bins_of_warps(unsigned* bins, const float* in, int n)  // 64 bins of each of 8 warps
{
    __shared__ unsigned counts[8][64];
    for (int i = threadIdx.x; i < 512; i += 256) counts[i / 64][i % 64] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&counts[threadIdx.x / 32][min(int(in[i] * 64.0f), 63)], 1u);
    __syncthreads();
    if (threadIdx.x >= 64) return;
    unsigned sum = 0;
    for (int w = 0; w < 8; ++w) sum += counts[w][threadIdx.x];
    atomicAdd(bins + threadIdx.x, sum);
}

EXPORT bins_in_l2(unsigned* bins, const unsigned* in, unsigned count, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(bins + in[i] % count, 1u);
}

EXPORT probe_table(int* found, const uint2* table, const unsigned* keys, unsigned mask, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned key = keys[i];
    unsigned slot = key * 2654435761u & mask;
    uint2 entry = table[slot];
    while (entry.x != key && entry.x) slot = slot + 1 & mask, entry = table[slot];
    found[i] = entry.x ? int(entry.y) : -1;
}

EXPORT interpolate(float* out, const float* in, const float* table, int steps, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float at = in[i] * steps;
    const int k = min(int(at), steps - 1);
    const float low = table[k];
    out[i] = low + (at - k) * (table[k + 1] - low);
}

EXPORT merge_two(int* out, const int* a, const int* b, int n, int m)  // place of each element
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n + m) return;
    const bool first = i < n;
    const int value = first ? a[i] : b[i - n];
    const int* other = first ? b : a;
    int low = 0, high = first ? m : n;
    while (low < high) {
        const int mid = (low + high) / 2;
        if (first ? other[mid] < value : other[mid] <= value) low = mid + 1;
        else high = mid;
    }
    out[(first ? i : i - n) + low] = value;
}

// Blocks take tasks of unequal length from a counter, which the last block to leave resets.
EXPORT task_queue(float* out, const int* lengths, unsigned* counters, int tasks)
{
    __shared__ int task;
    while (true) {
        if (threadIdx.x == 0) task = atomicAdd(counters, 1u);
        __syncthreads();
        const int mine = task;
        __syncthreads();
        if (mine >= tasks) break;
        float x = 0.001f * threadIdx.x;
        for (int k = lengths[mine]; k; --k) x = x * 0.75f + 0.125f;
        out[mine * blockDim.x + threadIdx.x] = x;
    }
    if (threadIdx.x == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1)
        counters[0] = 0, counters[1] = 0;
}

EXPORT triangle_rows(float* out, const float* in, int side)  // block of 128 per row, its half only
{
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int i = threadIdx.x; i <= row; i += 128) sum += in[size_t(row) * side + i];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) out[row * 4 + threadIdx.x / 32] = sum;
}

EXPORT few_long_blocks(unsigned* out, int usual, int rare, int every)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int rounds = blockIdx.x % every == 0 ? rare : usual;
    for (int k = 0; k < rounds; ++k) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

EXPORT powers_below(unsigned* out, const unsigned* in, unsigned modulus, int n)  // loops of lanes
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long base = in[i] % modulus, result = 1;
    for (unsigned e = in[i] >> (in[i] & 15); e; e >>= 1) {
        if (e & 1) result = result * base % modulus;
        base = base * base % modulus;
    }
    out[i] = unsigned(result);
}

EXPORT sort_step(unsigned* keys, int distance, int run, int n)  // one step of a bitonic sort
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = 2 * distance * (t / distance) + t % distance, j = i + distance;
    if (j >= n) return;
    const unsigned a = keys[i], b = keys[j];
    const bool swap = (a > b) == ((i & run) == 0);
    keys[i] = swap ? b : a;
    keys[j] = swap ? a : b;
}

EXPORT sort_tiles(float* out, const float* in, int n)  // 512 of a block, in shared memory
{
    __shared__ float tile[512];
    for (int i = threadIdx.x; i < 512; i += 256) {
        const int at = blockIdx.x * 512 + i;
        tile[i] = at < n ? in[at] : 3.0e38f;
    }
    for (int run = 2; run <= 512; run *= 2)
        for (int distance = run / 2; distance; distance /= 2) {
            __syncthreads();
            const int i = 2 * threadIdx.x - (threadIdx.x & (distance - 1)), j = i + distance;
            const float a = tile[i], b = tile[j];
            if ((a > b) == ((i & run) == 0)) tile[i] = b, tile[j] = a;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < 512; i += 256)
        if (blockIdx.x * 512 + i < n) out[blockIdx.x * 512 + i] = tile[i];
}

EXPORT digit_counts(unsigned* counts, const unsigned* keys, int shift, int n)  // 16 digits, block
{
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int j = 0; j < 8; ++j) {
        const int i = blockIdx.x * 2048 + j * 256 + threadIdx.x;
        const bool here = i < n;
        const unsigned digit = here ? keys[i] >> shift & 15 : 16;
        for (unsigned d = 0; d < 16; ++d) {
            const unsigned votes = __ballot_sync(~0u, digit == d);
            if (threadIdx.x % 32 == d && votes) atomicAdd(bins + d, __popc(votes));
        }
    }
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}
