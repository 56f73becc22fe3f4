// What a block does with the sums of its threads: adds slices and splits, and stores C.

constexpr int OWN = (QUADS + SLICES - 1) / SLICES;  // of a thread's sums; of them after slices are added
constexpr int TILE_QUADS = OWN * THREADS;

__device__ void add(float4& sum, float4 other)
{
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

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

// Where thread t, which has TOGETHER neighbouring rows, begins in the tile, and where its quad of sums `q` is from there: lanes as in rung 9.
__device__ int row_of_thread(int t) { return t % SLICE / 32 / (BN / WN) * WM + (t >> 1 & 1 | t >> 2 & 6) * TOGETHER; }
__device__ int column_of_thread(int t) { return t % SLICE / 32 % (BN / WN) * WN + (t & 1 | t >> 1 & 2) * 4; }
__device__ int row_of_quad(int q) { const int i = q * 4 / TN; return i / TOGETHER * TOGETHER * LANES_M + i % TOGETHER; }
__device__ int column_of_quad(int q) { return q * 4 % TN * LANES_N; }

// After slices are added, slice s has quads s, s + SLICES, ... as its quads n = 0, 1, ...
__device__ int quad_of(int n) { return threadIdx.x / SLICE + n * SLICES; }
__device__ bool owns(int n) { return QUADS % SLICES == 0 || quad_of(n) < QUADS; }

__device__ void add_slices(const float (&sum)[TM][TN], float4 (&total)[OWN], float* parts)
{
    if constexpr (SLICES == 1) {
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            const float* const first = &sum[n * 4 / TN][n * 4 % TN];
            total[n] = make_float4(first[0], first[1], first[2], first[3]);
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
    for (int n = 0; n < OWN; ++n) total[n] = __ldcg(sums + n * THREADS);
#pragma unroll 2
    for (int split = 1; split < splits; ++split)
#pragma unroll
        for (int n = 0; n < OWN; ++n) add(total[n], __ldcg(sums + split * TILE_QUADS + n * THREADS));
    return true;
}

__device__ void store_one(float4 sum, int n, const Tile& tile, float* C, int M, int N, int ldc, float alpha, float beta)
{
    const int row = tile.first_row + row_of_thread(threadIdx.x) + row_of_quad(quad_of(n));
    const int col = tile.first_col + column_of_thread(threadIdx.x) + column_of_quad(quad_of(n));
    if (row >= M || col >= N) return;
    float* const c = C + size_t(row) * ldc + col;
    if (ldc % 4 == 0 && size_t(C) % 16 == 0 && col + 4 <= N) {
        float4* const quad = reinterpret_cast<float4*>(c);
        const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
        *quad = make_float4(alpha * sum.x + beta * old.x, alpha * sum.y + beta * old.y,
                            alpha * sum.z + beta * old.z, alpha * sum.w + beta * old.w);
    } else {
        const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int q = 0; q < 4; ++q)
            if (col + q < N) c[q] = beta == 0.0f ? alpha * sums[q] : alpha * sums[q] + beta * c[q];
    }
}
__device__ void store(const float4 (&total)[OWN], const Tile& tile, float* C, int M, int N, int ldc, float alpha, float beta)
{
#pragma unroll
    for (int n = 0; n < OWN; ++n)
        if (owns(n)) store_one(total[n], n, tile, C, M, N, ldc, alpha, beta);
}
