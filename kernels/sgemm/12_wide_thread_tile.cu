// Rung 12, wide thread tile: 8 x 16 elements of C per thread, in an order that reuses operands.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      128 multiply-adds for 24 values read, where 8 x 8 needs 16 for 64; few warps with many
//           registers. Registers have two banks, even and odd, of which each gives one value per
//           clock: three operands take two clocks, but for a value that stays from the last
//           instruction (.reuse). Row by row, to and fro, a value of A stays 16 times, and a
//           value of B at each turn. Values of the next k are read before this k computes,
//           across the barrier too; alpha is for the end, so that sums may be in any register.
// Mapping   block tile 128 x 128 in phases of depth BK, warp tiles of 64 x 64; lanes as in rung 9;
//           a thread owns 4 rows and 4 more 32 below, and 4 times 4 columns that are 16 apart.
//           128 threads, two blocks per SM; copies as in rung 11.
// Traffic   at BM = 128, BN = 128, BK = 16, STAGES = 3, FENCE = 0, multiples of 128:
//           per element of C: K/64 global loads in 5K/512, that end in shared memory; 1 global
//                             store in 1/4; 3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      A: 4 sectors per request (two rows of 64 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     What the compiler makes of it: it moves multiply-adds apart, and a value that was to
//           stay is read again. Two warps per scheduler cover little waiting.
// Source    Scott Gray, maxas, "SGEMM"; "Dissecting the Volta architecture" (Jia et al., 2018) on register
//           banks and reuse; CUTLASS, "Efficient GEMM in CUDA".

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
#ifndef FENCE
#define FENCE 0
#endif

constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0, "lanes fill warp tiles, these the block's");
static_assert(BK >= 8 && 32 % BK == 0 && THREADS % BK == 0 && BM * BK % THREADS == 0, "every pass over the tile of A is full");
static_assert(BK * BN % (THREADS * 4) == 0, "every pass over the tile of B is full");

struct Stage {
    float a[BK][BM];  // transposed and swizzled
    float b[BK][BN];
};

// A warp stores 32 / BK rows of A at a time, transposed: for every k in another bank. By k the float4
// of a row of the tile change places, and so do the floats within them.
__device__ constexpr int quad_swizzle(int k) { return k % 8 * 4; }
__device__ constexpr int float_swizzle(int k) { return k / 8 * (32 / BK); }

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

// Copy a tile of A of so many rows and columns, transposing it float by float. `from` is this
// thread's first element of it.
template <bool WHOLE>
__device__ void copy_a(Stage& to, const float* from, int rows, int columns, int K)
{
    constexpr int ROWS_PER_PASS = THREADS / BK;
    const unsigned t = thread();
    const int row = t / BK, k = t % BK, swizzle = quad_swizzle(k) ^ float_swizzle(k);
    const int left = k < columns ? rows - row : 0;
#pragma unroll
    for (int pass = 0; pass < BM; pass += ROWS_PER_PASS)
        copy<WHOLE, 1>(&to.a[k][(row + pass % 32 ^ swizzle) + pass / 32 * 32], from + size_t(pass) * K, pass, left);
}

// Copy a tile of B of so many rows and columns; `from` as above.
template <bool WHOLE, int WIDTH>
__device__ void copy_b(Stage& to, const float* from, int rows, int columns, int N)
{
    constexpr int PER_PASS = THREADS * WIDTH;
    constexpr int ROWS_PER_PASS = PER_PASS < BN ? 1 : PER_PASS / BN;
    const unsigned t = thread();
    const int k = t * WIDTH / BN, across = t * WIDTH % BN;
#pragma unroll
    for (int pass = 0; pass < BK; pass += ROWS_PER_PASS)
#pragma unroll
        for (int right = 0; right < BN; right += PER_PASS) {  // once, where a pass takes whole rows
            const int left = across + right < columns ? rows - k : 0;
            copy<WHOLE, WIDTH>(&to.b[k + pass][across + right], from + size_t(pass) * N + right, pass, left);
        }
}

// Where a tile of B has this thread's first element.
template <int WIDTH>
__device__ size_t offset_in_b(int N)
{
    const unsigned first = thread() * WIDTH;
    return size_t(first / BN) * N + first % BN;
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
    const int c_row = warp / (BN / WN) * WM + lane_m * 4;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;
    const bool quads_b = in_quads(B, N), quads_c = in_quads(C, N);

    const bool whole = first_row + BM <= M && first_col + BN <= N && quads_b;
    const float* from_a = A + size_t(first_row + t / BK) * K + t % BK;
    const float* from_b = B + first_col + offset_in_b<4>(N);

    // start the copies of the next phase, if there is one; a group of copies either way
    const auto start = [&](Stage& to, int phase) {
        const int left = K - phase;
        if (whole && left >= BK) {
            copy_a<true>(to, from_a, BM, BK, K);
            copy_b<true, 4>(to, from_b, BK, BN, N);
        } else if (left > 0) {
            copy_a<false>(to, from_a, M - first_row, left, K);
            if (quads_b)
                copy_b<false, 4>(to, from_b, left, N - first_col, N);
            else
                copy_b<false, 1>(to, B + size_t(phase) * N + first_col + offset_in_b<1>(N), left, N - first_col, N);
        }
        from_a += BK;
        from_b += size_t(BK) * N;
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float a[2][TM], b[2][TN];  // the values of this k and of the next
    const auto read = [&](const Stage& from, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a[k % 2][i]) =
                *reinterpret_cast<const float4*>(&from.a[k][(c_row ^ quad_swizzle(k)) + i / 4 * WM / 2]);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b[k % 2][j]) =
                *reinterpret_cast<const float4*>(&from.b[k][c_col + j * WN / TN]);
    };
    // the next phase's tiles are complete, and those of the last one are not read any more
    const auto arrive = [&] {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
    };

    float sum[TM][TN] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) start(stages[stage], stage * BK);
    int current = 0, free = STAGES - 1;
    arrive();
    read(stages[0], 0);
    for (int phase = 0; phase < K; phase += BK) {
        start(stages[free], phase + (STAGES - 1) * BK);
        const Stage& tiles = stages[current];
        current = current + 1 < STAGES ? current + 1 : 0;
        free = free + 1 < STAGES ? free + 1 : 0;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                read(tiles, k + 1);
            } else if (phase + BK < K) {
                arrive();
                read(stages[current], 0);
            }
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 ? TN - 1 - step : step;  // to and fro
                    sum[i][j] += a[k % 2][i ^ float_swizzle(k)] * b[k % 2][j];
                }
            if (FENCE) asm volatile("pmevent 0;");  // see rung 14
        }
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i / 4 * WM / 2 + i % 4;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j * WN / TN;
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
