// Rung 17, split-K: small C, long K. The warps of a block share a tile by k, and so do blocks.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      A small C has too few tiles for all SMs, and smaller tiles read more per multiply-add. Here
//           SLICES groups of warps compute the same tile, each with its own part of every phase, and
//           add up in shared memory: tiles are small for a block, yet large for a warp. Where even
//           that leaves SMs idle, SPLITS blocks share a tile, each with its own phases, and add up in
//           memory: each a part of the tile, in groups at first, then over the groups.
// Mapping   block tile 64 x 128 in phases of depth 64, at the defaults; warp tiles of 8 TM x 4 TN; lanes as
//           in rung 9, rows and columns of a thread as in rung 13.
// Traffic   at BM = 64, BN = 128, TM = 8, TN = 16, SLICES = 4, SPLITS = 1, STAGES = 3, multiples of
//           128, sums that slices and blocks leave for each other not counted:
//           per element of C: 3K/128 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        21.33 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     The start of a launch, the first copies, adding up and storing, which nothing overlaps; then as
//           rung 14. N and K must be multiples of 4.
// Source    CUTLASS, "Efficient GEMM in CUDA", on sliced-K and split-K.

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 128
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 16
#endif
#ifndef SLICES
#define SLICES 4
#endif
#ifndef SPLITS
#define SPLITS 1
#endif
#ifndef STAGES
#define STAGES 3
#endif

#include "sliced.cuh"

#include "sliced_copy.cuh"

// Blocks that share a tile add up in groups of neighbours, then the last group adds up all groups. Each
// member adds a part of the tile, so that many SMs read at a time. Blocks start in the order of their
// numbers, so a launch that has the GPU to itself needs room for one group: who waits, waits for it or
// for earlier ones.
__device__ constexpr int most_members(int splits) { int n = 16; while (splits % n) --n; return n; }
constexpr int MEMBERS = most_members(SPLITS), GROUPS = SPLITS / MEMBERS;
constexpr int FLAGS = (MEMBERS + 1 + 7) / 8 * 8;  // one from each member, one for the last group, in whole sectors
static_assert(SPLITS == 1 || (MEMBERS > 1 && GROUPS <= 32), "a warp waits for a flag of each member, of each group");
constexpr int TILE_QUADS = QUADS * SLICE, PARTS = ((TILE_QUADS + MEMBERS - 1) / MEMBERS + THREADS - 1) / THREADS;

__device__ void set(int* flag) { asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flag) : "memory"); }
__device__ void await(int* flag, int lanes)  // one flag each, together
{
    int done;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(done) : "l"(flag) : "memory");
    while (!__all_sync((1u << lanes) - 1, done));
    *flag = 0;  // for the next launch
}
__device__ void add(float4& sum, float4 other)
{
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sgemm_split_k(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
              int M, int N, int K, float alpha, float beta, char* __restrict__ workspace)
{
#include "ring.cuh"

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int first_row = (blockIdx.z * gridDim.y + blockIdx.y) * BM, first_col = blockIdx.x / SPLITS * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting
    const int split = blockIdx.x % SPLITS, splits = SPLITS;

    const int t = threadIdx.x, slice = t / SLICE, warp = t % SLICE / 32;
#include "place.cuh"

#include "sliced_loop.cuh"

    // Slice by slice into shared memory, [slice][float][thread of the slice]: by floats, since sums that
    // are stored by quads lie in the banks of B's columns (rung 16). The ring is drained.
    __syncthreads();
    float* const parts = reinterpret_cast<float*>(ring_of_tiles);
    const int thread = t % SLICE;
    const auto part = [&](int of_slice, int n) -> float& { return parts[(of_slice * TM * TN + n) * SLICE + thread]; };
#pragma unroll
    for (int n = 0; n < TM * TN; ++n) part(slice, n) = sum[n / TN][n % TN];
    __syncthreads();

    // From here on slice s has quads s, s + SLICES, ... of the tile.
    constexpr int OWN = (QUADS + SLICES - 1) / SLICES;
    const auto owns = [&](int n) { return QUADS % SLICES == 0 || slice + n * SLICES < QUADS; };
    float4 total[OWN];
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        total[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int s = 0; s < SLICES; ++s)
            if (owns(n)) {
                const int first = (slice + n * SLICES) * 4;
                add(total[n], make_float4(part(s, first), part(s, first + 1), part(s, first + 2), part(s, first + 3)));
            }
    }

    if constexpr (SPLITS > 1) {
        const auto store = [&](int row, int col, float4 sum) {
            if (row < M && col < N) {  // N is a multiple of 4: a float4 is inside or outside, never half
                store_quad(C + size_t(row) * N + col, &sum.x, alpha, beta);
            }
        };
        const int across = gridDim.x / SPLITS, tiles = across * ((M + BM - 1) / BM);
        const int tile = first_row / BM * across + first_col / BN;
        int* const flags = reinterpret_cast<int*>(workspace) + tile * SPLITS * FLAGS;
        const size_t all_flags = (size_t(tiles) * SPLITS * FLAGS * sizeof(int) + 127) / 128 * 128;
        float4* const sums = reinterpret_cast<float4*>(workspace + all_flags) + size_t(tile) * SPLITS * TILE_QUADS;
        const auto flag = [&](int of, int from) { return flags + of * FLAGS + from; };
        const auto sum_of = [&](int of, int x) { return &sums[of * TILE_QUADS + x]; };
        const int group = split / MEMBERS, member = split % MEMBERS;
#pragma unroll
        for (int n = 0; n < OWN; ++n)
            if (owns(n)) __stcg(sum_of(split, t + n * THREADS), total[n]);
        __syncthreads();  // the block's sums are left
        if (t < MEMBERS) {
            set(flag(group * MEMBERS + t, member));
            await(flag(split, t), MEMBERS);
        }
        __syncthreads();  // those of its group are there

        float4 own[PARTS];
        const int begin_part = TILE_QUADS * member / MEMBERS, end_part = TILE_QUADS * (member + 1) / MEMBERS;
        const auto of_part = [&](int n) { return begin_part + t + n * THREADS; };
#pragma unroll
        for (int n = 0; n < PARTS; ++n) {
            const int x = of_part(n);
            if (x >= end_part) continue;
            own[n] = __ldcg(sum_of(group * MEMBERS, x));
#pragma unroll
            for (int m = 1; m < MEMBERS; ++m) add(own[n], __ldcg(sum_of(group * MEMBERS + m, x)));
            if (group < GROUPS - 1) __stcg(sum_of(split, x), own[n]);
        }
        if (group < GROUPS - 1) {
            __syncthreads();  // its part of their sum is left
            if (t == 0) set(flag(split, MEMBERS));
            return;
        }
        if (t < GROUPS - 1) await(flag(t * MEMBERS + member, MEMBERS), GROUPS - 1);
        __syncthreads();  // the parts of all groups are there
#pragma unroll
        for (int n = 0; n < PARTS; ++n) {
            const int x = of_part(n);
            if (x >= end_part) continue;
#pragma unroll
            for (int g = 0; g < GROUPS - 1; ++g) add(own[n], __ldcg(sum_of(g * MEMBERS + member, x)));
            // the place in C of quad x / SLICE of thread x % SLICE of a slice
            const int thread = x % SLICE, q = x / SLICE, warp = thread / 32;
            const int lane_m = thread >> 1 & 1 | thread >> 2 & 6, lane_n = thread & 1 | thread >> 1 & 2;
            store(first_row + warp / (BN / WN) * WM + lane_m + q * 4 / TN * LANES_M,
                  first_col + warp % (BN / WN) * WN + lane_n * 4 + q * 4 % TN * LANES_N, own[n]);
        }
    } else {
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            const int q = slice + n * SLICES;
            const int row = first_row + c_row + q * 4 / TN * LANES_M;
            const int col = first_col + c_col + q * 4 % TN * LANES_N;
            if (owns(n) && row < M && col < N) {
                store_quad(C + size_t(row) * N + col, &total[n].x, alpha, beta);
            }
        }
    }
}
