// What a block does with the sums of its threads: adds slices and splits, and stores C.
//
// Sums leave registers at once, for shared memory: [slice][row][column] of the tile. All that follows takes rows or quads of the
// tile from there in short loops. Each block runs this code once, and its lines evict those of the loop from the
// instruction cache: unrolled over the sums of a thread it was 50 to 100 KB.

constexpr int TILE_QUADS = BM * BN / 4, OWN = (TILE_QUADS + THREADS - 1) / THREADS;  // of a tile, and of a thread
constexpr int SHARE = OWN * THREADS;  // quads in the workspace of a split of a tile

// Floats of a row in shared memory: eight lanes, which store quads of two rows together, are in 32 banks.
__device__ constexpr int pitch_of(int columns) { return TOGETHER * columns % 32 == 16 ? columns : pitch_of(columns + 4); }
constexpr int PITCH = pitch_of(BN), PART = BM * PITCH;

#include "in_order.cuh"

// The tile of a block, in bands of BAND rows of tiles, and the block's place among those that share it.
struct Tile {
    int split, number, first_row, first_col;
    __device__ Tile(int M, int N, int splits)
    {
        const unsigned down = (M + BM - 1) / BM, across = (N + BN - 1) / BN, place = splits > 1 ? blockIdx.x / splits : blockIdx.x;
        const unsigned band = place / (BAND * across), in_band = place - band * (BAND * across), height = min(BAND, down - band * BAND);
        split = blockIdx.x - place * splits;
        number = blockIdx.z * down * across + place;
        const unsigned column = in_band / height;
        first_row = (band * BAND + in_band - column * height) * BM, first_col = column * BN;
    }
};

// Where the sums of thread t begin in the tile. The 8 x 4 lanes of a warp have rows TOGETHER apart and 4 columns each, as in
// rung 9.
__device__ int lane_row(int t) { return t >> 1 & 1 | t >> 2 & 6; }
__device__ int lane_column(int t) { return t & 1 | t >> 1 & 2; }
__device__ int row_of_thread(int t) { return t % SLICE / 32 / (BN / WN) * WM + lane_row(t) * TOGETHER; }
__device__ int column_of_thread(int t) { return t % SLICE / 32 % (BN / WN) * WN + lane_column(t) * 4; }
__device__ int row_of_sum(int i) { return i / TOGETHER * TOGETHER * LANES_M + i % TOGETHER; }

// Times alpha, so that the sums of the loop need not lie in quads of registers: every multiply-add would read
// two registers of one bank (rung 16).
__device__ void leave_sums(const float (&sum)[TM][TN], float* parts, float alpha)
{
    const int t = threadIdx.x;
    float* const own = parts + t / SLICE * PART + row_of_thread(t) * PITCH + column_of_thread(t);
    __syncthreads();  // nobody reads tiles of A and B any more
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(own + row_of_sum(i) * PITCH + j * LANES_N) =
                make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
    __syncthreads();
}

// The sum of what `slices` slices have at one place of the tile, a float or a quad.
template <typename T>
__device__ T added(const float* place, int slices)
{
    T total = *reinterpret_cast<const T*>(place);
#pragma unroll
    for (int s = 1; s < SLICES; ++s)
        if (s < slices) add(total, *reinterpret_cast<const T*>(place + s * PART));
    return total;
}

// Blocks leave sums for each other, [tile][split][quad]; with tickets, one per tile, which come first.
// Adds the sums of all blocks of a tile in the last one of them, which is told so: true. It has them as those of one slice.
__device__ bool add_splits(float* parts, const Tile& tile, int splits, char* workspace, bool by_ticket)
{
    // Quads of a thread that are added together, and splits of them that are on their way, as far as registers go.
    constexpr int REGISTERS = 65536 / (THREADS * BLOCKS) < 255 ? 65536 / (THREADS * BLOCKS) : 255;
    constexpr int MOST = REGISTERS == 255 ? 16 : 8, GROUP = OWN % MOST == 0 ? MOST : OWN % 12 == 0 ? 12 : OWN;
    constexpr int AT_ONCE = GROUP < 8 ? 16 / GROUP : REGISTERS < 128 ? 1 : GROUP == 12 ? 3 : 2;
    static_assert(OWN % GROUP == 0, "groups share the quads of a thread evenly");
    __shared__ bool is_last;
    const int t = threadIdx.x;
    const size_t tiles = size_t(gridDim.x / splits) * gridDim.z, tickets_bytes = by_ticket ? (tiles * sizeof(int) + 127) / 128 * 128 : 0;
    float4* const sums = reinterpret_cast<float4*>(workspace + tickets_bytes) + size_t(tile.number) * splits * SHARE + t;
    const auto place = [&](int n) -> float* {
        const int quad = n * THREADS + t;
        return TILE_QUADS % THREADS == 0 || quad < TILE_QUADS ? parts + quad / (BN / 4) * PITCH + quad % (BN / 4) * 4 : nullptr;
    };
#pragma unroll 8
    for (int n = 0; n < OWN; ++n)
        if (const float* const from = place(n)) __stcg(sums + tile.split * SHARE + n * THREADS, added<float4>(from, SLICES));
    if (!by_ticket) return false;
    __threadfence();
    __syncthreads();
    if (t == 0) {
        int* const ticket = reinterpret_cast<int*>(workspace) + tile.number;
        is_last = atomicAdd(ticket, 1) == splits - 1;
        if (is_last) *ticket = 0;  // for the next launch
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return false;
#pragma unroll 1
    for (int first = 0; first < OWN; first += GROUP) {
        float4 total[GROUP] = {};
        add_in_order<AT_ONCE>(total, sums + first * THREADS, THREADS, SHARE, splits);
#pragma unroll
        for (int n = 0; n < GROUP; ++n)
            if (float* const to = place(first + n)) *reinterpret_cast<float4*>(to) = total[n];
    }
    __syncthreads();
    return true;
}

// Has old values of a tile of C brought to L2, for `store` after the loop.
__device__ void prefetch(const Tile& tile, const float* C, int M, int N, int ldc)
{
    constexpr int LINE = 32, LINES = BN / LINE + 1;  // floats of a line, lines of a row that begins anywhere
#pragma unroll 1
    for (int x = threadIdx.x; x < BM * LINES; x += THREADS) {
        const int row = tile.first_row + x / LINES, col = tile.first_col + min(x % LINES * LINE, BN - 1);
        if (row < M && col < N) asm volatile("prefetch.global.L2 [%0];" :: "l"(C + size_t(row) * ldc + col));
    }
}

__device__ bool is_in_quads(const float* C, int N, int ldc) { return ldc % 4 == 0 && size_t(C) % 16 == 0 && N % 4 == 0; }

__device__ float scaled_sum(float sum, float beta, float old) { return sum + beta * old; }
__device__ float4 scaled_sum(float4 sum, float beta, float4 old)
{
    return make_float4(sum.x + beta * old.x, sum.y + beta * old.y, sum.z + beta * old.z, sum.w + beta * old.w);
}

// Stores the tile by floats or by quads. The lanes of a warp store neighbours in a row, and so do as many rows at a time as
// fill the warp. All loads of old C of a few rows come before their stores, which the compiler does not move across.
template <typename T>
__device__ void store_rows(const float* parts, int slices, const Tile& tile, float* C, int M, int N, int ldc, float beta)
{
    constexpr int WIDTH = sizeof(T) / 4, LANES = BN / WIDTH < 32 ? BN / WIDTH : 32, ROWS = 32 / LANES;
    constexpr int PASSES = (BN / WIDTH + LANES - 1) / LANES, DOWN = WARPS * ROWS;
    constexpr int MOST = WIDTH == 4 ? 4 : (8 + PASSES - 1) / PASSES, ALL = (BM + DOWN - 1) / DOWN, AT_ONCE = ALL < MOST ? ALL : MOST;
    const int lane = threadIdx.x % 32, first_col = lane % LANES * WIDTH;
    if (lane >= ROWS * LANES) return;
    const int rows = min(BM, M - tile.first_row), columns = min(BN, N - tile.first_col);
    int row = threadIdx.x / 32 * ROWS + lane / LANES;
    const float* from = parts + row * PITCH + first_col;
    float* to = C + size_t(tile.first_row + row) * ldc + tile.first_col + first_col;
#pragma unroll 1
    for (; row < rows; row += AT_ONCE * DOWN, from += AT_ONCE * DOWN * PITCH, to += AT_ONCE * DOWN * size_t(ldc)) {
        const auto is_inside = [&](int n, int pass) { return row + n * DOWN < rows && first_col + pass * LANES * WIDTH < columns; };
        const auto place = [&](int n, int pass) { return reinterpret_cast<T*>(to + n * DOWN * size_t(ldc) + pass * LANES * WIDTH); };
        T sum[AT_ONCE][PASSES], old[AT_ONCE][PASSES] = {};
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n)
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass) {
                const int down = ALL % AT_ONCE == 0 ? n * DOWN : min(n * DOWN, BM - 1 - row);  // sums outside of C are read too
                sum[n][pass] = added<T>(from + down * PITCH + pass * LANES * WIDTH, slices);
                if (beta != 0.0f && is_inside(n, pass)) old[n][pass] = *place(n, pass);
            }
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n)
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass)
                if (is_inside(n, pass)) *place(n, pass) = scaled_sum(sum[n][pass], beta, old[n][pass]);
    }
}

__device__ void store(const float* parts, int slices, const Tile& tile, float* C, int M, int N, int ldc, float beta)
{
    if (is_in_quads(C, N, ldc))
        store_rows<float4>(parts, slices, tile, C, M, N, ldc, beta);
    else
        store_rows<float>(parts, slices, tile, C, M, N, ldc, beta);
}

// Adds and stores what a block has in `parts`, or leaves it for the last block of the tile.
__device__ void finish(float* parts, const Tile& tile, float* C, int M, int N, int ldc, float beta, int splits, char* workspace, bool by_ticket)
{
    if (splits > 1 && !add_splits(parts, tile, splits, workspace, by_ticket)) return;
    store(parts, splits > 1 ? 1 : SLICES, tile, C, M, N, ldc, beta);
}
