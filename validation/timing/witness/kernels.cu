// Kernels whose time shows one mechanism each. witnesses.py has their launches, recorded/ what a GPU took.

#include <cuda_fp16.h>

typedef unsigned long long u64;
#define EXPORT extern "C" __global__ void
#define GRID_STRIDE(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)

// Blocks that wait for other blocks.

// Each block waits for the one before it, and adds one to what that one left.
EXPORT hand_on(int *sums, int *flags) {
    if (threadIdx.x == 0) {
        const int b = blockIdx.x;
        if (b > 0) while (((volatile int *)flags)[b - 1] == 0) {}
        __threadfence();
        sums[b] = (b > 0 ? ((volatile int *)sums)[b - 1] : 0) + 1;
        __threadfence();
        ((volatile int *)flags)[b] = 1;
    }
}

// All blocks meet `steps` times; between, each passes its value to the next block.
EXPORT grid_steps(int *values, unsigned *arrived, int steps) {
    int mine = blockIdx.x;
    for (int s = 1; s <= steps; s++) {
        if (threadIdx.x == 0) values[(s & 1) * gridDim.x + blockIdx.x] = mine;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned *)arrived < s * gridDim.x) {}
            __threadfence();
            mine = ((volatile int *)values)[(s & 1) * gridDim.x + (blockIdx.x + 1) % gridDim.x];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) values[2 * gridDim.x + blockIdx.x] = mine;
}

// Sums of tiles of 1,024; the state of a tile is its sum and 1 (of the tile) or 2 (of all up to it).
__device__ int of_tile(const int *in, int tile, int *of_warp) {
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += in[tile * 1024 + k * 256 + threadIdx.x];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    int all = 0;
    for (int w = 0; w < 8; w++) all += of_warp[w];
    return all;
}

__device__ u64 state_of(int sum, unsigned status) { return (u64)status << 32 | (unsigned)sum; }

// Look back by one thread, tile by tile.
EXPORT look_back_by_thread(int *out, const int *in, u64 *state) {
    __shared__ int of_warp[8], before;
    const int tile = blockIdx.x, sum = of_tile(in, tile, of_warp);
    if (threadIdx.x == 0) {
        volatile u64 *s = state;
        s[tile] = state_of(sum, tile ? 1 : 2);
        int seen = 0;
        for (int t = tile - 1; t >= 0;) {
            const u64 v = s[t];
            if (v >> 32 == 0) continue;
            seen += (int)v;
            if (v >> 32 == 2) break;
            t--;
        }
        if (tile) s[tile] = state_of(seen + sum, 2);
        before = seen;
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) out[tile * 1024 + k * 256 + threadIdx.x] = before;
}

// Look back by one warp, 32 tiles at a time.
EXPORT look_back_by_warp(int *out, const int *in, u64 *state) {
    __shared__ int of_warp[8], before;
    const int tile = blockIdx.x, sum = of_tile(in, tile, of_warp), lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        volatile u64 *s = state;
        if (lane == 0) s[tile] = state_of(sum, tile ? 1 : 2);
        int seen = 0;
        for (int first = tile - 1; first >= 0; first -= 32) {
            const int t = first - lane;
            u64 v;
            do v = t >= 0 ? s[t] : state_of(0, 2);
            while (__any_sync(~0u, v >> 32 == 0));
            const unsigned done = __ballot_sync(~0u, v >> 32 == 2);
            int part = done == 0 || lane <= __ffs(done) - 1 ? (int)v : 0;
            for (int d = 16; d; d /= 2) part += __shfl_xor_sync(~0u, part, d);
            seen += part;
            if (done) break;
        }
        if (lane == 0) {
            if (tile) s[tile] = state_of(seen + sum, 2);
            before = seen;
        }
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) out[tile * 1024 + k * 256 + threadIdx.x] = before;
}

// The block that ends last adds the sums of all blocks.
EXPORT last_block_sums(float *out, float *partial, unsigned *ticket, const float *in, int n) {
    __shared__ float of_warp[8];
    __shared__ bool is_last;
    float sum = 0;
    GRID_STRIDE(i, n) sum += in[i];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0;
        for (int w = 0; w < 8; w++) all += of_warp[w];
        partial[blockIdx.x] = all;
        __threadfence();
        is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    sum = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) sum += ((volatile float *)partial)[b];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

// Sectors written in part, and scatters.

EXPORT set_field(float *structs, int n, int pitch) { GRID_STRIDE(i, n) structs[(size_t)i * pitch] = i; }

EXPORT add_to_field(float *structs, int n, int pitch) { GRID_STRIDE(i, n) structs[(size_t)i * pitch] += 1; }

EXPORT scatter(float *out, const float *in, const int *to, int n) { GRID_STRIDE(i, n) out[to[i]] = in[i]; }

EXPORT turn_rows(float *out, const float *in, int w, int h) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < w && y < h) out[(size_t)x * h + y] = in[(size_t)y * w + x];
}

EXPORT set_pixels(unsigned char *image, int n) {
    GRID_STRIDE(i, n) {
        image[3 * (size_t)i] = i;
        image[3 * (size_t)i + 1] = i >> 8;
        image[3 * (size_t)i + 2] = i >> 16;
    }
}

// Gathers.

EXPORT gather(float *out, const float *in, const int *from, int n) { GRID_STRIDE(i, n) out[i] = in[from[i]]; }

EXPORT search(int *out, const float *keys, const float *table, int n, int size) {
    GRID_STRIDE(i, n) {
        const float key = keys[i];
        int low = 0, high = size;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (table[middle] < key) low = middle + 1; else high = middle;
        }
        out[i] = low;
    }
}

EXPORT follow(int *out, const int *next, int n, int steps) {
    GRID_STRIDE(i, n) {
        int at = i;
        for (int k = 0; k < steps; k++) at = next[at];
        out[i] = at;
    }
}

EXPORT sparse_rows(float *out, const int *starts, const int *columns, const float *x, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += x[columns[k]];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) out[row] = sum;
}

EXPORT sample_image(float *out, const float *image, int w, int h, float cosine, float sine) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= w || y >= h) return;
    const int u = ((int)(cosine * x - sine * y) % w + w) % w, v = ((int)(sine * x + cosine * y) % h + h) % h;
    out[(size_t)y * w + x] = image[(size_t)v * w + u];
}

// Many small blocks, and unequal ones.

EXPORT tiny_scale(float *out, const float *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2 * in[i];
}

EXPORT short_rows(float *out, const float *in) {
    const float *row = in + 64 * (size_t)blockIdx.x;
    float sum = row[threadIdx.x] + row[threadIdx.x + 32];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

EXPORT almost_empty(int *out, int n) {
    if (blockIdx.x * blockDim.x + threadIdx.x < n) out[threadIdx.x] = 1;
}

EXPORT work_by_block(float *out, const int *times) {
    float x = threadIdx.x;
    for (int k = times[blockIdx.x]; k > 0; k--) x = x * 0.5f + 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// Rows that a block reads several times.

__device__ float of_block(float x, float *of_warp, bool is_max) {
    for (int d = 16; d; d /= 2) {
        const float y = __shfl_xor_sync(~0u, x, d);
        x = is_max ? fmaxf(x, y) : x + y;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = of_warp[0];
    for (int w = 1; w < blockDim.x / 32; w++) x = is_max ? fmaxf(x, of_warp[w]) : x + of_warp[w];
    return x;
}

EXPORT softmax_of_rows(float *out, const float *in, int width) {
    __shared__ float of_warp[32];
    const float *row = in + (size_t)blockIdx.x * width;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) most = fmaxf(most, row[i]);
    most = of_block(most, of_warp, true);
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += __expf(row[i] - most);
    sum = of_block(sum, of_warp, false);
    for (int i = threadIdx.x; i < width; i += blockDim.x) out[(size_t)blockIdx.x * width + i] = __expf(row[i] - most) / sum;
}

EXPORT standardise(float *out, const float4 *in, int width) {
    __shared__ float of_warp[32];
    const float4 *row = in + (size_t)blockIdx.x * width;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) { const float4 v = row[i]; sum += v.x + v.y + v.z + v.w; }
    const float mean = of_block(sum, of_warp, false) / (4 * width);
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        const float4 v = row[i];
        squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean) + (v.z - mean) * (v.z - mean)
            + (v.w - mean) * (v.w - mean);
    }
    squares = of_block(squares, of_warp, false);
    if (threadIdx.x == 0) out[2 * blockIdx.x] = mean, out[2 * blockIdx.x + 1] = squares;
}

// A block reads its own part several times.
EXPORT again(float *out, const float *in, int floats, int times) {
    const float *own = in + (size_t)blockIdx.x * floats;
    float sum = 0;
    for (int t = 0; t < times; t++)
        for (int i = threadIdx.x; i < floats; i += blockDim.x) sum += own[i] * t;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Scans and trees in shared memory. One block has 1,024 numbers.

EXPORT scan_doubling(int *out, const int *in) {
    __shared__ int part[2][1024];
    int from = 0;
    part[0][threadIdx.x] = in[blockIdx.x * 1024 + threadIdx.x];
    for (int d = 1; d < 1024; d *= 2) {
        __syncthreads();
        part[1 - from][threadIdx.x] = part[from][threadIdx.x] + (threadIdx.x >= d ? part[from][threadIdx.x - d] : 0);
        from = 1 - from;
    }
    __syncthreads();
    out[blockIdx.x * 1024 + threadIdx.x] = part[from][threadIdx.x];
}

EXPORT scan_tree(int *out, const int *in) {
    __shared__ int part[1024];
    const int t = threadIdx.x;
    part[2 * t] = in[blockIdx.x * 1024 + 2 * t];
    part[2 * t + 1] = in[blockIdx.x * 1024 + 2 * t + 1];
    int offset = 1;
    for (int d = 512; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) part[offset * (2 * t + 2) - 1] += part[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) part[1023] = 0;
    for (int d = 1; d < 1024; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            const int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, left = part[a];
            part[a] = part[b];
            part[b] += left;
        }
    }
    __syncthreads();
    out[blockIdx.x * 1024 + 2 * t] = part[2 * t];
    out[blockIdx.x * 1024 + 2 * t + 1] = part[2 * t + 1];
}

EXPORT tree_of_neighbours(int *out, const int *in) {
    __shared__ int part[1024];
    const int t = threadIdx.x;
    part[t] = in[blockIdx.x * 1024 + t];
    for (int d = 1; d < 1024; d *= 2) {
        __syncthreads();
        if (t % (2 * d) == 0) part[t] += part[t + d];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

EXPORT tree_with_conflicts(int *out, const int *in) {
    __shared__ int part[1024];
    const int t = threadIdx.x;
    part[t] = in[blockIdx.x * 1024 + t];
    for (int d = 1; d < 1024; d *= 2) {
        __syncthreads();
        if (2 * d * t < 1024) part[2 * d * t] += part[2 * d * t + d];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

EXPORT sort_in_shared(int *out, const int *in) {
    __shared__ int part[1024];
    const int t = threadIdx.x;
    part[t] = in[blockIdx.x * 1024 + t];
    for (int k = 2; k <= 1024; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            const int other = t ^ j;
            if (other > t) {
                const int a = part[t], b = part[other];
                if ((a > b) == ((t & k) == 0)) part[t] = b, part[other] = a;
            }
        }
    __syncthreads();
    out[blockIdx.x * 1024 + t] = part[t];
}

// Loads that hit L1 beside arithmetic with constants.

__constant__ float mask[25], series[256];

EXPORT convolve(float *out, const float *in, int w, int h) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= w - 4 || y >= h - 4) return;
    float sum = 0;
    for (int v = 0; v < 5; v++)
        for (int u = 0; u < 5; u++) sum += mask[5 * v + u] * in[(size_t)(y + v) * w + x + u];
    out[(size_t)y * w + x] = sum;
}

EXPORT shifted_sum(float *out, const float *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 16) return;
    float sum = 0;
    for (int k = 0; k < 17; k++) sum += in[i + k];
    out[i] = sum;
}

EXPORT power_series(float *out, float scale, int times) {
    float x = threadIdx.x * scale, sum = 0;
    for (int k = 0; k < times; k++) {
#pragma unroll
        for (int i = 0; i < 256; i++) sum = sum * x + series[i];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Atomic operations in shared memory, and loops of compare-and-swap.

EXPORT shared_weights(float *out, const int *keys, const float *weights, int n) {
    __shared__ float bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    GRID_STRIDE(i, n) atomicAdd(&bins[keys[i] & 255], weights[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}

EXPORT shared_sum(float *out, const float *in, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    GRID_STRIDE(i, n) atomicAdd(&sum, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__device__ void raise(int *at, float x) {
    int seen = *(volatile int *)at;
    while (__int_as_float(seen) < x) {
        const int before = atomicCAS(at, seen, __float_as_int(x));
        if (before == seen) break;
        seen = before;
    }
}

EXPORT raise_bins(int *most, const int *keys, const float *x, int n, int bins) {
    GRID_STRIDE(i, n) raise(&most[keys[i] & (bins - 1)], x[i]);
}

// A loop of compare-and-swap that always stores: a sum.
EXPORT sum_by_swaps(int *sums, int times, int mask) {
    for (int k = 0; k < times; k++) {
        int *at = &sums[(blockIdx.x * blockDim.x + threadIdx.x) & mask];
        int seen = *(volatile int *)at, before;
        do {
            before = seen;
            seen = atomicCAS(at, before, __float_as_int(__int_as_float(before) + 1));
        } while (seen != before);
    }
}

EXPORT take_places(int *out, unsigned *count, const int *keys, int n) {
    GRID_STRIDE(i, n) if (keys[i] & 1) out[atomicAdd(count, 1u)] = keys[i];
}

EXPORT ranks(int *out, unsigned *counts, const int *keys, int n, int bins) {
    GRID_STRIDE(i, n) out[i] = atomicAdd(&counts[keys[i] & (bins - 1)], 1u);
}

EXPORT least_place(u64 *least, const float *in, int n) {
    u64 mine = ~0ull;
    GRID_STRIDE(i, n) mine = min(mine, (u64)__float_as_uint(in[i]) << 32 | i);
    atomicMin(least, mine);
}

EXPORT scatter_add(float *out, const float *in, const int *to, int n) { GRID_STRIDE(i, n) atomicAdd(&out[to[i]], in[i]); }

// Streams.

EXPORT fill(float4 *out, int n) { GRID_STRIDE(i, n) out[i] = make_float4(i, 1, 2, 3); }

EXPORT fill_words(float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i;
}

EXPORT copy_halves(unsigned short *out, const unsigned short *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + 1;
}

EXPORT axpy_double(double *y, const double *x, double a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

EXPORT read_words(float *out, const float *in, int n) {
    float sum = 0;
    GRID_STRIDE(i, n) sum += in[i];
    if (sum == 1.2345f) out[0] = sum;
}

// Sectors that several stores fill.

// Rows of pairs become columns; each half of a pair is a store of its own.
EXPORT columns_of_pairs(double *out, const double *in, int rows, int columns) {
    GRID_STRIDE(i, rows * columns) {
        const int row = i / columns, column = i % columns;
        double *to = out + 2 * ((size_t)column * rows + row);
        to[0] = in[2 * (size_t)i];
        to[1] = in[2 * (size_t)i + 1];
    }
}

// Groups of four lanes write 64 bytes of each of 256 rows, as a step of a transform of rows does.
EXPORT spread_groups(double *out, const double *in, int blocks) {
    const int row = threadIdx.x / 4, column = threadIdx.x % 4;
    const double *from = in + 2 * ((size_t)blockIdx.x * 1024 + threadIdx.x);
    double x[4], y[4];
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] = from[512 * k], y[k] = from[512 * k + 1];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        double *to = out + 2 * ((size_t)(64 * k + row) * blocks * 4 + blockIdx.x * 4 + column);
        to[0] = x[k] + y[3 - k];
        to[1] = y[k] - x[3 - k];
    }
}

struct Three { float x, y, z; };
struct Nine { float of[9]; };

EXPORT fill_threes(Three *out, int n) { GRID_STRIDE(i, n) out[i] = Three{i * 1.f, i * 2.f, i * 3.f}; }

EXPORT fill_nines(Nine *out, int n) {
    GRID_STRIDE(i, n) {
        Nine nine;
#pragma unroll
        for (int k = 0; k < 9; k++) nine.of[k] = i * (k + 1);
        out[i] = nine;
    }
}

EXPORT two_vectors(float4 *out, const float4 *in, int n) {
    GRID_STRIDE(i, n) {
        const float4 v = in[i];
        out[2 * (size_t)i] = v;
        out[2 * (size_t)i + 1] = make_float4(v.w, v.z, v.y, v.x);
    }
}

// More scatters.

EXPORT scatter_pairs(float2 *out, const float2 *in, const int *to, int n) { GRID_STRIDE(i, n) out[to[i]] = in[i]; }

EXPORT mark(unsigned char *seen, const int *places, int n) { GRID_STRIDE(i, n) seen[places[i]] = 1; }

// Numbers in shared memory with conflicts of 64-bit words.

EXPORT shared_columns(double *out, const double *in) {
    __shared__ double tile[2][16][17], rows[2][16][16];
    const int t = threadIdx.x, g = t / 16, k = t % 16;
#pragma unroll
    for (int j = 0; j < 16; j++) rows[g][k][j] = in[(size_t)blockIdx.x * 512 + g * 256 + j * 16 + k];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 16; j++) tile[g][j][k] = rows[g][j][k] + rows[g][k][j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 16; j++) out[(size_t)blockIdx.x * 512 + g * 256 + j * 16 + k] = tile[g][k][j];
}

// Exchanges between the lanes of a transform, through one shared array and back.
EXPORT exchange_steps(float2 *out, const float2 *in) {
    __shared__ float2 part[512];
    float2 v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = in[(size_t)blockIdx.x * 512 + 64 * k + threadIdx.x];
#pragma unroll
    for (int step = 0; step < 2; step++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 a = v[k], b = v[k + 4];
            v[k] = make_float2(a.x + b.x, a.y + b.y), v[k + 4] = make_float2(a.x - b.x, a.y - b.y);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) part[8 * threadIdx.x + k] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = part[64 * k + threadIdx.x];
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[(size_t)blockIdx.x * 512 + 64 * k + threadIdx.x] = v[k];
}

// Blocks that meet between steps of work.

__device__ void meet(unsigned *arrived, unsigned target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < target) {}
        __threadfence();
    }
    __syncthreads();
}

EXPORT relax_together(float *a, float *b, unsigned *arrived, int n, int steps) {
    for (int s = 0; s < steps; s++) {
        GRID_STRIDE(i, n) b[i] = 0.5f * a[i] + 0.25f * (a[i ? i - 1 : 0] + a[i + 1 < n ? i + 1 : i]);
        meet(arrived, (s + 1) * gridDim.x);
        float *const c = a;
        a = b, b = c;
    }
}

// Sums of blocks, then of all blocks, by every block: one meeting.
EXPORT normalize_together(float *out, const float *in, float *sums, unsigned *arrived, int n) {
    __shared__ float of_warp[32];
    float sum = 0;
    GRID_STRIDE(i, n) sum += in[i];
    sum = of_block(sum, of_warp, false);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    meet(arrived, gridDim.x);
    sum = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) sum += ((volatile float *)sums)[b];
    sum = of_block(sum, of_warp, false);
    GRID_STRIDE(i, n) out[i] = in[i] / sum;
}

// Short launches.

EXPORT sums_of_doubles(double *out, const double *in, int n) {
    __shared__ double of_warp[32];
    double sum = 0, squares = 0;
    GRID_STRIDE(i, n) { const double x = in[i]; sum += x, squares += x * x; }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d), squares += __shfl_xor_sync(~0u, squares, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum + squares;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; w++) sum += of_warp[w];
        out[blockIdx.x] = sum;
    }
}

EXPORT small_rows(float *out, const float *in, const float *weight, const float *bias, int width) {
    __shared__ float of_warp[32];
    const size_t at = (size_t)blockIdx.x * width;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += in[at + i];
    const float mean = of_block(sum, of_warp, false) / width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) squares += (in[at + i] - mean) * (in[at + i] - mean);
    const float scale = rsqrtf(of_block(squares, of_warp, false) / width + 1e-5f);
    for (int i = threadIdx.x; i < width; i += blockDim.x) out[at + i] = (in[at + i] - mean) * scale * weight[i] + bias[i];
}

EXPORT edges(float *grid, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    grid[i] = grid[n + i];
    grid[(size_t)(n - 1) * n + i] = grid[(size_t)(n - 2) * n + i];
    grid[(size_t)i * n] = grid[(size_t)i * n + 1];
    grid[(size_t)i * n + n - 1] = grid[(size_t)i * n + n - 2];
}

EXPORT solve_thirds(double *x, const double *lower, const double *upper, int n, int systems) {
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    for (int k = 1; k < n; k++) x[(size_t)k * systems + s] -= lower[k] * x[(size_t)(k - 1) * systems + s];
    for (int k = n - 2; k >= 0; k--) x[(size_t)k * systems + s] -= upper[k] * x[(size_t)(k + 1) * systems + s];
}

EXPORT powers(float *out, const float *x, float exponent, int n) { GRID_STRIDE(i, n) out[i] = powf(x[i], exponent); }

// Arithmetic of halves and doubles.

EXPORT half_powers(__half2 *out, const __half2 *x, int n, int terms) {
    GRID_STRIDE(i, n) {
        const __half2 at = x[i], next = __hadd2(at, at);
        __half2 a = at, b = next;
        for (int k = 0; k < terms; k++) a = __hfma2(a, at, next), b = __hfma2(b, at, at);
        out[i] = __hadd2(a, b);
    }
}

// The squared distance to the nearest of some points of 8 halves, in floats.
EXPORT nearest_of_halves(float *out, const uint4 *points, const uint4 *others, int n, int count) {
    __shared__ uint4 part[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 own = points[i < n ? i : 0];
    float least = 1e30f;
    for (int first = 0; first < count; first += blockDim.x) {
        __syncthreads();
        part[threadIdx.x] = others[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < blockDim.x; k++) {
            const uint4 other = part[k];
            const __half2 *const a = (const __half2 *)&own, *const b = (const __half2 *)&other;
            float sum = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float2 p = __half22float2(a[j]), q = __half22float2(b[j]);
                sum += (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y);
            }
            least = fminf(least, sum);
        }
    }
    if (i < n) out[i] = least;
}

// Rows of halves times a vector, a warp per row; sums in floats.
EXPORT rows_of_halves(float *out, const uint4 *rows, const uint4 *vector, int width) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int k = lane; k < width; k += 32) {
        const uint4 x = rows[(size_t)row * width + k], y = vector[k];
        const __half2 *const a = (const __half2 *)&x, *const b = (const __half2 *)&y;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 p = __half22float2(a[j]), q = __half22float2(b[j]);
            sum += p.x * q.x + p.y * q.y;
        }
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) out[row] = sum;
}

EXPORT double_powers(double *out, const double *x, int n, int terms) {
    GRID_STRIDE(i, n) {
        const double at = x[i];
        double a = at, b = 1;
        for (int k = 0; k < terms; k++) a = a * at + 0.5, b = b * at - 0.25;
        out[i] = a + b;
    }
}

// Bodies that attract each other, in doubles, with a softened distance to the power -1.5 by Newton's method.
EXPORT double_bodies(double *out, const double *place, int n) {
    __shared__ double part[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double own = place[i];
    double force = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        __syncthreads();
        part[threadIdx.x] = place[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < blockDim.x; k++) {
            const double d = part[k] - own, r = d * d + 0.01;
            double y = rsqrtf((float)r);
            y = y * (1.5 - 0.5 * r * y * y);
            force += d * y * y * y;
        }
    }
    out[i] = force;
}

// Constants that all lanes of a warp read together, by an index of a loop or of a block.

__constant__ float taps[1024], pieces[128][8], settings[256][16];
__constant__ float4 centers[512];

// A filter whose taps are constants.
EXPORT filter_taps(float *out, const float *in, int n, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < count; k++) sum += taps[k] * in[i + k];
    if (i < n) out[i] = sum;
}

// A sum of polynomials, of 8 coefficients each, that all threads evaluate at places of their own.
EXPORT sum_of_pieces(float *out, const float *in, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[i];
    float sum = 0;
    for (int piece = 0; piece < count; piece++) {
        float value = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) value = value * x + pieces[piece][k];
        sum += value;
    }
    out[i] = sum;
}

// The nearest of some centers.
EXPORT nearest_center(int *out, const float4 *in, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = in[i];
    float least = 1e30f;
    int nearest = 0;
    for (int k = 0; k < count; k++) {
        const float4 c = centers[k];
        const float x = c.x - own.x, y = c.y - own.y, z = c.z - own.z, w = c.w - own.w;
        const float distance = x * x + y * y + z * z + w * w;
        if (distance < least) least = distance, nearest = k;
    }
    out[i] = nearest;
}

// Each block has settings of its own, 16 of them.
EXPORT apply_settings(float *out, const float *in, int rows, int width) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *own = settings[row % 256];
        for (int i = threadIdx.x; i < width; i += blockDim.x) {
            float x = in[(size_t)row * width + i];
#pragma unroll
            for (int k = 0; k < 16; k += 2) x = x * own[k] + own[k + 1];
            out[(size_t)row * width + i] = x;
        }
    }
}

// Stores of many warps to one address, or to few of them.

// A step of a relaxation, which says whether any value still moves.
EXPORT step_and_flag(float *out, const float *in, int *moves, int n, float least) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i >= n - 1) return;
    const float x = 0.5f * in[i] + 0.25f * (in[i - 1] + in[i + 1]);
    out[i] = x;
    if (fabsf(x - in[i]) > least) *moves = 1;
}

// The same with one store per block.
EXPORT step_and_flag_of_block(float *out, const float *in, int *moves, int n, float least) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int own = 0;
    if (i < n - 1) {
        const float x = 0.5f * in[i] + 0.25f * (in[i - 1] + in[i + 1]);
        out[i] = x;
        own = fabsf(x - in[i]) > least;
    }
    if (__syncthreads_or(own) && threadIdx.x == 0) *moves = 1;
}

// The same with a test before the store.
EXPORT step_and_test(float *out, const float *in, volatile int *moves, int n, float least) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i >= n - 1) return;
    const float x = 0.5f * in[i] + 0.25f * (in[i - 1] + in[i + 1]);
    out[i] = x;
    if (fabsf(x - in[i]) > least && !*moves) *moves = 1;
}

// A level of a search over edges.
EXPORT level_of_edges(int *next, const int *levels, const int *from, const int *to, unsigned char *changed, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (levels[from[i]] == 3 && levels[to[i]] < 0) {
            next[to[i]] = 4;
            *changed = 1;
        }
}

// The last element with a key wins.
EXPORT last_of_key(int *winner, const int *keys, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) winner[keys[i]] = i;
}

// Any place of a value above a limit.
EXPORT find_any(int *place, const float *in, int n, float limit) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (in[i] > limit) *place = i;
}

// Every thread stores the result that all of them have.
EXPORT mean_by_all(float *mean, const float *in, int n) {
    float sum = 0;
    for (int k = 0; k < n; k++) sum += in[k];
    *mean = sum / n;
}

// A flag for each tile of 1024 elements.
EXPORT mark_tiles(unsigned char *active, const float *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0.25f) active[i / 1024] = 1;
}

// A warp per row: the last row remains.
EXPORT last_row(float *out, const float *in, int rows, int width) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows)
        for (int i = threadIdx.x % 32; i < width; i += 32) out[i] = in[row * width + i];
}

// A warp per row of 32 values, which are added to a row of a table.
EXPORT add_rows(float *table, const float *in, const int *row_of, int n) {
    const int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp < n) atomicAdd(&table[row_of[warp] * 32 + lane], in[warp * 32 + lane]);
}

EXPORT add_ones(int *table, const int *row_of, int n) {
    const int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp < n) atomicAdd(&table[row_of[warp] * 32 + lane], 1);
}
