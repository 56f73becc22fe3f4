// Rung 12, wide thread tile: 8 x 16 elements of C per thread, in an order that reuses operands.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 16
#endif
#ifndef STAGES
#define STAGES 3
#endif

constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int ROW_STEP = WM / TM, QUAD_STEP = WN / TN * 4;  // between rows of a thread, and its float4
static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0, "lanes fill warp tiles, these the block's");
static_assert(BK % 4 == 0 && 32 % BK == 0, "whole rows of A fill the banks");
static_assert(BM * BK % (THREADS * 4) == 0 && BK * BN % (THREADS * 4) == 0, "every pass over a tile is full");

struct Stage {
    float a[BM][BK];  // swizzled
    float b[BK][BN];
};

// Where column k of a row of A stands: rows that would begin in the same banks change the places of
// their float4. Rows of one thread are swizzled alike.
__device__ constexpr int swizzled(int row, int k) { return k ^ row / (32 / BK) % (BK / 4) * 4; }

// The thread's number, read anew: what follows from it is computed in each phase, where compilers
// would keep it in registers that the sums need.
__device__ unsigned thread()
{
    unsigned t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

// Copy WIDTH floats, of row `row` of a piece that has so many rows; zeros beyond, where nothing is
// read. Pieces that are WHOLE need no guard.
template <bool WHOLE, int WIDTH>
__device__ void copy(float* to, const float* from, int row, int rows)
{
    const unsigned address = __cvta_generic_to_shared(to);
    if (WHOLE && WIDTH == 4)  // cg: past L1, every float is copied once
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address), "l"(from) : "memory");
    else if (WHOLE)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(address), "l"(from) : "memory");
    else if (WIDTH == 4)
        asm volatile("{ .reg .pred beyond; setp.ge.s32 beyond, %2, %3;"
                     "cp.async.cg.shared.global [%0], [%1], 16, beyond; }"
                     :: "r"(address), "l"(from), "r"(row), "r"(rows) : "memory");
    else
        asm volatile("{ .reg .pred beyond; setp.ge.s32 beyond, %2, %3;"
                     "cp.async.ca.shared.global [%0], [%1], 4, beyond; }"
                     :: "r"(address), "l"(from), "r"(row), "r"(rows) : "memory");
}

// Where a tile with rows of COLUMNS has this thread's first piece, in a matrix with rows of `pitch`.
template <int WIDTH, int COLUMNS>
__device__ size_t first_piece(int pitch)
{
    const unsigned first = thread() * WIDTH;
    return size_t(first / COLUMNS) * pitch + first % COLUMNS;
}

// Copy a tile of A of so many rows and columns; `from` is this thread's first piece.
template <bool WHOLE, int WIDTH>
__device__ void copy_a(Stage& to, const float* from, int rows, int columns, int K)
{
    constexpr int ROWS_PER_PASS = THREADS * WIDTH / BK;
    const unsigned first = thread() * WIDTH;
    const int row = first / BK, k = first % BK;
    const int left = k < columns ? rows - row : 0;
#pragma unroll
    for (int pass = 0; pass < BM; pass += ROWS_PER_PASS)
        copy<WHOLE, WIDTH>(&to.a[row + pass][swizzled(row, k)], from + size_t(pass) * K, pass, left);
}

template <bool WHOLE, int WIDTH>
__device__ void copy_b(Stage& to, const float* from, int rows, int columns, int N)
{
    constexpr int ROWS_PER_PASS = THREADS * WIDTH / BN;
    const unsigned first = thread() * WIDTH;
    const int k = first / BN, across = first % BN;
    const int left = across < columns ? rows - k : 0;
#pragma unroll
    for (int pass = 0; pass < BK; pass += ROWS_PER_PASS)
        copy<WHOLE, WIDTH>(&to.b[k + pass][across], from + size_t(pass) * N, pass, left);
}

// whether every row of a matrix begins on 16 bytes
__device__ bool in_quads(const float* matrix, int columns)
{
    return columns % 4 == 0 && size_t(matrix) % 16 == 0;
}

// 256 threads per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)
sgemm_wide_thread_tile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                       int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(128) char shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int block_row = blockIdx.z * gridDim.y + blockIdx.y;
    const int first_row = block_row * BM;
    const int first_col = blockIdx.x * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting

    const int t = threadIdx.x, warp = t / 32;
    const int lane_m = t >> 1 & 1 | t >> 2 & 6, lane_n = t & 1 | t >> 1 & 2;
    const int c_row = warp / (BN / WN) * WM + lane_m;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;
    const bool quads_a = in_quads(A, K), quads_b = in_quads(B, N), quads_c = in_quads(C, N);
    const bool whole = first_row + BM <= M && first_col + BN <= N && quads_a && quads_b;
    const float* const corner_a = A + size_t(first_row) * K;
    const float* const corner_b = B + first_col;
    const float* from_a = corner_a + first_piece<4, BK>(K);
    const float* from_b = corner_b + first_piece<4, BN>(N);

    // start the copies of the next phase, if there is one; a group of copies either way
    const auto start = [&](Stage& to, int phase) {
        const int left = K - phase, rows = M - first_row, columns = N - first_col;
        if (whole && left >= BK) {
            copy_a<true, 4>(to, from_a, BM, BK, K);
            copy_b<true, 4>(to, from_b, BK, BN, N);
        } else if (left > 0) {
            if (quads_a) copy_a<false, 4>(to, from_a, rows, left, K);
            else copy_a<false, 1>(to, corner_a + phase + first_piece<1, BK>(K), rows, left, K);
            if (quads_b) copy_b<false, 4>(to, from_b, left, columns, N);
            else copy_b<false, 1>(to, corner_b + size_t(phase) * N + first_piece<1, BN>(N), left, columns, N);
        }
        from_a += BK;
        from_b += size_t(BK) * N;
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float a[TM][4], b[2][TN];  // of A the values of 4 k, of B those of this k and of the next
    const auto read_a = [&](const Stage& from, int k, int i) {
        *reinterpret_cast<float4*>(a[i]) =
            *reinterpret_cast<const float4*>(&from.a[c_row + i * ROW_STEP][swizzled(c_row, k)]);
    };
    const auto read_b = [&](const Stage& from, int k) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b[k % 2][j]) =
                *reinterpret_cast<const float4*>(&from.b[k][c_col + j / 4 * QUAD_STEP]);
    };

    float sum[TM][TN] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) start(stages[stage], stage * BK);
    int current = 0, free = STAGES - 1;
    for (int phase = 0; phase < K; phase += BK) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();  // this phase's tiles are complete, and the last one's are not read any more
        start(stages[free], phase + (STAGES - 1) * BK);
        const Stage& tiles = stages[current];
#pragma unroll
        for (int i = 0; i < TM; ++i) read_a(tiles, 0, i);
        read_b(tiles, 0);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) read_b(tiles, k + 1);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    const int snake = i % 2 ? TN - 1 - j : j;
                    sum[i][snake] += a[i][k % 4] * b[k % 2][snake];
                }
                if (k % 4 == 3 && k + 1 < BK) read_a(tiles, k + 1, i);
            }
        }
        current = current + 1 < STAGES ? current + 1 : 0;
        free = free + 1 < STAGES ? free + 1 : 0;
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i * ROW_STEP;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j / 4 * QUAD_STEP;
            float* const c = C + size_t(row) * N + col;
            if (quads_c) {
                if (col < N) {
                    float4* const quad = reinterpret_cast<float4*>(c);
                    const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                    *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                        alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
                }
            } else {
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    if (col + q < N)
                        c[q] = beta == 0.0f ? alpha * sum[i][j + q] : alpha * sum[i][j + q] + beta * c[q];
            }
        }
    }
}
