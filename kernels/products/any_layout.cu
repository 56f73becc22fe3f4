// Path any-layout: tiles of any size, of matrices that are stored in any way.
//
//   C = alpha * op(A) * op(B) + beta * C     op(A): M x K, op(B): K x N, C: M x N, float32, row-major, batched
//
// Idea      Asynchronous copies of 4 bytes take rows that begin anywhere, and transpose a matrix on the
//           way; where its rows run along the tile and begin on 16 bytes, copies are of 16. SLICES groups of warps
//           share a tile by k, and so do `splits` blocks, for a C with few tiles. Which block is the
//           last of a tile, an atomic ticket says; it adds all sums in the order of k. Nobody waits.
//           The first phase has what whole phases leave of K: no later copy asks whether a k is inside.
// Mapping   block tile BM x BN in phases of depth BK, warp tiles of 8 TM x 4 TN; a thread has groups of 4
//           neighbouring rows and columns. blockIdx.x: tiles in bands of 8 rows, splits innermost;
//           blockIdx.z: matrices of the batch.
// Traffic   loads: K (BM + BN) / (BM BN) floats per element of C, in copies of 1 float, or of 4
//           splits > 1: two more floats per split and element of C
// Limit     Large tiles: issue slots, of which copies of 4 bytes take 2 to 6%. Small: latency of
//           the first copies, of the barrier in each phase, and of adding up.
// Source    rungs 12 and 17 of the ladder; CUDA C++ Programming Guide, threadFenceReduction.

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 16
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 16
#endif
#ifndef SLICES
#define SLICES 1
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef FENCED
#define FENCED 1
#endif
#ifndef PREFETCHED
#define PREFETCHED 1
#endif
#ifndef A_ALONG_K
#define A_ALONG_K 1
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif
#ifndef A_QUADS
#define A_QUADS 0
#endif
#ifndef B_QUADS
#define B_QUADS 0
#endif

constexpr int LANES_M = 8, LANES_N = 4;
constexpr int WM = TM * LANES_M, WN = TN * LANES_N;  // of a warp
constexpr int SLICE = (BM / TM) * (BN / TN), THREADS = SLICE * SLICES, WARPS = THREADS / 32;
constexpr int DEPTH = BK / SLICES;  // of a slice in a phase
constexpr int CHUNK = DEPTH < 8 ? DEPTH : 8;  // k of a slice between branches: the last phase ends with K
constexpr int PAD = 4;  // floats: 8 k times 4 rows or columns, which a warp stores together, are in 32 banks
constexpr int BAND = 8, TOGETHER = 4;
constexpr int RESIDENT = TM * TN >= 128 ? 256 : TM * TN > 64 ? 384 : TM * TN == 64 ? 512 : 768;  // threads of an SM, by registers
constexpr int BLOCKS = THREADS < RESIDENT ? RESIDENT / THREADS : 1;
static_assert(BM % WM == 0 && BN % WN == 0 && BK % SLICES == 0 && BK % 8 == 0, "warps fill the tile, slices the phase");

struct Stage {
    float a[BK][BM + PAD];
    float b[BK][BN + PAD];
};

#include "asynchronous.cuh"
#include "early_start.cuh"
#include "results.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sgemm_any_layout(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                 int lda, int ldb, int ldc, long long stride_a, long long stride_b, long long stride_c,
                 float alpha, float beta, int splits, int by_ticket, char* __restrict__ workspace)
{
    extern __shared__ __align__(128) char shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);
    A += blockIdx.z * stride_a, B += blockIdx.z * stride_b;

    const int t = threadIdx.x, slice = t / SLICE;
    const Tile tile(M, N, splits);
    const int first_row = tile.first_row, first_col = tile.first_col;
    const int c_row = row_of_thread(t), c_col = column_of_thread(t);

    // The first phase of K is short if K is no multiple of BK.
    const int all_phases = (K + BK - 1) / BK, of_first = K - (all_phases - 1) * BK;
    int begin = 0, phases = all_phases;
    if (splits > 1) {  // evenly; the first splits have one more of what is left
        const int each = all_phases / splits, left = all_phases - each * splits;
        begin = each * tile.split + min(tile.split, left), phases = each + (tile.split < left);
    }
    const int first_k = begin == 0 ? 0 : of_first + (begin - 1) * BK;
    int depth = begin == 0 ? of_first : BK;  // of this phase

    Copier<A_ALONG_K, A_QUADS, BM> copier_a(A, lda, first_row, M, first_k);
    Copier<B_ALONG_K, B_QUADS, BN> copier_b(B, ldb, first_col, N, first_k);
    let_next_launch_start_beside_few_blocks();
    wait_for_last_launch();
    const auto start_first = [&] {
        copier_a.start<false>(stages[0].a, depth);
        copier_b.start<false>(stages[0].b, depth);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // a group of copies for each phase, of none if there is no such phase
    const auto start = [&](int phase, Stage& to) {
        if (phase < phases) {
            copier_a.start<true>(to.a, BK);
            copier_b.start<true>(to.b, BK);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float a[2][TM], b[2][TN];  // the values of this k and of the next
    const auto read = [&](const Stage& from, int k, int parity) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a[parity][i]) = *reinterpret_cast<const float4*>(&from.a[k][c_row + i * LANES_M]);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b[parity][j]) = *reinterpret_cast<const float4*>(&from.b[k][c_col + j * LANES_N]);
    };

    float sum[TM][TN] = {};
    start_first();
#pragma unroll
    for (int phase = 1; phase < STAGES - 1; ++phase) start(phase, stages[phase]);
    if (PREFETCHED && beta != 0.0f && tile.split == 0) prefetch(tile, C + blockIdx.z * stride_c, M, N, ldc);
    int now = 0;  // stage of this phase; those that start go where the phase before was
    for (int phase = 0; phase < phases; ++phase) {
        // the tiles of this phase are complete, and those of the last one are not read any more
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
        const Stage& tiles = stages[now];
        int k_of_slice = slice * DEPTH;
        const int end_of_slice = min(k_of_slice + DEPTH, depth);
        read(tiles, k_of_slice, 0);
        start(phase + STAGES - 1, stages[now == 0 ? STAGES - 1 : now - 1]);
        now = now + 1 == STAGES ? 0 : now + 1, depth = BK;
#pragma unroll 1
        for (; k_of_slice < end_of_slice; k_of_slice += CHUNK) {
#pragma unroll
            for (int k = 0; k < CHUNK; ++k) {
                if (k + 1 < CHUNK || k_of_slice + CHUNK < end_of_slice) read(tiles, k_of_slice + k + 1, (k + 1) % 2);
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int step = 0; step < TN; ++step) {
                        const int j = i % 2 ? TN - 1 - step : step;  // to and fro
                        sum[i][j] += a[k % 2][i] * b[k % 2][j];
                    }
                if (FENCED) asm volatile("pmevent 0;");  // see rung 14
            }
        }
    }

    float* const parts = reinterpret_cast<float*>(shared);
    leave_sums(sum, parts, alpha);
    finish(parts, tile, C + blockIdx.z * stride_c, M, N, ldc, beta, splits, workspace, by_ticket);
}

#include "sums.cuh"
