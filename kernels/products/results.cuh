// What a block does with the sums of its threads: adds slices and splits, and stores C.

constexpr int OWN = (QUADS + SLICES - 1) / SLICES;  // of a thread's sums; of them after slices are added
constexpr int TILE_QUADS = OWN * THREADS;
constexpr int SPLITS_AT_ONCE = OWN < 8 ? 16 / OWN : 1;  // whose sums are on their way to the block that adds them

#include "in_order.cuh"

// The tile of a block, in bands of BAND rows of tiles, and the block's place among those that share it.
struct Tile {
    int split, number, first_row, first_col;
    __device__ Tile(int M, int N, int splits)
    {
        const int down = (M + BM - 1) / BM, across = (N + BN - 1) / BN, place = blockIdx.x / splits;
        const int band = place / (BAND * across), in_band = place % (BAND * across), height = min(BAND, down - band * BAND);
        split = blockIdx.x % splits;
        number = blockIdx.z * down * across + place;
        first_row = (band * BAND + in_band % height) * BM, first_col = in_band / height * BN;
    }
};

// Where the warp of thread t begins in the tile; its 8 x 4 lanes have rows TOGETHER apart and 4 columns each,
// as in rung 9. Quad `q` of a thread's sums is the same distance from its first in every thread.
__device__ int row_of_warp(int t) { return t % SLICE / 32 / (BN / WN) * WM; }
__device__ int column_of_warp(int t) { return t % SLICE / 32 % (BN / WN) * WN; }
__device__ int lane_row(int t) { return t >> 1 & 1 | t >> 2 & 6; }
__device__ int lane_column(int t) { return t & 1 | t >> 1 & 2; }
__device__ int row_of_thread(int t) { return row_of_warp(t) + lane_row(t) * TOGETHER; }
__device__ int column_of_thread(int t) { return column_of_warp(t) + lane_column(t) * 4; }
__device__ int row_of_quad(int q) { const int i = q * 4 / TN; return i / TOGETHER * TOGETHER * LANES_M + i % TOGETHER; }
__device__ int column_of_quad(int q) { return q * 4 % TN * LANES_N; }

// After slices are added, slice s has OWN quads: those from s * OWN on, or s, s + SLICES, ... if DEALT_OUT.
__device__ int quad_of(int n) { return DEALT_OUT ? threadIdx.x / SLICE + n * SLICES : threadIdx.x / SLICE * OWN + n; }
__device__ bool owns(int n) { return QUADS % SLICES == 0 || quad_of(n) < QUADS; }

// Times alpha, so that the sums of the loop need not lie in quads of registers: every multiply-add would read
// two registers of one bank (rung 16).
__device__ void add_slices(const float (&sum)[TM][TN], float4 (&total)[OWN], float* parts, float alpha)
{
    if constexpr (SLICES == 1) {
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            const float* const first = &sum[n * 4 / TN][n * 4 % TN];
            total[n] = make_float4(alpha * first[0], alpha * first[1], alpha * first[2], alpha * first[3]);
        }
    } else {
        const int slice = threadIdx.x / SLICE, thread = threadIdx.x % SLICE;
        const auto part = [&](int of_slice, int n) -> float& { return parts[(of_slice * TM * TN + n) * SLICE + thread]; };
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // nobody reads tiles any more
#pragma unroll
        for (int n = 0; n < TM * TN; ++n) part(slice, n) = sum[n / TN][n % TN];
        __syncthreads();
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            total[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int s = 0; s < SLICES; ++s)
                if (owns(n)) {
                    const int first = quad_of(n) * 4;
                    add(total[n], make_float4(part(s, first), part(s, first + 1), part(s, first + 2), part(s, first + 3)));
                }
            total[n] = make_float4(alpha * total[n].x, alpha * total[n].y, alpha * total[n].z, alpha * total[n].w);
        }
    }
}

// Blocks leave sums for each other, [tile][split][n][thread]; with tickets, one per tile, which come first.
// Adds the sums of all blocks of a tile in the last one of them, which is told so: true.
__device__ bool add_splits(float4 (&total)[OWN], const Tile& tile, int splits, char* workspace, bool by_ticket)
{
    __shared__ bool is_last;
    const size_t tiles = size_t(gridDim.x / splits) * gridDim.z, tickets_bytes = by_ticket ? (tiles * sizeof(int) + 127) / 128 * 128 : 0;
    float4* const sums = reinterpret_cast<float4*>(workspace + tickets_bytes) + size_t(tile.number) * splits * TILE_QUADS + threadIdx.x;
#pragma unroll
    for (int n = 0; n < OWN; ++n) __stcg(sums + tile.split * TILE_QUADS + n * THREADS, total[n]);
    if (!by_ticket) return false;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        int* const ticket = reinterpret_cast<int*>(workspace) + tile.number;
        is_last = atomicAdd(ticket, 1) == splits - 1;
        if (is_last) *ticket = 0;  // for the next launch
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return false;
#pragma unroll
    for (int n = 0; n < OWN; ++n) total[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    add_in_order<SPLITS_AT_ONCE>(total, sums, THREADS, TILE_QUADS, splits);
    return true;
}

// Has old values of a tile of C brought to L2, for `store` after the loop.
__device__ void prefetch(const Tile& tile, const float* C, int M, int N, int ldc)
{
    constexpr int LINE = 32, LINES = BN / LINE + 1;  // floats of a line, lines of a row that begins anywhere
    for (int x = threadIdx.x; x < BM * LINES; x += THREADS) {
        const int row = tile.first_row + x / LINES, col = tile.first_col + min(x % LINES * LINE, BN - 1);
        if (row < M && col < N) asm volatile("prefetch.global.L2 [%0];" :: "l"(C + size_t(row) * ldc + col));
    }
}

// Stores of a warp: where rows of C do not begin on 16 bytes, quads go through `stage`, so that lanes store
// neighbours. PAIR quads of a row of a thread are neighbours too: 16 PAIR columns of 8 rows at a time.
constexpr int PAIR = !DEALT_OUT && TN / 4 % 2 == 0 && OWN % 2 == 0 ? 2 : 1, STAGE_ROW = 16 * PAIR + 4, STAGE_FLOATS = LANES_M * STAGE_ROW;

template <int COUNT>  // of a thread's quads, from its quad `first` on
__device__ void store(const float4 (&total)[COUNT], int first, const Tile& tile, float* C, int M, int N, int ldc, float beta, float* stage)
{
    const int t = threadIdx.x, lane = t % 32;
    const int row_of = tile.first_row + row_of_warp(t), col_of = tile.first_col + column_of_warp(t);
    // All loads of old C of a few quads come before their stores, which the compiler does not move across.
    if (ldc % 4 == 0 && size_t(C) % 16 == 0 && N % 4 == 0) {
        constexpr int TOGETHER_QUADS = COUNT < 8 ? COUNT : 8;
#pragma unroll
        for (int begin = 0; begin < COUNT; begin += TOGETHER_QUADS) {
            float4 old[TOGETHER_QUADS] = {};
            const auto place = [&](int n) -> float4* {
                const int q = quad_of(first + n);
                const int row = row_of + lane_row(t) * TOGETHER + row_of_quad(q), col = col_of + lane_column(t) * 4 + column_of_quad(q);
                return n < COUNT && owns(first + n) && row < M && col < N ? reinterpret_cast<float4*>(C + size_t(row) * ldc + col) : nullptr;
            };
            if (beta != 0.0f)
#pragma unroll
                for (int n = 0; n < TOGETHER_QUADS; ++n)
                    if (const float4* const from = place(begin + n)) old[n] = *from;
#pragma unroll
            for (int n = 0; n < TOGETHER_QUADS; ++n) {
                if (begin + n >= COUNT) break;
                const float4 sum = total[begin + n];
                if (float4* const to = place(begin + n))
                    *to = make_float4(sum.x + beta * old[n].x, sum.y + beta * old[n].y,
                                      sum.z + beta * old[n].z, sum.w + beta * old[n].w);
            }
        }
        return;
    }
    constexpr int QUADS_AT_ONCE = COUNT % PAIR == 0 ? PAIR : 1, WIDTH = 16 * QUADS_AT_ONCE, ROWS_AT_ONCE = 32 / WIDTH;
    float* const own = stage + t / 32 * STAGE_FLOATS;
#pragma unroll
    for (int n = 0; n < COUNT; n += QUADS_AT_ONCE) {
        if (!owns(first + n)) break;
        const int q = quad_of(first + n), col = col_of + column_of_quad(q) + lane % WIDTH;
        const int first_of = row_of + row_of_quad(q) + lane / WIDTH * TOGETHER;
        float* const c = C + size_t(first_of) * ldc + col;
        const int left = col < N ? M - first_of : 0;
        float old[LANES_M / ROWS_AT_ONCE] = {};
        if (beta != 0.0f)
#pragma unroll
            for (int r = 0; r < LANES_M; r += ROWS_AT_ONCE)
                if (r * TOGETHER < left) old[r / ROWS_AT_ONCE] = c[size_t(r * TOGETHER) * ldc];
        __syncwarp();  // the last quads are stored
#pragma unroll
        for (int p = 0; p < QUADS_AT_ONCE; ++p)
            *reinterpret_cast<float4*>(&own[lane_row(t) * STAGE_ROW + lane_column(t) * 4 + p * 16]) = total[n + p];
        __syncwarp();
#pragma unroll
        for (int r = 0; r < LANES_M; r += ROWS_AT_ONCE)
            if (r * TOGETHER < left)
                c[size_t(r * TOGETHER) * ldc] = own[(r + lane / WIDTH) * STAGE_ROW + lane % WIDTH] + beta * old[r / ROWS_AT_ONCE];
    }
}
