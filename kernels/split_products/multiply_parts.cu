// The product of FP16 parts on tensor cores, as accurate as one of float32 (sm_90a).
//
//   C = alpha * A * B + beta * C,   A * B = high_a * low_b + low_a * high_b + high_a * high_b, with scales
//
// Idea      Tensor cores cut sums off, which would cost more bits than the parts: after each 64 of K the sums are added
//           to others in registers, by FADD that rounds to nearest, while the other warpgroup multiplies. One warp
//           copies tiles ahead, also those of the next tile of C. Blocks of a cluster have tiles below each
//           other and share the copies of B.
//           Tiles that do not fill a round of all SMs are shared along K: the block that ends last adds the sums.
//           Rows and columns with Inf or NaN are left to three more warps, which are otherwise idle.
// Mapping   384 threads: a warp copies, two warpgroups have 64 rows of a tile of 128 x BN each. A block on each SM takes every
//           gridDim.x-th tile, in groups of GROUP rows of tiles; tiles from `whole` on are of `shares` blocks each.
// Traffic   tiles of both parts: 4 bytes per element, as float32 has
// Limit     tensor cores, and their power
// Source    CUTLASS, "Efficient GEMM in CUDA", warp specialisation; DeepGEMM's promotion of sums, for FP8.

#ifndef BN
#define BN 128
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks that share copies of B
#endif
#ifndef A_ALONG
#define A_ALONG 1  // A is stored M x K, else K x M
#endif
#ifndef B_ALONG
#define B_ALONG 0  // B is stored N x K, else K x N
#endif
#ifndef CONTROL_BYTES
#define CONTROL_BYTES 1024
#endif

#ifndef SHARES
#define SHARES 0  // 1: some tiles are shared along K. Not compiled otherwise: launches of a few steps take 0.5 us longer with it
#endif

#ifndef KEEPS_LOST
#define KEEPS_LOST 0  // 1: sums of fewer terms are shorter, and are added with what the addition before lost (Kahan's sum).
#endif                // Tiles of more than 64 columns have no registers for that, and it costs all sums 3 to 5% of the time

#include "places.cuh"
#include "roots.cuh"
#include "terms.cuh"
#include "pipeline.cuh"
#include "wgmma.cuh"
#include "scaled_store.cuh"
#include "shared_tiles.cuh"
#include "special.cuh"

constexpr int BM = 128, BK = 64, GROUP = 16 / CLUSTER, CONSUMER_WARPS = 8;
constexpr int WIDTH = BN < 128 ? BN : 128, PASSES = BN / WIDTH;  // columns of one wgmma, and how many make a row of the tile
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE_BYTES = 2 * (A_BYTES + B_BYTES);
// Tensor cores cut sums off towards zero. That costs a sum of many comparable terms about the same part of its size in each
// 64 of K, so that it is multiplied by this when it is added to others.
constexpr float GIVE_BACK = 1.0f + 0x1p-23f;
constexpr int SPECIAL_READ = 1;  // a barrier of all threads but those of the first warp
static_assert(BN / 64 % CLUSTER == 0, "each block copies as many pieces of B");

// Where the blocks of a cluster work: rows of tiles go by clusters, GROUP of them before the next column.
struct Place {
    int row, column;
    __device__ Place(int tile, int rows, int columns)
    {
        const int group = tile / (GROUP * columns), first = group * GROUP, height = min(GROUP, rows - first);
        const int inside = tile - group * GROUP * columns;
        row = ((first + inside % height) * CLUSTER + rank_in_cluster()) * BM, column = inside / height * BN;
    }
};

// What blocks of a cluster do at a time: a tile, or a share of its steps of K.
struct Unit {
    int tile, share, begin, end;
    __device__ Unit(int unit, int whole, int shares, int steps) : tile(unit), share(0), begin(0), end(steps)
    {
        if (!SHARES || unit < whole) return;
        tile = whole + (unit - whole) / shares, share = (unit - whole) % shares;
        begin = steps * share / shares, end = steps * (share + 1) / shares;
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
split_product(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, char* workspace,
              long long zero_bytes, const float* A, const float* B, float* C, int M, int N, int K, int a_row, int a_k, int b_k,
              int b_column, int ldc, float alpha, float beta, int whole, int shares, long long begin_sums)
{
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    __shared__ unsigned has_special;
    const unsigned first = shared_address(tiles), full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        prefetch(&map_a), prefetch(&map_b);
        for (int stage = 0; stage < STAGES; ++stage) init(full + 8 * stage, 1), init(empty + 8 * stage, CLUSTER * CONSUMER_WARPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    wait_for_cluster();
    let_next_launch_start();
    wait_for_last_launch();

    const int rows = (M + CLUSTER * BM - 1) / (CLUSTER * BM), columns = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
    const int clusters = gridDim.x / CLUSTER, all = rows * columns;
    const int units = SHARES ? whole + (all - whole) * shares : all;
    const Places places(workspace, zero_bytes, M, N);
    unsigned stage = 0, parity = 0;
    const auto next = [&] {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    };
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (threadIdx.x >= 32) {
            if (threadIdx.x == 32) has_special = places.control->special;
            sync_threads<SPECIAL_READ>();
            places.set_to_zero(zero_bytes);
            if (has_special) {
                const Side of_a = {A, places.root_a, M, a_row, a_k, size_t(ldc)}, of_b = {B, places.root_b, N, b_column, b_k, 1};
                for (int tile = blockIdx.x / CLUSTER; tile < all; tile += clusters) {
                    const Place place(tile, rows, columns);
                    store_special(of_a, of_b, place.row, BM, place.column, BN, true, K, C, alpha, beta);
                    store_special(of_b, of_a, place.column, BN, place.row, BM, false, K, C, alpha, beta);
                }
            }
        } else if (threadIdx.x == 0) {
            for (int i = blockIdx.x / CLUSTER; i < units; i += clusters) {
                const Unit unit(i, whole, shares, steps);
                const Place place(unit.tile, rows, columns);
                for (int k = unit.begin * BK; k < unit.end * BK; k += BK, next()) {
                    const unsigned to = first + stage * STAGE_BYTES, barrier = full + 8 * stage;
                    wait(empty + 8 * stage, parity ^ 1);
                    expect(barrier, STAGE_BYTES);
#pragma unroll
                    for (int part = 0; part < 2; ++part) {
#pragma unroll
                        for (int piece = 0; piece < BM / 64; ++piece) {
                            const int row = place.row + piece * 64;
                            copy(to + part * A_BYTES + piece * PIECE, &map_a, A_ALONG ? k : row, A_ALONG ? row : k, part, barrier);
                        }
#pragma unroll
                        for (int i = 0; i < BN / 64 / CLUSTER; ++i) {
                            const int piece = i * CLUSTER + rank_in_cluster(), column = place.column + piece * 64;
                            copy_to_all(to + 2 * A_BYTES + part * B_BYTES + piece * PIECE, &map_b, B_ALONG ? k : column,
                                        B_ALONG ? column : k, part, barrier);
                        }
                    }
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        const int half = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
        const unsigned terms = *places.terms;
        const float factor = terms == MANY ? GIVE_BACK : 1.0f;
        Output output = {C, places.root_a, places.root_b, M, N, ldc, alpha, beta, ldc % 2 == 0 && size_t(C) % 8 == 0, false};
        for (int at = blockIdx.x / CLUSTER; at < units; at += clusters) {
            const Unit unit(at, whole, shares, steps);
            float sum[PASSES][WIDTH / 2] = {}, lost[WIDTH / 2] = {};
            for (int step = unit.begin; step < unit.end; ++step, next()) {
                const unsigned a = first + stage * STAGE_BYTES + half * PIECE, b = first + stage * STAGE_BYTES + 2 * A_BYTES;
                // of the high (0) or low part (1), from k = 16 i on
                const auto a_at = [&](int low, int i) { return descriptor(a + low * A_BYTES + i * A_STEP); };
                const auto b_at = [&](int low, int pass, int i) {
                    return descriptor(b + low * B_BYTES + pass * (WIDTH / 64) * PIECE + i * B_STEP);
                };
                wait(full + 8 * stage, parity);
#pragma unroll
                for (int pass = 0; pass < PASSES; ++pass) {
                    float part[WIDTH / 2];
                    const auto wait_for_part = [&] {
                        commit_products();
                        wait_for_products();
                        pin(part);
                    };
                    const auto add_part = [&] {
                        if (KEEPS_LOST && terms != MANY) {
#pragma unroll
                            for (int i = 0; i < WIDTH / 2; ++i) {
                                const float added = part[i] - lost[i], total = sum[0][i] + added;
                                lost[i] = (total - sum[0][i]) - added, sum[0][i] = total;
                            }
                        } else {
#pragma unroll
                            for (int i = 0; i < WIDTH / 2; ++i) sum[pass][i] = fmaf(part[i], factor, sum[pass][i]);
                        }
                    };
                    const auto multiply_some = [&](int low_a, int low_b, int begin, int end, int counts) {
#pragma unroll
                        for (int i = begin; i < end; ++i) multiply(part, a_at(low_a, i), b_at(low_b, pass, i), i > begin || counts);
                    };
                    const auto multiply_all = [&](int low_a, int low_b, int counts) {
                        multiply_some(low_a, low_b, 0, BK / 16, counts);
                    };
                    // the small products first: each wgmma cuts the whole sum off
                    if (terms == FEW) {  // low parts decide: their products count, and small sums are added apart
                        begin_products();
                        multiply_all(0, 1, 0), multiply_all(1, 0, 1), multiply_all(1, 1, 1);
                        wait_for_part();
                        add_part();
                        begin_products();
                        multiply_all(0, 0, 0);
                        wait_for_part();
                    } else if (KEEPS_LOST && terms == SOME) {  // shorter sums are cut off less
                        begin_products();
                        multiply_all(0, 1, 0), multiply_all(1, 0, 1), multiply_some(0, 0, 0, BK / 32, 1);
                        wait_for_part();
                        add_part();
                        begin_products();
                        multiply_some(0, 0, BK / 32, BK / 16, 0);
                        wait_for_part();
                    } else {
                        begin_products();
                        multiply_all(0, 1, 0), multiply_all(1, 0, 1), multiply_all(0, 0, 1);
                        wait_for_part();
                    }
                    if (pass == PASSES - 1) arrive_in_cluster(empty + 8 * stage);
                    add_part();
                }
            }
            if (at == int(blockIdx.x) / CLUSTER) {
                sync_threads<SPECIAL_READ>();
                output.has_special = has_special != 0;
            }
            if (SHARES && at >= whole) {
                const SharedTile<BN / 8> tile((unit.tile - whole) * CLUSTER + rank_in_cluster(), half, shares, workspace, begin_sums);
                if (!tile.all_added(sum, unit.share)) break;  // another block ends last
            }
            const Place place(unit.tile, rows, columns);
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass)
                output.store(sum[pass], place.row + half * 64 + thread / 32 * 16 + thread % 32 / 4,
                             place.column + pass * WIDTH + thread % 4 * 2);
        }
    }
    wait_for_cluster();  // no block leaves while another one copies to it or arrives at its barriers
}
