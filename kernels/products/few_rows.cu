// Path few-rows: at most ROWS rows of C, of a matrix B that is read once, at the rate of memory.
//
//   C = alpha * op(A) * op(B) + beta * C     op(A): M x K, op(B): K x N, C: M x N, float32, batched
//
// Idea      Each element of B is in M products only, so that memory is the limit: loads are as wide as the
//           rows of B allow, many are on their way at a time, and nothing of B goes through shared
//           memory. A goes there, DEPTH columns at a time. C may be transposed, so that a few columns
//           are a few rows of the transposed product. `splits` blocks share columns of C by k, and
//           the last of them, by an atomic ticket, adds all sums in the order of k.
// Mapping   B_ALONG_K = 0: a block has 128 columns of C, 4 per thread, and its warps share k.
//           B_ALONG_K = 1: a warp has 4 columns of C, and its lanes share k.
//           blockIdx.x: columns; blockIdx.y: splits; blockIdx.z: matrices of the batch.
// Traffic   loads: K of B per element of a row of C, in 1/4 if QUADS; A once per block
// Limit     DRAM, or L2 where B is there; many rows: issue slots.
// Source    CUDA C++ Best Practices Guide, "Coalesced access to global memory"; threadFenceReduction.

#ifndef ROWS
#define ROWS 1
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif
#ifndef QUADS
#define QUADS 0
#endif

constexpr int THREADS = 256, WARPS = THREADS / 32, COLUMNS = 4;  // of a thread or warp
constexpr int BLOCK_COLUMNS = B_ALONG_K ? WARPS * COLUMNS : 32 * COLUMNS;
constexpr int DEPTH = ROWS < 8 ? 2048 / ROWS : 512;  // columns of A in shared memory
constexpr int WIDTH = QUADS ? 4 : 1;                    // floats of a load of B
constexpr int LOADS = B_ALONG_K && QUADS ? 2 : ROWS > 2 ? 4 : 8;  // of B per thread and column or quad, at a time
constexpr int K_AT_ONCE = B_ALONG_K ? LOADS * 32 * WIDTH : LOADS * WARPS;
constexpr int BATCH = 8;                                // floats of A per thread, at a time
constexpr int SUMS_AT_ONCE = ROWS == 4 ? 4 : 16;        // of splits per thread; more would spill beside 4 rows

#include "early_start.cuh"
#include "in_order.cuh"

// C at row `row` and column `col` is C[row * c_row + col * c_col], A at (row, k) is A[row * a_row + k * a_k].
extern "C" __global__ void __launch_bounds__(THREADS, ROWS > 4 ? 2 : 3)
sgemm_few_rows(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
               int a_row, int a_k, int ldb, int c_row, int c_col, long long stride_a, long long stride_b,
               long long stride_c, float alpha, float beta, int splits, int depth_of_split, char* __restrict__ workspace)
{
    __shared__ __align__(16) float rows[ROWS][DEPTH];
    __shared__ __align__(16) float parts[B_ALONG_K ? 1 : WARPS / 2][ROWS][BLOCK_COLUMNS];
    __shared__ bool is_last;
    A += blockIdx.z * stride_a, B += blockIdx.z * stride_b, C += blockIdx.z * stride_c;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, split = blockIdx.y;
    const int begin = split * depth_of_split, end = min(K, begin + depth_of_split);

    // the first of the thread's or the warp's columns, and the distance to the next
    const int col = blockIdx.x * BLOCK_COLUMNS + (B_ALONG_K ? warp * COLUMNS : QUADS ? lane * 4 : lane);
    constexpr int STEP = B_ALONG_K || QUADS ? 1 : 32;

    float sum[ROWS][COLUMNS] = {};
    float b[LOADS][COLUMNS][B_ALONG_K ? WIDTH : 1];
    // Values of B from k on, all loads before the first that is needed. Quads that are not whole are left out.
    const auto load_b = [&](int chunk, int depth, int k) {
#pragma unroll
        for (int u = 0; u < LOADS; ++u) {
            if constexpr (B_ALONG_K) {
                const int here = k + (u * 32 + lane) * WIDTH;
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    const float* const from = B + size_t(col + c) * ldb + chunk + here;
                    const bool inside = col + c < N && here + WIDTH <= depth;
                    if constexpr (QUADS) {
                        const float4 quad = inside ? __ldcs(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
                        b[u][c][0] = quad.x, b[u][c][1] = quad.y, b[u][c][2] = quad.z, b[u][c][3] = quad.w;
                    } else {
                        b[u][c][0] = inside ? __ldcs(from) : 0.0f;
                    }
                }
            } else {
                const int here = k + warp * LOADS + u;
                const float* const from = B + size_t(chunk + here) * ldb + col;
                if constexpr (QUADS) {
                    const bool inside = here < depth && col + 4 <= N;
                    const float4 quad = inside ? __ldcs(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
                    b[u][0][0] = quad.x, b[u][1][0] = quad.y, b[u][2][0] = quad.z, b[u][3][0] = quad.w;
                } else {
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c) b[u][c][0] = here < depth && col + c * STEP < N ? __ldcs(from + c * STEP) : 0.0f;
                }
            }
        }
    };
    const auto add_up = [&](int k) {
#pragma unroll
        for (int u = 0; u < LOADS; ++u)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int q = 0; q < (B_ALONG_K ? WIDTH : 1); ++q) {
                    const float a = rows[r][k + (B_ALONG_K ? (u * 32 + lane) * WIDTH + q : warp * LOADS + u)];
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c) sum[r][c] += a * b[u][c][q];
                }
    };

    let_next_launch_start_beside_few_blocks();
    wait_for_last_launch();
    for (int chunk = begin; chunk < end; chunk += DEPTH) {
        const int depth = min(DEPTH, end - chunk);
        const int whole = QUADS && B_ALONG_K ? depth / 4 * 4 : depth;  // zero times Inf is NaN: no A where B is left out
        load_b(chunk, depth, 0);  // on its way while A comes
        __syncthreads();
#pragma unroll 1
        for (int first = t; first < ROWS * DEPTH; first += BATCH * THREADS) {
            float value[BATCH];
            // along the stored rows of A: k if a_k is 1, else the row
            const auto row_of = [&](int n) { return a_k == 1 ? (first + n * THREADS) / DEPTH : (first + n * THREADS) % ROWS; };
            const auto k_of = [&](int n) { return a_k == 1 ? (first + n * THREADS) % DEPTH : (first + n * THREADS) / ROWS; };
#pragma unroll
            for (int n = 0; n < BATCH; ++n) {
                const bool inside = row_of(n) < M && k_of(n) < whole;
                value[n] = inside ? __ldca(A + size_t(row_of(n)) * a_row + size_t(chunk + k_of(n)) * a_k) : 0.0f;
            }
#pragma unroll
            for (int n = 0; n < BATCH; ++n) rows[row_of(n)][k_of(n)] = value[n];
        }
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < depth; k += K_AT_ONCE) {
            if (k > 0) load_b(chunk, depth, k);
            add_up(k);
        }
        // what quads leave out: the last k of a column, with A from memory
        if constexpr (QUADS && B_ALONG_K) {
            const int k = chunk + whole + lane;
            if (k < chunk + depth) {
                float last[COLUMNS];
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) last[c] = col + c < N ? __ldca(B + size_t(col + c) * ldb + k) : 0.0f;
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const float a = r < M ? __ldca(A + size_t(r) * a_row + size_t(k) * a_k) : 0.0f;
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c) sum[r][c] += a * last[c];
                }
            }
        }
    }
    // The last columns of a row: lanes share k. The sums so far are not zero if A has Inf or NaN.
    if constexpr (QUADS && !B_ALONG_K) {
        const int edge = N / 4 * 4;
        if (edge < N && edge / BLOCK_COLUMNS == int(blockIdx.x)) {
            float rest[ROWS][COLUMNS - 1] = {};
            for (int k = begin + t; k < end; k += THREADS) {
                float last[COLUMNS - 1];
#pragma unroll
                for (int c = 0; c < COLUMNS - 1; ++c) last[c] = edge + c < N ? __ldca(B + size_t(k) * ldb + edge + c) : 0.0f;
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const float a = r < M ? __ldca(A + size_t(r) * a_row + size_t(k) * a_k) : 0.0f;
#pragma unroll
                    for (int c = 0; c < COLUMNS - 1; ++c) rest[r][c] += a * last[c];
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int c = 0; c < COLUMNS - 1; ++c) {
#pragma unroll
                    for (int other = 16; other; other /= 2) rest[r][c] += __shfl_xor_sync(0xffffffff, rest[r][c], other);
                    if (col == edge) sum[r][c] = rest[r][c];
                }
        }
    }

    // all sums of the block to parts[0]
    if constexpr (B_ALONG_K) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
                for (int other = 16; other; other /= 2) sum[r][c] += __shfl_xor_sync(0xffffffff, sum[r][c], other);
                if (lane == 0) parts[0][r][warp * COLUMNS + c] = sum[r][c];
            }
        __syncthreads();
    } else {
        const auto part = [&](int r, int c) -> float& { return parts[warp % (WARPS / 2)][r][(QUADS ? lane * 4 : lane) + c * STEP]; };
#pragma unroll
        for (int half = 1; half >= 0; --half) {  // the upper half of the warps leaves its sums to the lower
            if (warp / (WARPS / 2) == half)
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c) part(r, c) = half ? sum[r][c] : sum[r][c] + part(r, c);
            __syncthreads();
        }
        for (int x = t; x < ROWS * BLOCK_COLUMNS; x += THREADS) {
            float all = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS / 2; ++w) all += (&parts[w][0][0])[x];
            parts[0][x / BLOCK_COLUMNS][x % BLOCK_COLUMNS] = all;  // the only reader of this element
        }
        __syncthreads();
    }

    const int group = blockIdx.z * gridDim.x + blockIdx.x;
    float* sums = nullptr;
    if (splits > 1) {
        const size_t tickets_bytes = (size_t(gridDim.x) * gridDim.z * sizeof(int) + 127) / 128 * 128;
        sums = reinterpret_cast<float*>(workspace + tickets_bytes) + size_t(group) * splits * ROWS * BLOCK_COLUMNS;
        for (int x = t; x < ROWS * BLOCK_COLUMNS; x += THREADS) __stcg(sums + split * ROWS * BLOCK_COLUMNS + x, (&parts[0][0][0])[x]);
        __threadfence();
        __syncthreads();
        if (t == 0) {
            int* const ticket = reinterpret_cast<int*>(workspace) + group;
            is_last = atomicAdd(ticket, 1) == splits - 1;
            if (is_last) *ticket = 0;  // for the next launch
            __threadfence();
        }
        __syncthreads();
        if (!is_last) return;
    }
    // few values: GROUPS of threads add a range of splits each
    constexpr int VALUES = ROWS * BLOCK_COLUMNS, GROUPS = VALUES < THREADS ? THREADS / VALUES : 1;
    __shared__ float of_groups[GROUPS > 1 ? THREADS : 1];
    if (GROUPS > 1 && splits > 1) {
        const int first = splits * (t / VALUES) / GROUPS, last = splits * (t / VALUES + 1) / GROUPS;
        float all[1] = {};
        add_in_order<SUMS_AT_ONCE>(all, sums + first * VALUES + t % VALUES, 0, VALUES, last - first);
        of_groups[t] = all[0];
        __syncthreads();
    }
    constexpr int PASSES_OF_C = (VALUES + THREADS - 1) / THREADS;
    const auto place = [&](int x) -> float* {
        const int row = x / BLOCK_COLUMNS, column = blockIdx.x * BLOCK_COLUMNS + x % BLOCK_COLUMNS;
        return x < VALUES && row < M && column < N ? C + size_t(row) * c_row + size_t(column) * c_col : nullptr;
    };
    float old[PASSES_OF_C] = {};  // all loads come before the stores
    if (beta != 0.0f)
#pragma unroll
        for (int pass = 0; pass < PASSES_OF_C; ++pass)
            if (const float* const c = place(t + pass * THREADS)) old[pass] = *c;
    float all[PASSES_OF_C] = {};
    if (GROUPS == 1 && splits > 1) {
        add_in_order<SUMS_AT_ONCE / PASSES_OF_C>(all, sums + t, THREADS, VALUES, splits);
    } else {
#pragma unroll
        for (int pass = 0; pass < PASSES_OF_C; ++pass) {
            const int x = t + pass * THREADS;
            if (x >= VALUES) break;
            if (splits == 1) {
                all[pass] = (&parts[0][0][0])[x];
            } else {
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) all[pass] += of_groups[group * VALUES + x];
            }
        }
    }
#pragma unroll
    for (int pass = 0; pass < PASSES_OF_C; ++pass)
        if (float* const c = place(t + pass * THREADS)) *c = alpha * all[pass] + beta * old[pass];
}
