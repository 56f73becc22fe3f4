// Rung 19, realigned: rows that bulk copies cannot take are first copied to where they can.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Bulk copies want rows that begin on 16 bytes. Where those of A or of B do not, the first
//           WORKERS blocks copy them into the workspace, with room behind each, count, and leave;
//           nobody multiplies before the count is full. That takes as long as reading and writing a
//           matrix once, 3% of the time at 4096. Nothing is padded, and where all rows begin on 16
//           bytes this is rung 18.
// Mapping   as rung 18: block tile 160 x 128; to copy, a block takes every WORKERS-th row
// Traffic   at STAGES = 3, BAND = 8, WORKERS = 264, multiples of the tiles, sums for others left out:
//           per element of C: 9K/640 global loads, that end in shared memory; 1 global store in 1/4;
//                             13K/80 shared loads in 13K/320
//           intensity:        35.6 FLOP per byte loaded
//           Other rows: those of the copies come on top, and C is stored float by float.
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     As rung 18. A small product waits for its copies, which cuBLAS does not make.
// Source    PTX ISA, "Async proxy": what ordinary stores wrote, a bulk copy reads behind a proxy fence.

#ifndef STAGES
#define STAGES 3
#endif
#ifndef BAND
#define BAND 8
#endif
#ifndef WORKERS
#define WORKERS 264
#endif

constexpr int BM = 160, BN = 128, BK = 32;
constexpr int WM = 80, WN = 64;  // of a warp
constexpr int TM = 10, TN = 16;  // of a thread
constexpr int THREADS = (BM / TM) * (BN / TN), WARPS = THREADS / 32;
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;
constexpr unsigned FLOAT = 4, QUAD = 16;  // bytes
constexpr unsigned A_ROW = BK * FLOAT, B_ROW = BN * FLOAT, A_BYTES = BM * A_ROW, STAGE_BYTES = A_BYTES + BK * B_ROW;
static_assert(LANES_M == 8 && A_ROW == 128, "the row of A within 8 is the lane's: one swizzle for all rows of a thread");

struct __align__(64) TensorMap { char opaque[128]; };

// Barriers in shared memory, by their address there.
__device__ void init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred done;"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 "@!done bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

// The tiles of A and B at (row, k) and (k, column) go to `stage`; `barrier` counts their bytes.
__device__ void copy(unsigned stage, unsigned barrier, const TensorMap& a, const TensorMap& b, int row, int column, int k)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage), "l"(&a), "r"(k), "r"(row), "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage + A_BYTES), "l"(&b), "r"(column), "r"(k), "r"(barrier) : "memory");
}

__device__ float4 read(unsigned address)
{
    float4 quad;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w) : "r"(address));
    return quad;
}

// What workers leave for each other: a flag each, then the sums each, in the order of threads.
constexpr int FLAGS_BYTES = (WORKERS * 4 + 127) / 128 * 128;

// Behind the sums: how many blocks have copied and how many know it, then the rows of A and of B.
constexpr size_t SUMS_BYTES = size_t(WORKERS) * BM * BN * FLOAT;
constexpr int COUNTS_BYTES = 128, ROW_FLOATS = 4;  // of which a row of a copy is a multiple

__device__ constexpr size_t pitch(int columns) { return (size_t(columns) + ROW_FLOATS - 1) / ROW_FLOATS * ROW_FLOATS; }

// Rows `first`, first + step... of a matrix to rows of whole quads.
__device__ void realign(const float* __restrict__ from, float* __restrict__ to, int rows, int columns, int first, int step)
{
    constexpr int AT_ONCE = 16;  // loads on their way
    for (int row = first; row < rows; row += step)
        for (int begin = threadIdx.x; begin < columns; begin += AT_ONCE * THREADS) {
            float value[AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                if (begin + n * THREADS < columns) value[n] = __ldcs(&from[size_t(row) * columns + begin + n * THREADS]);
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                if (begin + n * THREADS < columns) to[row * pitch(columns) + begin + n * THREADS] = value[n];
        }
}

// The column of a row of the thread's tile that comes at `step`: to and fro, and at both ends the
// column of k's parity is the last of one row and the first of the next.
__device__ constexpr int column(int row, int k, int step)
{
    const int at = row % 2 ? TN - 1 - step : step;
    const int first_two = k % 2 ? 1 - at : at, last_two = k % 2 ? at : 2 * TN - 3 - at;
    return at < 2 ? first_two : at >= TN - 2 ? last_two : at;
}

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_realigned(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
                int M, int N, int K, float alpha, float beta, char* __restrict__ workspace,
                const float* __restrict__ rows_of_a, const float* __restrict__ rows_of_b)
{
    extern __shared__ __align__(1024) char ring_of_tiles[];
    __shared__ volatile int piece[3];  // row, column and k at which it begins: the sums need the registers
    __shared__ __align__(8) unsigned long long full_barriers[STAGES], empty_barriers[STAGES];
    unsigned ring = __cvta_generic_to_shared(ring_of_tiles);
    unsigned full = __cvta_generic_to_shared(full_barriers), empty = __cvta_generic_to_shared(empty_barriers);
    asm volatile("" : "+r"(ring), "+r"(full), "+r"(empty));  // computed here, once

    const int t = threadIdx.x, warp = t / 32;
    const int lane_m = t >> 1 & 1 | t >> 2 & 6, lane_n = t & 1 | t >> 1 & 2;
    const int c_row = warp / (BN / WN) * WM + lane_m;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) init(full + 8 * stage, 1), init(empty + 8 * stage, WARPS);
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();  // the barriers are there

    // The first blocks copy what is not aligned, and leave; the others wait for them. Blocks start in
    // the order of their numbers: whoever waits, waits for blocks that run or are done.
    const bool copies_a = K % ROW_FLOATS, copies_b = N % ROW_FLOATS;
    int* const counts = reinterpret_cast<int*>(workspace + FLAGS_BYTES + SUMS_BYTES);
    if (blockIdx.x < WORKERS) {
        float* const copies = reinterpret_cast<float*>(workspace + FLAGS_BYTES + SUMS_BYTES + COUNTS_BYTES);
        if (copies_a) realign(rows_of_a, copies, M, K, blockIdx.x, WORKERS);
        if (copies_b) realign(rows_of_b, copies + (copies_a ? M * pitch(K) : 0), K, N, blockIdx.x, WORKERS);
        if (!copies_a && !copies_b) return;
        asm volatile("fence.proxy.async;" ::: "memory");
        __threadfence();
        __syncthreads();
        if (t == 0) atomicAdd(&counts[0], 1);
        return;
    }
    if (copies_a || copies_b) {
        if (t == 0) {
            int copied;
            do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(copied) : "l"(counts) : "memory");
            while (copied < WORKERS);
            if (atomicAdd(&counts[1], 1) == gridDim.x - WORKERS - 1) counts[0] = counts[1] = 0;  // for the next launch
            asm volatile("fence.proxy.async;" ::: "memory");
        }
        __syncthreads();
    }

    // The tiles that fill no whole turn come first: their phases, one tile after the other, are dealt
    // out evenly, to workers as far as there are such tiles. Then a block per tile.
    const int down = (M + BM - 1) / BM, across = (N + BN - 1) / BN, phases_of_tile = (K + BK - 1) / BK;
    const int shared_tiles = down * across % WORKERS, workers = shared_tiles ? WORKERS : 0;
    const auto first_phase = [&](int worker) { return int((long long)shared_tiles * phases_of_tile * worker / WORKERS); };
    const int self = blockIdx.x - WORKERS;
    const bool is_worker = self < workers;
    const int low = is_worker ? first_phase(self) : (self - workers) * phases_of_tile;
    int end = is_worker ? first_phase(self + 1) : low + phases_of_tile;

    unsigned used = 0;  // stages filled before
    // from the last tile to the first: others wait for the sums of its beginning
    while (low < end) {
        const int tile = (end - 1) / phases_of_tile, tile_begin = tile * phases_of_tile;
        const int begin = max(low, tile_begin), phases = end - begin;
        const int place = is_worker ? tile : tile + shared_tiles;
        const int band = place / (BAND * across), in_band = place % (BAND * across);
        const int height = min(BAND, down - band * BAND);
        int first_row = (band * BAND + in_band % height) * BM, first_col = in_band / height * BN;

        if (t == 0) piece[0] = first_row, piece[1] = first_col, piece[2] = (begin - tile_begin) * BK;
        const auto start = [&](int phase) {
            const unsigned turn = (used + phase) / STAGES, stage = (used + phase) % STAGES;
            if (turn > 0) wait(empty + 8 * stage, turn - 1 & 1);
            copy(ring + stage * STAGE_BYTES, full + 8 * stage, A, B, piece[0], piece[1], piece[2] + phase * BK);
        };
        if (t == 0)
            for (int phase = 0; phase < STAGES - 1 && phase < phases; ++phase) start(phase);

        float sum[TM][TN] = {};
        float4 a[TM];       // 4 values of k
        float b[2][TN];     // this k and the next
        unsigned stage = used % STAGES, parity = used / STAGES & 1;
        unsigned from_a = ring + stage * STAGE_BYTES + c_row * A_ROW;
        unsigned from_b = ring + stage * STAGE_BYTES + A_BYTES + c_col * FLOAT;
        const auto read_a = [&](int i, unsigned row, int quad) {
            a[i] = read(row + i * LANES_M * A_ROW + (quad ^ lane_m) * QUAD);
        };
        const auto read_b = [&](float (&to)[TN], unsigned row) {
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *reinterpret_cast<float4*>(&to[j]) = read(row + j * LANES_N * FLOAT);
        };
        // 4 steps in k; then `next_a` and `next_b` are where to read on, at piece `quad` of A's rows
        const auto compute = [&](unsigned next_a, int quad, unsigned next_b) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                read_b(b[(k + 1) % 2], k < 3 ? from_b + (k + 1) * B_ROW : next_b);
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                    for (int step = 0; step < TN; ++step) {
                        const int j = column(i, k, step);
                        sum[i][j] += value * b[k % 2][j];
                    }
                    if (k == 3) read_a(i, next_a, quad);
                }
                asm volatile("pmevent 0;");  // a fence to the compiler's scheduler, nothing to the kernel
            }
            from_a = next_a;
            from_b = next_b;
        };

        wait(full + 8 * stage, parity);
#pragma unroll
        for (int i = 0; i < TM; ++i) read_a(i, from_a, 0);
        read_b(b[0], from_b);
        for (int phase = 0; phase < phases; ++phase) {
#pragma unroll 1
            for (int quad = 1; quad < BK / 4; ++quad) compute(from_a, quad, from_b + 4 * B_ROW);
            if (t == 0 && phase + STAGES - 1 < phases) start(phase + STAGES - 1);  // where the last phase was
            const unsigned drained = empty + 8 * stage;
            if (++stage == STAGES) stage = 0, parity ^= 1;
            if (phase + 1 < phases) wait(full + 8 * stage, parity);
            const unsigned next = ring + stage * STAGE_BYTES;
            compute(next + c_row * A_ROW, 0, next + A_BYTES + c_col * FLOAT);
            __syncwarp();  // all lanes have read
            if (t % 32 == 0) arrive(drained);
        }

        used += phases;

        // Float by float: quads of sums would have to begin in an even register, as those of B do, and
        // every multiply-add would read two registers of one bank.
        float* const sums = reinterpret_cast<float*>(workspace + FLAGS_BYTES) + t;
        int* const flags = reinterpret_cast<int*>(workspace);
        if (end < tile_begin + phases_of_tile) {  // a later worker ends this tile, and adds these sums
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[((self * TM + i) * TN + j) * THREADS] = sum[i][j];
            __threadfence();
            __syncthreads();
            if (t == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flags + self) : "memory");
        } else {
            // Earlier workers have the rest of it. Blocks start in the order of their numbers: whoever
            // waits, waits for blocks that run or are done.
            for (int peer = self - 1, from = begin; from > tile_begin; --peer) {
                from = first_phase(peer);
                if (from == first_phase(peer + 1)) continue;  // had nothing to do
                if (t == 0) {
                    int done;
                    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(done) : "l"(flags + peer) : "memory");
                    while (!done);
                    flags[peer] = 0;  // for the next launch
                }
                __syncthreads();
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) sum[i][j] += sums[((peer * TM + i) * TN + j) * THREADS];
            }
            first_row = piece[0], first_col = piece[1];
            const bool by_quads = N % 4 == 0;  // a float4 is inside of its row or outside, never half
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const int row = first_row + c_row + i * LANES_M;
                if (row >= M) break;
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const int col = first_col + c_col + j * LANES_N;
                    float* const four = C + size_t(row) * N + col;
                    if (by_quads) {
                        if (col >= N) continue;
                        float4* const quad = reinterpret_cast<float4*>(four);
                        const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                        *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                            alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
                    } else {
#pragma unroll
                        for (int step = 0; step < 4; ++step)
                            if (col + step < N)
                                four[step] = alpha * sum[i][j + step] + (beta == 0.0f ? 0.0f : beta * four[step]);
                    }
                }
            }
        }
        end = begin;
    }
}
